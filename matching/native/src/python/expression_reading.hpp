// Reads expressions of `matching.expressions.model` into the form that the indexes accept.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "core/expression_form.hpp"
#include "core/id_table.hpp"
#include "python/reading.hpp"

namespace mercast::python {

// Reuses its memory for every expression.
class ExpressionReader {
  public:
    // Returns false if any part is not an expression of `matching.expressions.model`. Texts are views of the
    // expression's.
    bool read(PyObject* expression) {
        form_.clear();
        frames_.clear();
        done_.clear();
        connectives_.clear();
        known_ = {};
        if (!visit(expression)) return false;
        while (!frames_.empty()) {
            Frame& frame = frames_.back();
            if (frame.next == PyTuple_GET_SIZE(frame.children)) {
                finish(frame);
                frames_.pop_back();
            } else if (!visit(PyTuple_GET_ITEM(frame.children, frame.next++))) {
                return false;
            }
        }
        return true;
    }

    const ExpressionForm& form() const { return form_; }

  private:
    struct Frame {
        PyObject* object;
        PyObject* children;
        Py_ssize_t next;
        std::size_t first_done;
        Connective kind;
    };

    // The classes of the connectives.
    struct Classes {
        Classes() {
            nb::module_ model = nb::module_::import_("matching.expressions.model");
            const char* names[] = {"And", "Or", "Not", "Xor", "Xnor"};
            for (int number = 0; number < 5; ++number) types[number] = model.attr(names[number]);
        }
        nb::object types[5];
    };

    static const Classes& classes() {
        static const Classes* loaded = new Classes();
        return *loaded;
    }

    // Pushes the number of the part onto `done_`, now or after its children are read.
    bool visit(PyObject* object) {
        if (model().is_predicate(object)) {
            const auto leaf = static_cast<std::uint32_t>(form_.leaves.predicates.size());
            if (!model().read(object, form_.leaves)) return false;
            done_.push_back(add_part({Connective::Predicate, leaf, 0}));
            return true;
        }
        const int kind = kind_of(object);
        if (kind < 0) return false;
        const std::uint32_t known =
            known_.find(hash(object), [&](std::uint32_t number) { return connectives_[number].object == object; });
        if (known != kNone) {
            done_.push_back(connectives_[known].part);
            return true;
        }
        PyObject* children = model().children(object);
        if (children == nullptr || !PyTuple_CheckExact(children)) return false;
        frames_.push_back({object, children, 0, done_.size(), static_cast<Connective>(kind + 1)});
        return true;
    }

    void finish(const Frame& frame) {
        const auto first = static_cast<std::uint32_t>(form_.children.size());
        form_.children.insert(form_.children.end(), done_.begin() + static_cast<std::ptrdiff_t>(frame.first_done),
                              done_.end());
        done_.resize(frame.first_done);
        const auto count = static_cast<std::uint32_t>(form_.children.size()) - first;
        const std::uint32_t part = add_part({frame.kind, first, count});
        known_.insert(hash(frame.object), static_cast<std::uint32_t>(connectives_.size()));
        connectives_.push_back({frame.object, part});
        done_.push_back(part);
    }

    std::uint32_t add_part(ExpressionForm::Part part) {
        form_.parts.push_back(part);
        return static_cast<std::uint32_t>(form_.parts.size() - 1);
    }

    static int kind_of(PyObject* object) {
        const Classes& known = classes();
        for (int number = 0; number < 5; ++number) {
            if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == known.types[number].ptr()) return number;
        }
        return -1;
    }

    static std::uint32_t hash(PyObject* object) {
        return static_cast<std::uint32_t>(mixed(reinterpret_cast<std::uintptr_t>(object)));
    }

    struct Read {
        PyObject* object;
        std::uint32_t part;
    };

    ExpressionForm form_;
    std::vector<Frame> frames_;
    std::vector<std::uint32_t> done_;
    std::vector<Read> connectives_;
    IdTable known_;
};

}  // namespace mercast::python
