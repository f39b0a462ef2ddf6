// The flat index for Python. It answers anything that is not plain with a code or None. The wrapper in
// `matching.native.flat` then calls Python's own checks, which raise the project's errors.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "core/message_pack.hpp"
#include "core/vectors.hpp"
#include "flat/flat_index.hpp"
#include "memory/fetch_line.hpp"
#include "python/bindings.hpp"
#include "python/ids.hpp"
#include "python/reading.hpp"

namespace mercast::python {
namespace {

// The outcome of an addition.
enum class Added : int { Done, DoneWithPatterns, IdExists, IsNotPlain, IdIsTooLarge };

class BoundFlat {
  public:
    // The draft is stored when another method needs it: while it waits for memory, the next expression is read.
    int add(nb::handle id, nb::handle expression, nb::handle destination) {
        if (const Model& known = model(); known.is_and(expression.ptr())) {
            known.fetch_parts(known.children(expression.ptr()));
            known.fetch_values(known.children(expression.ptr()));
        }
        return static_cast<int>(add_draft(id, expression, destination));
    }

    // Adds the items of the lists from a position on, until an outcome other than Done. Returns the position of that
    // item.
    std::size_t add_while_done(nb::list ids, nb::list expressions, std::size_t done) {
        PyObject** numbers = PySequence_Fast_ITEMS(ids.ptr());
        PyObject** items = PySequence_Fast_ITEMS(expressions.ptr());
        const std::size_t count = std::min(ids.size(), expressions.size());
        Added outcome = Added::Done;
        for (; done < count && outcome == Added::Done; ++done) {
            fetch_ahead(items, done, count);
            if (done + 16 < count) fetch_line(numbers[done + 16]);
            if (std::int64_t later; done + 8 < count && as_int64(numbers[done + 8], later)) index_.prefetch(later);
            outcome = add_draft(numbers[done], items[done], nb::none());
        }
        if (outcome == Added::DoneWithPatterns) remove(numbers[done - 1]);
        return outcome == Added::Done ? done : done - 1;
    }

    // Returns false if the id does not exist.
    bool remove(nb::handle id) {
        require_no_match_running();
        std::int64_t number;
        if (!as_int64(id.ptr(), number) || !index_.contains(number)) return false;
        flushed().remove(number);
        return true;
    }

    bool contains(nb::handle id) const {
        std::int64_t number;
        return as_int64(id.ptr(), number) && index_.contains(number);
    }

    std::uint32_t size() { return flushed().size(); }
    nb::object ids() { return as_ids(flushed().ids_in_order()); }

    nb::object expression(std::int64_t id);

    nb::object destination(std::int64_t id) {
        const std::uint32_t number = flushed().destination(id);
        return number == Interner::kUnknown ? nb::none() : nb::object(name_of(number));
    }

    nb::object match(nb::handle publication) {
        if (!read_publication(publication.ptr(), index_.vocabulary(), names_, scratch_.event)) return nb::none();
        return matched();
    }

    nb::object match_packed(nb::handle attributes) { return read_packed(attributes) ? matched() : nb::none(); }

    nb::object match_destinations(nb::handle publication) {
        if (!read_publication(publication.ptr(), index_.vocabulary(), names_, scratch_.event)) return nb::none();
        return matched_destinations();
    }

    nb::object match_packed_destinations(nb::handle attributes) {
        return read_packed(attributes) ? matched_destinations() : nb::none();
    }

    // One answer for each publication, None for one that is not plain. Releases the GIL.
    nb::list match_many(nb::list publications, unsigned threads);

    nb::tuple figures() {
        const FlatIndex::Figures figures = flushed().figures();
        return nb::make_tuple(figures.lists, figures.entries, figures.dimensions, figures.grids, figures.bytes);
    }

  private:
    void require_no_match_running() const {
        if (matching_ > 0) throw std::runtime_error("the index is being matched: change it when match_many has ended");
    }

    FlatIndex& flushed() {
        index_.flush();
        return index_;
    }

