#include "a_tree_search.hpp"

#include <algorithm>
#include <bit>

namespace mercast::a_tree {
namespace {

constexpr std::size_t kPredicatesAhead = 16;
constexpr std::size_t kNodesAhead = 12;
constexpr std::size_t kSpansAhead = 6;
constexpr std::size_t kChildrenAhead = 24;
constexpr std::size_t kGrandchildrenAhead = 12;
constexpr std::size_t kTestsAhead = 5;

// Marks ids in a bitmap that spans from the smallest to the largest id, which sorts them on the way. A subscription may
// come more than once, by several children of a disjunction that is passed over.
struct MarkIds {
    std::uint64_t* bits;
    std::uint32_t first;

    void take(std::uint32_t, std::uint32_t offset) {
        const std::uint32_t place = offset - first;
        bits[place >> 6] |= std::uint64_t{1} << (place & 63);
    }
    bool wants(const Links&) const { return true; }
};

struct CollectIds {
    const ATree& index;
    std::vector<std::int64_t>& ids;

    void take(std::uint32_t subscription, std::uint32_t) { ids.push_back(index.subscription(subscription).id); }
    bool wants(const Links&) const { return true; }
};

struct CollectDestinations {
    const ATree& index;
    std::vector<bool>& is_hit;
    std::vector<std::uint32_t>& destinations;

    void take(std::uint32_t subscription, std::uint32_t) {
        const std::uint32_t destination = index.subscription(subscription).destination;
        if (is_hit[destination]) return;
        is_hit[destination] = true;
        destinations.push_back(destination);
    }

