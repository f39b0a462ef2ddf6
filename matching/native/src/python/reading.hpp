// Reads Python's publications and predicates into the forms that the indexes accept.
//
// Anything that is not plainly a dict of names and values, or a predicate of `matching.expressions.model`, is refused
// without a reason. The caller then calls Python's checks, which raise the project's error or return a plain object.
#pragma once

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <array>
#include <cmath>

#include "core/event.hpp"
#include "core/predicate.hpp"
#include "memory/fetch_line.hpp"
#include "python/attribute_names.hpp"
#include "python/values.hpp"

namespace mercast::python {

namespace nb = nanobind;

// The dict must outlive the event, whose texts are views of its strings.
inline bool read_publication(PyObject* publication, const Vocabulary& vocabulary, AttributeNames& names, Event& event) {
    event.begin(vocabulary);
    if (!PyDict_CheckExact(publication)) return false;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(publication, &position, &key, &value) != 0) {
        std::string_view text;
        std::uint32_t attribute = Interner::kUnknown;
        if (!names.find(key, vocabulary.attributes, attribute)) return false;
        const bool is_known = attribute != Interner::kUnknown;
        if (PyBool_Check(value)) {
            if (is_known) event.add_truth(attribute, value == Py_True);
        } else if (std::int64_t integer; as_int64(value, integer)) {
            if (is_known) event.add(attribute, Number::of(integer));
        } else if (PyFloat_CheckExact(value)) {
            const double number = PyFloat_AS_DOUBLE(value);
            if (std::isnan(number)) return false;
            if (is_known) event.add(attribute, Number::of(number));
        } else if (as_text(value, text)) {
            if (is_known) event.add(attribute, text);
        } else {
            return false;
        }
    }
    return true;
}

// The classes of `matching.expressions.model` and the offsets of their slots. A conjunction has dozens of slots, and
// looking each up by name would take longer than storing the conjunction.
class Model {
  public:
    Model() {
        nb::module_ model = nb::module_::import_("matching.expressions.model");
        predicate_ = model.attr("Predicate");
        and_ = model.attr("And");
        operators_ = nb::tuple(nb::list(model.attr("Operator")));
        attribute_offset_ = slot_offset(predicate_, "attribute");
        operator_offset_ = slot_offset(predicate_, "operator");
        values_offset_ = slot_offset(predicate_, "values");
        children_offset_ = slot_offset(and_, "children");
        // From the last to the first: the first operators are used most and keep their slots.
        for (std::size_t i = kOperators; i-- != 0;) {
            PyObject* member = PyTuple_GET_ITEM(operators_.ptr(), i);
            operator_slots_[place_of(member)] = {member, static_cast<Operator>(i)};
        }
    }

    bool is_predicate(PyObject* object) const {
        return reinterpret_cast<PyObject*>(Py_TYPE(object)) == predicate_.ptr();
    }
    bool is_and(PyObject* object) const { return reinterpret_cast<PyObject*>(Py_TYPE(object)) == and_.ptr(); }

    // An AND's children, as a borrowed tuple.
    PyObject* children(PyObject* conjunction) const { return slot(conjunction, children_offset_); }

