// The native A-Tree for Python. It refuses anything that is not plain with False or None. The wrapper in
// `matching.native.a_tree` then calls Python's own checks, which raise the project's errors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <atomic>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "a_tree/a_tree.hpp"
#include "a_tree/a_tree_search.hpp"
#include "core/message_pack.hpp"
#include "python/bindings.hpp"
#include "python/calls.hpp"
#include "python/expression_reading.hpp"
#include "python/ids.hpp"
#include "python/reading.hpp"

namespace mercast::python {
namespace {

class BoundATree {
  public:
    explicit BoundATree(unsigned identity_bits) : tree_(identity_bits) { tree_.set_verifier(pattern_occurs); }

    // Returns false if this is not an expression of `matching.expressions.model`.
    bool add(std::int64_t id, nb::handle expression) {
        require_no_search_running();
        if (!reader_.read(expression.ptr())) return false;
        tree_.add(id, reader_.form());
        return true;
    }

    void set_destination(std::int64_t id, std::string_view name) {
        require_no_search_running();
        tree_.set_destination(id, destinations_.acquire(name));
    }

    void remove(std::int64_t id) {
        require_no_search_running();
        const std::uint32_t destination = tree_.remove(id);
        if (destination != Interner::kUnknown) destinations_.release(destination);
    }

    nb::object match(nb::handle publication) {
        WorkerLease lease(*this);
        return read(lease, publication) ? matched(lease) : nb::none();
    }

    nb::object match_packed(nb::bytes attributes) {
        WorkerLease lease(*this);
        return read_packed(lease, attributes) ? matched(lease) : nb::none();
    }

    nb::object match_destinations(nb::handle publication) {
        WorkerLease lease(*this);
        return read(lease, publication) ? matched_destinations(lease) : nb::none();
    }

    nb::object match_packed_destinations(nb::bytes attributes) {
        WorkerLease lease(*this);
        return read_packed(lease, attributes) ? matched_destinations(lease) : nb::none();
    }

    // One result for each publication, None for one that is not plain. Releases the GIL.
    nb::list match_many(nb::list publications, unsigned threads);

    std::size_t bytes() const { return tree_.bytes() + destinations_.bytes(); }
    nb::dict shape() const;

  private:
    struct Worker {
        explicit Worker(const a_tree::ATree& tree) : search(tree) {}
        a_tree::ATreeSearch search;
        Event event;
    };

    // Owns a worker while it searches. If the search throws, the worker is discarded.
    class WorkerLease {
      public:
        explicit WorkerLease(BoundATree& bound) : bound_(bound) {
            if (bound_.idle_.empty()) bound_.idle_.push_back(std::make_unique<Worker>(bound_.tree_));
            worker = std::move(bound_.idle_.back());
            bound_.idle_.pop_back();
            ++bound_.searching_;
        }
        ~WorkerLease() {
            --bound_.searching_;
            if (has_failed_before_ == std::uncaught_exceptions()) bound_.idle_.push_back(std::move(worker));
        }
        WorkerLease(const WorkerLease&) = delete;
        WorkerLease& operator=(const WorkerLease&) = delete;

        std::unique_ptr<Worker> worker;
        nb::object publication;  // Events refer to its texts.

      private:
        BoundATree& bound_;
        int has_failed_before_ = std::uncaught_exceptions();
    };

    struct Answer {
        std::vector<std::int64_t> ids;
        a_tree::SearchCounts counts;
    };

    void require_no_search_running() const {
        if (searching_ > 0)
            throw std::runtime_error("the index is being searched: change it when match_many has ended");
    }

    bool read(WorkerLease& lease, nb::handle publication) {
        lease.publication = kept_publication(publication, tree_.predicates().has_patterns());
        return read_publication(lease.publication.ptr(), tree_.vocabulary(), names_, lease.worker->event);
    }

    bool read_packed(WorkerLease& lease, const nb::bytes& attributes) {
        return read_message_pack(reinterpret_cast<const std::uint8_t*>(attributes.c_str()), attributes.size(),
                                 tree_.vocabulary(), lease.worker->event);
    }

    nb::object matched(WorkerLease& lease) {
        std::vector<std::int64_t> ids;
        const a_tree::SearchCounts counts = lease.worker->search.match(lease.worker->event, ids);
        return nb::make_tuple(as_ids(std::move(ids)), counts.candidates, counts.evaluated);
    }

    // The names are the last element. It is None if a subscription without destination matches.
    nb::object matched_destinations(WorkerLease& lease) {
        std::vector<std::uint32_t> numbers;
        const a_tree::SearchCounts counts =
            lease.worker->search.match_destinations(lease.worker->event, numbers, destinations_.bound());
        nb::list names;
        for (const std::uint32_t number : numbers) {
            if (number == Interner::kUnknown) return nb::make_tuple(counts.candidates, counts.evaluated, nb::none());
            const std::string& name = destinations_.text(number);
            names.append(nb::str(name.data(), name.size()));
        }
        return nb::make_tuple(counts.candidates, counts.evaluated, names);
    }

