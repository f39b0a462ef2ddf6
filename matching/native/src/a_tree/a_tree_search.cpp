#include "a_tree/a_tree_search.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "memory/fetch_line.hpp"

namespace mercast::a_tree {
namespace {

constexpr std::size_t kNodesAhead = 12;
constexpr std::size_t kSpansAhead = 24;
constexpr std::size_t kSpansOfNodesAhead = 6;
// Conjunctions of one batch. The data they need fits into the cache.
constexpr std::size_t kTogether = 512;

// All ones or zero. Compilers turn a conditional that chooses between two numbers into a branch, but not this mask.
std::uint32_t mask_of(bool condition) { return 0U - std::uint32_t{condition}; }

// Nearly all words of the bitmap of ids hold this many ids or fewer.
constexpr std::size_t kUsualInWord = 4;

// Marks ids in a bitmap from the smallest to the largest id, which also sorts them. A subscription may be marked more
// than once: by several children of a disjunction that is passed over.
struct MarkIds {
    std::uint64_t* bits;
    std::uint32_t first;
    std::size_t marked = 0;

    // Branch-free: the kind of the next link is not predictable. A link of another kind marks no bit.
    void add_if(bool is_subscription, Link link) {
        const std::uint32_t place = (link.detail - first) & mask_of(is_subscription);
        bits[place >> 6] |= std::uint64_t{is_subscription} << (place & 63);
        marked += is_subscription;
    }
    bool accepts(const Links&) const { return true; }
};

struct CollectIds {
    const ATree& index;
    std::vector<std::int64_t>& ids;

    void add_if(bool is_subscription, Link link) {
        if (is_subscription) ids.push_back(index.subscription(link.target()).id);
    }
    bool accepts(const Links&) const { return true; }
};

struct CollectDestinations {
    const ATree& index;
    std::vector<bool>& is_hit;
    std::vector<std::uint32_t>& destinations;

    void add_if(bool is_subscription, Link link) {
        if (!is_subscription) return;
        const std::uint32_t destination = index.subscription(link.target()).destination;
        if (is_hit[destination]) return;
        is_hit[destination] = true;
        destinations.push_back(destination);
    }