    // Prefetch the parts of a tuple of expressions, and the values of those that are predicates.
    void fetch_parts(PyObject* parts) const {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); ++i) {
            const char* part = reinterpret_cast<const char*>(PyTuple_GET_ITEM(parts, i));
            fetch_line(part);
            fetch_line(part + values_offset_);
        }
    }

    void fetch_values(PyObject* parts) const {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); ++i) {
            PyObject* part = PyTuple_GET_ITEM(parts, i);
            if (is_predicate(part)) fetch_line(slot(part, values_offset_));
        }
    }

    // Appends a predicate of `matching.expressions.model`. Its views live as long as the Python object. An attribute in
    // the vocabulary has its number, another one its name.
    bool read(PyObject* predicate, const Vocabulary& vocabulary, AttributeNames& names,
              Conjunction& conjunction) const {
        Predicate read;
        PyObject* name = slot(predicate, attribute_offset_);
        if (!names.find(name, vocabulary.attributes, read.attribute_number)) return false;
        if (read.attribute_number == Interner::kUnknown && !as_text(name, read.attribute)) return false;
        return read_rest(predicate, read, conjunction);
    }

    // The same, always with the name.
    bool read(PyObject* predicate, Conjunction& conjunction) const {
        Predicate read;
        return as_text(slot(predicate, attribute_offset_), read.attribute) && read_rest(predicate, read, conjunction);
    }

    // Passes a range of numbers on an attribute in the vocabulary to `visit`: attribute, operator, first and last
    // number. Most predicates are such ranges. Returns false if this one is not, or if `visit` returns false.
    template <typename Visit>
    [[gnu::always_inline]] bool read_range(PyObject* predicate, const Vocabulary& vocabulary, AttributeNames& names,
                                           Visit visit) const {
        std::uint32_t attribute = Interner::kUnknown;
        if (!names.find(slot(predicate, attribute_offset_), vocabulary.attributes, attribute)) return false;
        if (attribute == Interner::kUnknown) return false;
        Operator op = Operator::Eq;
        if (!read_operator(slot(predicate, operator_offset_), op) || !is_range(op)) return false;
        PyObject* values = slot(predicate, values_offset_);
        if (values == nullptr || !PyTuple_CheckExact(values)) return false;
        const Py_ssize_t count = PyTuple_GET_SIZE(values);
        NumberOperand first;
        if (count == 0 || !read_number(PyTuple_GET_ITEM(values, 0), first)) return false;
        if (op != Operator::Between) return visit(attribute, op, first, first);
        NumberOperand last;
        return count == 2 && read_number(PyTuple_GET_ITEM(values, 1), last) && visit(attribute, op, first, last);
    }

    nb::object predicate(nb::handle attribute, Operator op, nb::handle values) const {
        return predicate_(attribute, operators_[static_cast<std::size_t>(op)], values);
    }

    nb::object conjunction(nb::handle children) const { return and_(children); }

  private:
    bool read_rest(PyObject* predicate, Predicate& read, Conjunction& conjunction) const {
        if (!read_operator(slot(predicate, operator_offset_), read.op)) return false;
        PyObject* values = slot(predicate, values_offset_);
        if (values == nullptr || !PyTuple_CheckExact(values)) return false;
        read.first_operand = static_cast<std::uint32_t>(conjunction.operands.size());
        read.operands = static_cast<std::uint32_t>(PyTuple_GET_SIZE(values));
        conjunction.operands.resize(read.first_operand + read.operands);
        Operand* operand = conjunction.operands.data() + read.first_operand;
        for (std::uint32_t i = 0; i < read.operands; ++i, ++operand) {
            if (!read_operand(PyTuple_GET_ITEM(values, i), *operand, read.type)) return false;
        }
        conjunction.predicates.push_back(read);
        return true;
    }

    static Py_ssize_t slot_offset(nb::handle type, const char* name) {
        nb::object member = type.attr(name);
        if (Py_TYPE(member.ptr()) != &PyMemberDescr_Type)
            throw nb::type_error("matching.expressions.model has no such slot");
        return reinterpret_cast<PyMemberDescrObject*>(member.ptr())->d_member->offset;
    }

    static PyObject* slot(PyObject* object, Py_ssize_t offset) {
        return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
    }

    bool read_operator(PyObject* member, Operator& op) const {
        const OperatorSlot& slot = operator_slots_[place_of(member)];
        if (slot.member == member) {
            op = slot.op;
            return true;
        }
        // Another operator occupies its slot.
        for (std::size_t i = 0; i < kOperators; ++i) {
            if (PyTuple_GET_ITEM(operators_.ptr(), i) != member) continue;
            op = static_cast<Operator>(i);
            return true;
        }
        return false;
    }

    struct OperatorSlot {
        PyObject* member = nullptr;
        Operator op = Operator::Eq;
    };

    // Most operators, by their addresses.
    static std::size_t place_of(PyObject* member) {
        return (reinterpret_cast<std::uintptr_t>(member) >> 4) * 0x9e3779b97f4a7c15U >> 58;
    }

    [[gnu::always_inline]] static bool read_number(PyObject* value, NumberOperand& operand) {
        if (std::int64_t integer; as_int64(value, integer)) {
            operand = NumberOperand::of(integer);
            return true;
        }
        if (!PyFloat_CheckExact(value)) return false;
        operand = NumberOperand::of(PyFloat_AS_DOUBLE(value));
        return true;
    }

    static bool read_operand(PyObject* value, Operand& operand, TypeClass& type) {
        if (read_number(value, operand)) {
            type = TypeClass::Number;
        } else if (PyBool_Check(value)) {
            type = TypeClass::Truth;
            operand.truth = value == Py_True;
        } else {
            type = TypeClass::Text;
            return as_text(value, operand.text);
        }
        return true;
    }

    nb::object predicate_;
    nb::object and_;
    nb::tuple operators_;
    std::array<OperatorSlot, 64> operator_slots_{};
    Py_ssize_t attribute_offset_ = 0;
    Py_ssize_t operator_offset_ = 0;
    Py_ssize_t values_offset_ = 0;
    Py_ssize_t children_offset_ = 0;
};

// Loaded on first use and never unloaded: the interpreter may end before the destructors of this library run.
inline const Model& model() {
    static const Model* loaded = new Model();
    return *loaded;
}

}  // namespace mercast::python