    Added add_draft(nb::handle id, nb::handle expression, nb::handle destination) {
        require_no_match_running();
        std::int64_t number;
        if (!as_int64(id.ptr(), number)) return Added::IdIsTooLarge;
        // The slot is prefetched while the expression is read.
        index_.prefetch(number);
        std::optional<std::string_view> name;
        if (!destination.is_none()) {
            std::string_view text;
            if (!as_text(destination.ptr(), text)) throw nb::type_error("a destination is a str");
            name = text;
        }
        index_.begin();
        const bool is_plain = add_predicates(expression.ptr());
        if (is_plain && index_.reserve_id(number))
            return index_.finish(number, name) ? Added::DoneWithPatterns : Added::Done;
        index_.abandon();
        return index_.contains(number) ? Added::IdExists : Added::IsNotPlain;
    }

    // Adds all predicates of a conjunction. Returns false if it is not a conjunction of plain predicates.
    bool add_predicates(PyObject* expression) {
        const Model& known = model();
        std::span<PyObject*> parts(&expression, 1);
        if (!known.is_predicate(expression)) {
            PyObject* children = known.is_and(expression) ? known.children(expression) : expression;
            if (!PyTuple_CheckExact(children)) return false;
            parts = {&PyTuple_GET_ITEM(children, 0), static_cast<std::size_t>(PyTuple_GET_SIZE(children))};
        }
        const auto add_range =
            [this](std::uint32_t attribute, Operator op, const NumberOperand& first, const NumberOperand& last)
                __attribute__((always_inline)) { return index_.add_range(attribute, op, first, last); };
        for (PyObject* part : parts) {
            if (!known.is_predicate(part)) return false;
            if (known.read_range(part, index_.vocabulary(), names_, add_range)) continue;
            if (!add_any_predicate(known, part)) return false;
        }
        return true;
    }

    bool add_any_predicate(const Model& known, PyObject* predicate) {
        conjunction_.clear();
        if (!known.read(predicate, index_.vocabulary(), names_, conjunction_)) return false;
        index_.add_predicate(conjunction_.predicates.front(), conjunction_.operands);
        return true;
    }

    // Prefetches the objects of the next expressions while this one is added, because they are scattered over the heap.
    static void fetch_ahead(PyObject** items, std::size_t at, std::size_t count) {
        const Model& known = model();
        if (at + 12 >= count) return;
        fetch_line(items[at + 12]);
        if (known.is_and(items[at + 8])) fetch_line(known.children(items[at + 8]));
        if (known.is_and(items[at + 5])) known.fetch_parts(known.children(items[at + 5]));
        if (known.is_and(items[at + 2])) known.fetch_values(known.children(items[at + 2]));
    }

    bool read_packed(nb::handle attributes) {
        if (!PyBytes_CheckExact(attributes.ptr())) return false;
        return read_message_pack(reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(attributes.ptr())),
                                 static_cast<std::size_t>(PyBytes_GET_SIZE(attributes.ptr())), index_.vocabulary(),
                                 scratch_.event);
    }

    nb::object answered(Answer& answer) {
        nb::object ids = as_ids(std::vector<std::int64_t>(answer.ids));
        if (answer.pending.empty()) return nb::make_tuple(ids, index_.size(), answer.candidates, answer.evaluated);
        nb::object pending = as_ids(std::move(answer.pending));
        answer.pending.clear();
        return nb::make_tuple(ids, index_.size(), answer.candidates, answer.evaluated, pending);
    }

    nb::object matched() {
        flushed().match(scratch_, answer_);
        if (matching_ == 0) index_.record_publication(scratch_);
        return answered(answer_);
    }

    nb::object matched_destinations() {
        DestinationAnswer answer;
        flushed().match_destinations(scratch_, answer);
        nb::list names;
        for (const std::uint32_t number : answer.destinations) names.append(name_of(number));
        nb::object pending = answer.pending.empty() ? nb::none() : as_ids(std::move(answer.pending));
        nb::object without = answer.without ? nb::cast(*answer.without) : nb::none();
        return nb::make_tuple(names, pending, without, answer.candidates, answer.evaluated);
    }

    nb::str name_of(std::uint32_t destination) const {
        const std::string& name = index_.destinations().text(destination);
        return nb::str(name.data(), name.size());
    }

    nb::object value_of(const Operand& operand, TypeClass type) const;