    // A node that only leads to a destination that is hit need not be evaluated.
    bool wants(const Links& links) const {
        if (links.size != 1) return true;
        const Link link = Link::read(links.word);
        return link.kind() != LinkKind::Subscription || !is_hit[index.subscription(link.target()).destination];
    }
};

}  // namespace

SearchCounts ATreeSearch::match(const Event& event, std::vector<std::int64_t>& ids) {
    ids.clear();
    event_ = &event;
    if (index_.size() == 0) return {};
    if (index_.is_dense()) {
        mark_ids(ids);
    } else {
        CollectIds sink{index_, ids};
        run(sink);
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }
    return {ids.size() + failed_, state_.evaluated};
}

void ATreeSearch::mark_ids(std::vector<std::int64_t>& ids) {
    const std::size_t words = ((index_.last_offset() - index_.first_offset()) >> 6) + 1;
    if (bits_.size() != words) bits_.resize(words);
    MarkIds sink{bits_.data(), index_.first_offset()};
    run(sink);
    std::size_t count = 0;
    for (const std::uint64_t bits : bits_) count += static_cast<std::size_t>(std::popcount(bits));
    ids.resize(count);
    std::int64_t* id = ids.data();
    std::int64_t first = index_.base() + index_.first_offset();
    for (std::uint64_t& word : bits_) {
        for (std::uint64_t bits = word; bits != 0; bits &= bits - 1) *id++ = first + std::countr_zero(bits);
        word = 0;
        first += 64;
    }
}

SearchCounts ATreeSearch::match_destinations(const Event& event, std::vector<std::uint32_t>& destinations,
                                             std::uint32_t bound) {
    destinations.clear();
    event_ = &event;
    if (index_.size() == 0) return {};
    if (is_hit_.size() < bound) is_hit_.resize(bound);
    CollectDestinations sink{index_, is_hit_, destinations};
    run(sink);
    for (const std::uint32_t destination : destinations) is_hit_[destination] = false;
    return {destinations.size() + failed_, state_.evaluated};
}

template <class Sink> void ATreeSearch::run(Sink& sink) {
    const ExpressionGraph& graph = index_.graph();
    state_.begin(graph);
    true_nodes_.clear();
    waiting_.clear();
    told_ = 0;
    decided_ = 0;
    failed_ = 0;
    note_presence();
    for (const NodeId constant : graph.watched_constants()) true_nodes_.push_back(constant);
    index_.predicates().satisfied(*event_, state_);
    tell_of_predicates(sink);
    while (told_ < true_nodes_.size() || decided_ < waiting_.size()) {
        tell_of_nodes(sink);
        decide(sink);
    }
    forget_presence();
}

void ATreeSearch::note_presence() {
    const std::size_t dimensions = 4 * std::size_t{index_.vocabulary().attributes.bound()};
    if (is_present_.size() < dimensions) {
        is_present_.resize(dimensions);
        values_.resize(dimensions);
    }
    for (const Field& field : event_->fields()) {
        const std::uint32_t dimension = PredicateIndex::dimension_of(field.attribute, field.type);
        is_present_[dimension] = 1;
        values_[dimension] = PredicateIndex::value_of(field);
    }
}

void ATreeSearch::forget_presence() {
    for (const Field& field : event_->fields()) {
        is_present_[PredicateIndex::dimension_of(field.attribute, field.type)] = 0;
    }
}

template <class Sink> void ATreeSearch::tell_of_predicates(Sink& sink) {
    const std::uint64_t* words = index_.graph().words();
    const std::vector<std::uint64_t>& links = state_.links;
    for (std::size_t number = 0; number < links.size(); ++number) {
        if (number + kPredicatesAhead < links.size()) {
            const Link soon = Link::read(links[number + kPredicatesAhead]);
            if (soon.kind() == LinkKind::Span) __builtin_prefetch(words + soon.detail);
        }
        const Link link = Link::read(links[number]);
        if (link.kind() != LinkKind::Span) {
            follow(link, sink);
            continue;
        }
        const std::uint64_t* word = words + link.detail;
        for (std::uint32_t place = 0; place < link.target(); ++place) follow(Link::read(word[place]), sink);
    }
}

template <class Sink> void ATreeSearch::tell_of_nodes(Sink& sink) {
    const Links* all = index_.graph().links();
    const std::uint64_t* words = index_.graph().words();
    for (; told_ < true_nodes_.size(); ++told_) {
        const std::size_t left = true_nodes_.size() - told_;
        if (left > kNodesAhead) __builtin_prefetch(all + true_nodes_[told_ + kNodesAhead]);
        if (left > kSpansAhead) {
            const Links& soon = all[true_nodes_[told_ + kSpansAhead]];
            if (soon.capacity > 0) __builtin_prefetch(words + soon.word);
        }
        if (state_.is_told(true_nodes_[told_])) continue;
        state_.set_told(true_nodes_[told_]);
        ++state_.evaluated;
        const Links& links = all[true_nodes_[told_]];
        const std::uint64_t* word = links.capacity > 0 ? words + links.word : &links.word;
        for (std::uint32_t number = 0; number < links.size; ++number) follow(Link::read(word[number]), sink);
    }
}

template <class Sink> inline void ATreeSearch::follow(Link link, Sink& sink) {
    switch (link.kind()) {
        case LinkKind::Subscription:
            sink.take(link.target(), link.detail);
            break;
        case LinkKind::Disjunction:
            state_.prefetch(link.target());
            true_nodes_.push_back(link.target());
            break;
        case LinkKind::Conjunction:
            waiting_.push_back({link.target(), link.detail});
            break;
        case LinkKind::Span:
            break;  // Has been taken apart.
    }
}

// Prefetches the tests of predicates whose attributes are there.
MERCAST_PREFETCHES void ATreeSearch::fetch_tests(Children children) const {
    const std::uint32_t count = children.size();
    for (std::uint32_t number = 0; number < count; ++number) {
        const Child child = children[number];
        if (child.is_connective() || is_missing(child)) continue;
        index_.predicates().prefetch_test(child.node);
        state_.prefetch(child.node);
    }
}

// Prefetches what the conjunctions after this one will need: their children, what stands in those, and the tests there.
MERCAST_PREFETCHES void ATreeSearch::fetch_ahead() const {
    const std::uint64_t* words = index_.graph().words();
    const std::size_t left = waiting_.size() - decided_;
    if (left > kChildrenAhead) __builtin_prefetch(words + waiting_[decided_ + kChildrenAhead].children);
    if (left > kGrandchildrenAhead) {
        const Children children(words + waiting_[decided_ + kGrandchildrenAhead].children);
        for (std::uint32_t number = 1, count = children.size(); number < count; ++number) {
            const Child child = children[number];
            if (is_missing(child)) break;
            state_.prefetch(child.node);
            if (child.is_connective()) {
                __builtin_prefetch(words + child.children());
            } else {
                index_.predicates().prefetch_test(child.node);
            }
        }
    }
    if (left > kTestsAhead) {
        const Children children(words + waiting_[decided_ + kTestsAhead].children);
        for (std::uint32_t number = 1, count = children.size(); number < count; ++number) {
            const Child child = children[number];
            if (is_missing(child)) break;
            if (child.is_connective()) fetch_tests(Children(words + child.children()));
        }
    }
}

template <class Sink> void ATreeSearch::decide(Sink& sink) {
    const std::uint64_t* words = index_.graph().words();
    const Links* links = index_.graph().links();
    for (; decided_ < waiting_.size(); ++decided_) {
        fetch_ahead();
        const Waiting waiting = waiting_[decided_];
        if (!sink.wants(links[waiting.node])) continue;
        const Children children(words + waiting.children);
        if (are_others_true(children)) {
            true_nodes_.push_back(waiting.node);
        } else {
            failed_ += children.subscriptions();
            ++state_.evaluated;
        }
    }
}

// Are the children true besides the first, which has spoken? Those that need an attribute that is missing are not, which
// costs nothing to see.
bool ATreeSearch::are_others_true(Children children) {
    const std::uint32_t count = children.size();
    for (std::uint32_t number = 1; number < count; ++number) {
        if (is_missing(children[number])) return false;
    }
    for (std::uint32_t number = 1; number < count; ++number) {
        if (!is_true(children[number])) return false;
    }
    return true;
}

bool ATreeSearch::is_true(Child child) {
    if (state_.is_known(child.node)) return state_.is_true(child.node);
    return child.is_connective() ? pull(child) : is_predicate_true(child);
}

// Of a predicate whose attribute is there.
bool ATreeSearch::is_predicate_true(Child child) {
    const bool truth = index_.predicates().is_true_at(child.node, values_[child.dimension()], *event_);
    state_.set(child.node, truth);
    ++state_.evaluated;
    return truth;
}

// Evaluates a connective that is not known to be true, and what it needs of those below, none of them twice.
bool ATreeSearch::pull(Child asked) {
    const std::uint64_t* words = index_.graph().words();
    walk_.assign(1, {asked, 0});
    while (!walk_.empty()) {
        const Child at = walk_.back().at;
        const Children children(words + at.children());
        const bool deciding = children.is_disjunction();
        const std::uint32_t count = children.size();
        bool is_decided = false;
        bool is_waiting = false;
        for (std::uint32_t& next = walk_.back().next; !is_decided && next < count; ++next) {
            const Child child = children[next];
            if (is_missing(child)) {
                is_decided = !deciding;
            } else if (!child.is_connective() || state_.is_known(child.node)) {
                is_decided = is_true(child) == deciding;
            } else {
                is_waiting = true;
                walk_.push_back({child, 0});
                break;
            }
        }
        if (!is_waiting) settle(at.node, is_decided == deciding);
    }
    return state_.is_true(asked.node);
}

void ATreeSearch::settle(NodeId node, bool truth) {
    state_.set(node, truth);
    ++state_.evaluated;
    walk_.pop_back();
}

}  // namespace mercast::a_tree