    // A node whose only link leads to a destination that is already hit need not be evaluated.
    bool accepts(const Links& links) const {
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
    ids.resize(sink.marked + kUsualInWord);
    const std::int64_t* end = write_marked(ids.data());
    ids.resize(static_cast<std::size_t>(end - ids.data()));
}

// Returns the end of the ids, and writes up to kUsualInWord meaningless ids beyond it. Branch-free: the number of bits
// in a word is not predictable, so each word is read as if it had the usual number.
std::int64_t* ATreeSearch::write_marked(std::int64_t* id) {
    constexpr std::uint64_t kHighest = std::uint64_t{1} << 63;
    std::int64_t first = index_.base() + index_.first_offset();
    for (std::uint64_t& word : bits_) {
        std::uint64_t bits = std::exchange(word, 0);
        const std::int64_t start = std::exchange(first, first + 64);
        if (bits == 0) continue;
        for (std::size_t number = 0; number < kUsualInWord; ++number) {
            *id = start + std::countr_zero(bits | kHighest);
            id += bits != 0;
            bits &= bits - 1;
        }
        for (; bits != 0; bits &= bits - 1) *id++ = start + std::countr_zero(bits);
    }
    return id;
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
    propagated_ = 0;
    waiting_.clear();
    decided_ = 0;
    failed_ = 0;
    set_presence();
    for (const NodeId constant : graph.watched_constants()) true_nodes_.push_back(constant);
    index_.predicates().satisfied(*event_, state_);
    propagate_predicates(sink);
    while (propagated_ < true_nodes_.size() || decided_ < waiting_.size()) {
        propagate_nodes(sink);
        decide(sink);
    }
    clear_presence();
}

void ATreeSearch::set_presence() {
    const std::size_t dimensions = 4 * std::size_t{index_.vocabulary().attributes.bound()};
    if (is_present_.size() < dimensions) {
        is_present_.resize(dimensions);
        values_.resize(dimensions);
    }
    is_present_[0] = 1;
    for (const Field& field : event_->fields()) {
        const std::uint32_t dimension = PredicateIndex::dimension_of(field.attribute, field.type);
        is_present_[dimension] = 1;
        values_[dimension] = PredicateIndex::value_of(field);
    }
}

void ATreeSearch::clear_presence() {
    for (const Field& field : event_->fields()) {
        is_present_[PredicateIndex::dimension_of(field.attribute, field.type)] = 0;
    }
}

template <class Sink> void ATreeSearch::propagate_predicates(Sink& sink) {
    const std::uint64_t* words = index_.graph().words();
    const PickedList<Link>& spans = state_.spans;
    for (std::size_t number = 0; number < std::min(kSpansAhead, spans.size()); ++number) {
        fetch_line(words + spans[number].detail);
    }
    waiting_.make_room(state_.singles.size());
    for (const Link link : state_.singles) follow(link, sink);
    for (std::size_t number = 0; number < spans.size(); ++number) {
        if (number + kSpansAhead < spans.size()) fetch_line(words + spans[number + kSpansAhead].detail);
        follow_all(words + spans[number].detail, spans[number].target(), sink);
    }
}

template <class Sink> void ATreeSearch::propagate_nodes(Sink& sink) {
    const Links* all = index_.graph().links();
    const std::uint64_t* words = index_.graph().words();
    for (; propagated_ < true_nodes_.size(); ++propagated_) {
        const std::size_t left = true_nodes_.size() - propagated_;
        if (left > kNodesAhead) fetch_line(all + true_nodes_[propagated_ + kNodesAhead]);
        if (left > kSpansOfNodesAhead) {
            const Links& soon = all[true_nodes_[propagated_ + kSpansOfNodesAhead]];
            if (soon.capacity > 0) fetch_line(words + soon.word);
        }
        if (state_.is_propagated(true_nodes_[propagated_])) continue;
        state_.set_propagated(true_nodes_[propagated_]);
        ++state_.evaluated;
        const Links& links = all[true_nodes_[propagated_]];
        follow_all(links.capacity > 0 ? words + links.word : &links.word, links.size, sink);
    }
}

template <class Sink> inline void ATreeSearch::follow_all(const std::uint64_t* links, std::size_t count, Sink& sink) {
    waiting_.make_room(count);
    for (std::size_t number = 0; number < count; ++number) follow(Link::read(links[number]), sink);
}

// Branch-free: nearly all links lead to subscriptions and conjunctions, in an order that is not predictable. Both are
// written, and one of them counts. A conjunction whose gate is missing is not evaluated (ABE-Gen: 192 conjunctions for
// each publication instead of 687).
template <class Sink> inline void ATreeSearch::follow(Link link, Sink& sink) {
    if (link.kind() == LinkKind::Disjunction) {
        state_.prefetch(link.target());
        true_nodes_.push_back(link.target());
        return;
    }
    const bool is_conjunction = link.kind() == LinkKind::Conjunction;
    sink.add_if(!is_conjunction, link);
    const std::uint32_t gate = link.target() & mask_of(is_conjunction);
    const bool is_waiting = (is_present_[gate] & std::uint8_t{is_conjunction}) != 0;
    waiting_.push_if(link.detail, is_waiting);
    fetch_line(index_.graph().words() + (link.detail & mask_of(is_waiting)));
}

// Evaluates conjunctions in batches and steps. Each step prefetches the data that the next step reads, because the
// chain of cache misses is most of the cost.
template <class Sink> void ATreeSearch::decide(Sink& sink) {
    while (decided_ < waiting_.size()) {
        const std::size_t count = std::min(kTogether, waiting_.size() - decided_);
        const std::span<const std::uint32_t> some(waiting_.begin() + decided_, count);
        for (const std::uint32_t offset : some) fetch_disjunctions(children_at(offset));
        reachable_.clear();
        for (const std::uint32_t offset : some) {
            if (lacks_attributes(children_at(offset))) continue;
            reachable_.push_back(offset);
            fetch_truth(children_at(offset));
        }
        for (const std::uint32_t offset : reachable_) decide_one(children_at(offset), sink);
        decided_ += count;
    }
}

void ATreeSearch::fetch_disjunctions(Children conjunction) const {
    for (std::uint32_t number = 1, count = conjunction.size(); number < count; ++number) {
        const Child child = conjunction[number];
        fetch_line(index_.graph().words() + (child.is_connective() ? child.children() : 0));
    }
}

// Prefetches the data that decides a conjunction whose attributes are present.
void ATreeSearch::fetch_truth(Children conjunction) const {
    const ExpressionGraph& graph = index_.graph();
    state_.prefetch(conjunction.head().node);
    fetch_line(&graph.links()[conjunction.head().node]);
    for (std::uint32_t number = 1, count = conjunction.size(); number < count; ++number) {
        const Child child = conjunction[number];
        fetch_truth(child);
        if (!child.is_connective()) continue;
        const Children below = children_at(child.children());
        const std::uint32_t parts = std::min(below.size(), Children::kFew);
        for (std::uint32_t part = 0; part < parts; ++part) fetch_truth(below[part]);
    }
}

void ATreeSearch::fetch_truth(Child child) const {
    if (is_missing(child)) return;
    state_.prefetch(child.node);
    if (child.is_connective()) {
        fetch_line(index_.graph().words() + child.children());
    } else {
        index_.predicates().prefetch_test(child.node);
    }
}

template <class Sink> void ATreeSearch::decide_one(Children conjunction, Sink& sink) {
    const ExpressionGraph& graph = index_.graph();
    const ChildrenHead head = conjunction.head();
    if (!sink.accepts(graph.links()[head.node])) return;
    // A conjunction occurs more than once when its access child is a disjunction that is passed over.
    if (!state_.is_known(head.node)) {
        state_.set(head.node, are_others_true(conjunction));
        if (!state_.is_true(head.node)) {
            const bool is_many = head.subscriptions == ChildrenHead::kMany;
            failed_ += is_many ? graph.node(head.node).subscriptions : head.subscriptions;
            ++state_.evaluated;
        }
    }
    if (state_.is_true(head.node)) true_nodes_.push_back(head.node);
}

// Whether missing attributes alone make the conjunction false, given that its first child is true. This holds for most
// conjunctions.
bool ATreeSearch::lacks_attributes(Children conjunction) const {
    for (std::uint32_t number = 1, count = conjunction.size(); number < count; ++number) {
        const Child child = conjunction[number];
        if (is_missing(child) || lacks_attributes(child)) return true;
    }
    return false;
}

// The same for a child that is a connective. Returns false for a large connective, which is then evaluated once.
bool ATreeSearch::lacks_attributes(Child child) const {
    if (!child.is_connective()) return false;
    const Children connective = children_at(child.children());
    const std::uint32_t count = connective.size();
    if (count > Children::kFew) return false;
    std::uint32_t missing = 0;
    for (std::uint32_t number = 0; number < count; ++number) missing += is_missing(connective[number]);
    return connective.head().is_disjunction ? missing == count : missing > 0;
}

// Whether the children other than the first are true. The first is known to be true.
bool ATreeSearch::are_others_true(Children conjunction) {
    for (std::uint32_t number = 1, count = conjunction.size(); number < count; ++number) {
        if (!is_true(conjunction[number])) return false;
    }
    return true;
}

bool ATreeSearch::is_true(Child child) {
    if (state_.is_known(child.node)) return state_.is_true(child.node);
    return child.is_connective() ? evaluate_connective(child) : is_predicate_true(child);
}

// Evaluates a predicate whose attribute is present.
bool ATreeSearch::is_predicate_true(Child child) {
    const bool truth = index_.predicates().is_true_at(child.node, values_[child.dimension()], *event_);
    state_.set(child.node, truth);
    ++state_.evaluated;
    return truth;
}

// Evaluates a connective whose value is not known, and the nodes below that it needs, none of them twice.
bool ATreeSearch::evaluate_connective(Child root) {
    walk_.assign(1, {root, 0});
    while (!walk_.empty()) {
        const Child at = walk_.back().at;
        const Children children = children_at(at.children());
        const bool deciding = children.head().is_disjunction;
        const std::uint32_t count = children.size();
        bool is_decided = false;
        bool is_waiting = false;
        for (std::uint32_t& next = walk_.back().next; !is_decided && next < count; ++next) {
            const Child child = children[next];
            if (is_missing(child) || lacks_attributes(child)) {
                is_decided = !deciding;
            } else if (!child.is_connective() || state_.is_known(child.node)) {
                is_decided = is_true(child) == deciding;
            } else {
                is_waiting = true;
                walk_.push_back({child, 0});
                break;
            }
        }
        if (!is_waiting) set_result(at.node, is_decided == deciding);
    }
    return state_.is_true(root.node);
}

void ATreeSearch::set_result(NodeId node, bool truth) {
    state_.set(node, truth);
    ++state_.evaluated;
    walk_.pop_back();
}

}  // namespace mercast::a_tree