    FlatIndex index_;
    AttributeNames names_;
    Conjunction conjunction_;  // the one predicate that is being read
    Scratch scratch_;
    Answer answer_;
    std::uint32_t matching_ = 0;
};

nb::object BoundFlat::value_of(const Operand& operand, TypeClass type) const {
    switch (type) {
        case TypeClass::Truth: return nb::cast(operand.truth);
        case TypeClass::Text: {
            const std::string& text = index_.vocabulary().texts.text(operand.text_number);
            return nb::str(text.data(), text.size());
        }
        default: break;
    }
    if (operand.is_integer) return nb::cast(static_cast<std::int64_t>(operand.bits));
    return nb::cast(std::bit_cast<double>(operand.bits));
}

// The expression as it was added: a predicate, or an AND of predicates in their order.
nb::object BoundFlat::expression(std::int64_t id) {
    FormReader reader(flushed().form(id));
    Predicate predicate;
    nb::list parts;
    while (reader.next(predicate)) {
        nb::list values;
        for (std::uint32_t i = 0; i < predicate.operands; ++i)
            values.append(value_of(reader.operand(predicate.type), predicate.type));
        const std::string& name = index_.vocabulary().attributes.text(predicate.attribute_number);
        parts.append(model().predicate(nb::str(name.data(), name.size()), predicate.op, nb::tuple(values)));
    }
    return parts.size() == 1 ? nb::object(parts[0]) : model().conjunction(nb::tuple(parts));
}

nb::list BoundFlat::match_many(nb::list publications, unsigned threads) {
    const std::size_t count = publications.size();
    index_.flush();
    // Events refer to texts of the dicts. Copies keep them alive while other threads change the dicts.
    nb::list kept;
    std::vector<Event> events(count);
    std::vector<bool> is_plain(count);
    for (std::size_t i = 0; i < count; ++i) {
        nb::object publication = nb::borrow(publications[i]);
        if (PyDict_CheckExact(publication.ptr())) publication = nb::steal(PyDict_Copy(publication.ptr()));
        kept.append(publication);
        is_plain[i] = read_publication(publication.ptr(), index_.vocabulary(), names_, events[i]);
        if (!is_plain[i]) events[i].begin(index_.vocabulary());
    }
    std::vector<Answer> answers(count);
    std::vector<std::exception_ptr> failures(threads);
    std::atomic<std::size_t> next = 0;
    const auto work = [&](std::size_t worker) {
        try {
            Scratch scratch;
            for (std::size_t i = next++; i < count; i = next++) {
                std::swap(scratch.event, events[i]);
                index_.match(scratch, answers[i]);
            }
        } catch (...) {
            failures[worker] = std::current_exception();
        }
    };
    ++matching_;
    {
        nb::gil_scoped_release released;
        std::vector<std::thread> others;
        for (unsigned worker = 1; worker < threads; ++worker) others.emplace_back(work, worker);
        work(0);
        for (std::thread& other : others) other.join();
    }
    --matching_;
    for (const std::exception_ptr& failure : failures) {
        if (failure != nullptr) std::rethrow_exception(failure);
    }
    nb::list results;
    for (std::size_t i = 0; i < count; ++i) results.append(is_plain[i] ? answered(answers[i]) : nb::none());
    return results;
}

}  // namespace

void bind_flat(nb::module_& module) {
    nb::class_<BoundFlat>(module, "Flat")
        .def(nb::init<>())
        .def("add", &BoundFlat::add, nb::arg("id"), nb::arg("expression"), nb::arg("destination").none())
        .def("add_while_done", &BoundFlat::add_while_done, nb::arg("ids"), nb::arg("expressions"), nb::arg("start"))
        .def("remove", &BoundFlat::remove, nb::arg("id"))
        .def("contains", &BoundFlat::contains, nb::arg("id").none())
        .def("size", &BoundFlat::size)
        .def("ids", &BoundFlat::ids)
        .def("expression", &BoundFlat::expression, nb::arg("id"))
        .def("destination", &BoundFlat::destination, nb::arg("id"))
        .def("match", &BoundFlat::match, nb::arg("publication").none())
        .def("match_packed", &BoundFlat::match_packed, nb::arg("attributes").none())
        .def("match_destinations", &BoundFlat::match_destinations, nb::arg("publication").none())
        .def("match_packed_destinations", &BoundFlat::match_packed_destinations, nb::arg("attributes").none())
        .def("match_many", &BoundFlat::match_many, nb::arg("publications"), nb::arg("threads"))
        .def("figures", &BoundFlat::figures);
    module.def("has_vectors", &has_vectors);
    module.def("forbid_vectors", &forbid_vectors, nb::arg("is_forbidden"));
}

}  // namespace mercast::python
