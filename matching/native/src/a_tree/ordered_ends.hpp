// Ends of ranges in order, each with the link of the predicate that it bounds.
//
// Short sorted runs in order, the first in place and the others in a set. Insertion and removal find their run in O(log
// n) and move at most one run's entries. Reading visits the runs one after the other. Two neighbouring runs that are
// mostly empty are merged, so that memory is proportional to what is stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "a_tree/expression_graph.hpp"
#include "core/event.hpp"
#include "core/interning.hpp"
#include "core/values.hpp"
#include "memory/fetch_line.hpp"

namespace mercast::a_tree {

// A value's place in the order of its class. Texts with equal keys are compared as texts.
struct Place {
    std::uint64_t key = 0;
    std::int32_t residual = 0;
    std::string_view text;

    static Place of(Number number) { return {number.key, number.residual, {}}; }
    static Place of(std::string_view text) { return {text_order_key(text), 0, text}; }
    static Place of(const Field& field) { return field.type == TypeClass::Text ? of(field.text) : of(field.number); }
};

struct End {
    std::uint64_t key;
    // The residual of a number or the number of a text, times two; plus one if the end is just above the value.
    std::int32_t detail;
    std::uint32_t owner;  // Distinguishes ends that are otherwise equal.
};

class OrderedEnds {
  public:
    // Ends of texts, or of numbers if there is no interner.
    explicit OrderedEnds(const Interner* texts) : others_(ByFirst{texts}) {}

    bool is_empty() const { return first_.ends.empty(); }
    void insert(const End& end, std::uint64_t link);
    void remove(const End& end);
    void update(const End& end, std::uint64_t link);

    // Visit the ends that are not above the place, and those above it, in pieces: ends, their links, and how many.
    template <class Visit> void visit_up_to(const Place& place, Visit&& visit) const {
        const std::size_t count = count_up_to(first_, place);
        visit(first_.ends.data(), first_.links.data(), count);
        if (count < first_.ends.size()) return;
        for (const auto& run : others_) {
            const std::size_t more = count_up_to(*run, place);
            visit(run->ends.data(), run->links.data(), more);
            if (more < run->ends.size()) return;
        }
    }

    template <class Visit> void visit_above(const Place& place, Visit&& visit) const {
        auto run = others_.upper_bound(place);
        const Run& before = run == others_.begin() ? first_ : **std::prev(run);
        const std::size_t below = count_up_to(before, place);
        visit(before.ends.data() + below, before.links.data() + below, before.ends.size() - below);
        for (; run != others_.end(); ++run) visit((*run)->ends.data(), (*run)->links.data(), (*run)->ends.size());
    }

    void prefetch() const {
        constexpr std::size_t kLine = 8;
        const std::size_t size = first_.ends.size();
        for (std::size_t at = 0; at < size; at += kLine) fetch_line(first_.links.data() + at);
        // The positions that a binary search reads first.
        for (std::size_t part = 1; part < 8; ++part) fetch_line(first_.ends.data() + size * part / 8);
    }

    bool is_above(const End& end, const Place& place) const { return others_.key_comp().is_above(end, place); }
    std::size_t bytes() const;

  private:
    // Links are stored apart from ends, because a search reads nothing else of most ends.
    struct Run {
        std::vector<End> ends;
        std::vector<std::uint64_t> links;

        const End& front() const { return ends.front(); }
    };
    static constexpr std::size_t kLongestRun = 128;

    struct ByFirst {
        using is_transparent = void;
        const Interner* texts;

        bool operator()(const std::unique_ptr<Run>& one, const std::unique_ptr<Run>& other) const {
            return is_before(one->front(), other->front());
        }
        bool operator()(const std::unique_ptr<Run>& run, const End& end) const { return is_before(run->front(), end); }
        bool operator()(const End& end, const std::unique_ptr<Run>& run) const { return is_before(end, run->front()); }
        bool operator()(const Place& place, const std::unique_ptr<Run>& run) const {
            return is_above(run->front(), place);
        }
        bool operator()(const std::unique_ptr<Run>& run, const Place& place) const {
            return !is_above(run->front(), place);
        }

        bool is_before(const End& one, const End& other) const;
        bool is_above(const End& end, const Place& place) const {
            if (end.key != place.key) return end.key > place.key;
            if (texts == nullptr) return end.detail > 2 * place.residual;
            const int order =
                std::string_view(texts->text(static_cast<std::uint32_t>(end.detail >> 1))).compare(place.text);
            return order != 0 ? order > 0 : (end.detail & 1) != 0;
        }
    };

    using Runs = std::set<std::unique_ptr<Run>, ByFirst>;

    std::size_t count_up_to(const Run& run, const Place& place) const {
        const auto is_not_above = [&](const End& end) { return !is_above(end, place); };
        return static_cast<std::size_t>(std::partition_point(run.ends.begin(), run.ends.end(), is_not_above) -
                                        run.ends.begin());
    }
    // The last run that does not begin after the end, or the first run, for which the iterator is `others_.end()`.
    std::pair<Run*, Runs::iterator> run_for(const End& end);
    std::ptrdiff_t place_in(const Run& run, const End& end) const;
    void split(Run& run);
    void join(Run& run, Runs::iterator next);

    Run first_;
    Runs others_;
};

}  // namespace mercast::a_tree