    void search_all(const std::vector<Event>& events, std::size_t count, std::vector<Answer>& answers,
                    std::vector<std::unique_ptr<WorkerLease>>& leases);

    a_tree::ATree tree_;
    AttributeNames names_;
    ExpressionReader reader_;
    Interner destinations_;
    std::vector<std::unique_ptr<Worker>> idle_;
    std::uint32_t searching_ = 0;
};

nb::list BoundATree::match_many(nb::list publications, unsigned threads) {
    constexpr std::size_t kTogether = 256;
    nb::list results;
    std::vector<std::unique_ptr<WorkerLease>> leases;
    for (unsigned number = 0; number < std::max(1U, threads); ++number)
        leases.push_back(std::make_unique<WorkerLease>(*this));
    std::vector<Event> events(std::min(kTogether, publications.size()));
    std::vector<Answer> answers(events.size());
    for (std::size_t first = 0; first < publications.size(); first += kTogether) {
        const std::size_t count = std::min(kTogether, publications.size() - first);
        // Events refer to texts of the dicts. Copies keep them alive while other threads change the dicts.
        nb::list kept;
        std::vector<bool> is_plain(count, false);
        for (std::size_t number = 0; number < count; ++number) {
            const nb::object publication = kept_publication(publications[first + number], true);
            is_plain[number] = read_publication(publication.ptr(), tree_.vocabulary(), names_, events[number]);
            if (!is_plain[number]) events[number].begin(tree_.vocabulary());
            kept.append(publication);
        }
        search_all(events, count, answers, leases);
        for (std::size_t number = 0; number < count; ++number) {
            Answer& answer = answers[number];
            if (is_plain[number]) {
                results.append(
                    nb::make_tuple(as_ids(std::move(answer.ids)), answer.counts.candidates, answer.counts.evaluated));
                answer.ids = {};
            } else {
                results.append(nb::none());
            }
        }
    }
    return results;
}

void BoundATree::search_all(const std::vector<Event>& events, std::size_t count, std::vector<Answer>& answers,
                            std::vector<std::unique_ptr<WorkerLease>>& leases) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::exception_ptr> failures(leases.size());
    const auto work = [&](std::size_t worker) {
        try {
            for (std::size_t number = next++; number < count; number = next++) {
                answers[number].counts = leases[worker]->worker->search.match(events[number], answers[number].ids);
            }
        } catch (...) {
            failures[worker] = std::current_exception();
        }
    };
    {
        nb::gil_scoped_release released;
        std::vector<std::thread> others;
        for (std::size_t worker = 1; worker < leases.size(); ++worker) others.emplace_back(work, worker);
        work(0);
        for (std::thread& other : others) other.join();
    }
    for (const std::exception_ptr& failure : failures) {
        if (failure != nullptr) std::rethrow_exception(failure);
    }
}

nb::dict BoundATree::shape() const {
    const a_tree::GraphShape shape = tree_.shape();
    nb::dict figures;
    figures["nodes"] = shape.nodes;
    figures["levels"] = shape.levels;
    figures["l-nodes"] = shape.leaves;
    figures["i-nodes"] = shape.nodes - shape.leaves - shape.roots;
    figures["r-nodes"] = shape.roots;
    figures["edges"] = shape.edges;
    figures["distinct expressions"] = shape.distinct_expressions;
    figures["watched nodes"] = shape.watched;
    figures["points"] = tree_.predicates().points();
    figures["dimensions"] = tree_.predicates().dimensions();
    return figures;
}

}  // namespace

void bind_a_tree(nb::module_& module) {
    nb::class_<BoundATree>(module, "ATree")
        .def(nb::init<unsigned>(), nb::arg("identity_bits") = 32)
        .def("add", &BoundATree::add, nb::arg("id"), nb::arg("expression"))
        .def("set_destination", &BoundATree::set_destination, nb::arg("id"), nb::arg("name"))
        .def("remove", &BoundATree::remove, nb::arg("id"))
        .def("match", &BoundATree::match, nb::arg("publication"))
        .def("match_packed", &BoundATree::match_packed, nb::arg("attributes"))
        .def("match_destinations", &BoundATree::match_destinations, nb::arg("publication"))
        .def("match_packed_destinations", &BoundATree::match_packed_destinations, nb::arg("attributes"))
        .def("match_many", &BoundATree::match_many, nb::arg("publications"), nb::arg("threads"))
        .def("bytes", &BoundATree::bytes)
        .def("shape", &BoundATree::shape);
}

}  // namespace mercast::python
