#include "a_tree_search.hpp"

#include <algorithm>
#include <bit>

namespace mercast::a_tree {
namespace {

constexpr std::size_t kLinksAhead = 12;
constexpr std::size_t kSpansAhead = 6;
constexpr std::size_t kOperandsAhead = 8;

// Marks ids in a bitmap that spans from the smallest to the largest id, which sorts them on the way.
struct MarkIds {
    std::uint64_t* bits;
    std::uint32_t first;
    std::uint64_t count = 0;

    void take(std::uint32_t, std::uint32_t offset) {
        const std::uint32_t place = offset - first;
        bits[place >> 6] |= std::uint64_t{1} << (place & 63);
        ++count;
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
        const Link link = std::bit_cast<Link>(links.word);
        return link.kind() != LinkKind::Subscription || !is_hit[index.subscription(link.target()).destination];
    }
};

}  // namespace

SearchCounts ATreeSearch::match(const Event& event, std::vector<std::int64_t>& ids) {
    ids.clear();
    event_ = &event;
    if (index_.size() == 0) return {};
    if (!index_.is_dense()) {
        CollectIds sink{index_, ids};
        const SearchCounts counts = run(sink);
        std::sort(ids.begin(), ids.end());
        return counts;
    }
    const std::size_t words = ((index_.last_offset() - index_.first_offset()) >> 6) + 1;
    if (bits_.size() != words) bits_.resize(words);
    MarkIds sink{bits_.data(), index_.first_offset()};
    const SearchCounts counts = run(sink);
    ids.resize(sink.count);
    std::int64_t* id = ids.data();
    const std::int64_t first = index_.base() + index_.first_offset();
    for (std::size_t word = 0; word < words; ++word) {
        std::uint64_t bits = bits_[word];
        if (bits == 0) continue;
        bits_[word] = 0;
        for (; bits != 0; bits &= bits - 1) *id++ = first + static_cast<std::int64_t>(word * 64) + std::countr_zero(bits);
    }
    return counts;
}

SearchCounts ATreeSearch::match_destinations(const Event& event, std::vector<std::uint32_t>& destinations,
                                             std::uint32_t bound) {
    destinations.clear();
    event_ = &event;
    if (index_.size() == 0) return {};
    if (is_hit_.size() < bound) is_hit_.resize(bound);
    CollectDestinations sink{index_, is_hit_, destinations};
    const SearchCounts counts = run(sink);
    for (const std::uint32_t destination : destinations) is_hit_[destination] = false;
    return counts;
}

template <class Sink> SearchCounts ATreeSearch::run(Sink& sink) {
    const ExpressionGraph& graph = index_.graph();
    state_.begin(graph.node_limit());
    told_ = 0;
    candidates_ = 0;
    waiting_.resize(graph.top_level() + 1);
    note_presence();
    for (const NodeId constant : graph.watched_constants()) state_.find(constant);
    index_.predicates().satisfied(*event_, state_);
    tell_listeners(sink);
    for (std::vector<Waiting>& level : waiting_) {
        if (level.empty()) continue;
        decide(level, sink);
        level.clear();
        tell_listeners(sink);
    }
    forget_presence();
    return {candidates_, state_.evaluated};
}

void ATreeSearch::note_presence() {
    const std::size_t dimensions = 4 * std::size_t{index_.vocabulary().attributes.bound()};
    if (is_present_.size() < dimensions) is_present_.resize(dimensions);
    for (const Field& field : event_->fields()) {
        is_present_[PredicateIndex::dimension_of(field.attribute, field.type)] = 1;
    }
}

void ATreeSearch::forget_presence() {
    for (const Field& field : event_->fields()) {
        is_present_[PredicateIndex::dimension_of(field.attribute, field.type)] = 0;
    }
}

template <class Sink> void ATreeSearch::tell_listeners(Sink& sink) {
    const ExpressionGraph& graph = index_.graph();
    const Links* all = graph.links();
    const std::uint64_t* words = graph.words();
    std::vector<NodeId>& found = state_.found;
    for (; told_ < found.size(); ++told_) {
        if (told_ + kLinksAhead < found.size()) __builtin_prefetch(all + found[told_ + kLinksAhead]);
        if (told_ + kSpansAhead < found.size()) {
            const Links& soon = all[found[told_ + kSpansAhead]];
            if (soon.capacity > 0) __builtin_prefetch(words + soon.word);
        }
        const Links& links = all[found[told_]];
        const std::uint64_t* word = links.capacity > 0 ? words + links.word : &links.word;
        for (std::uint32_t number = 0; number < links.size; ++number) {
            const Link link = std::bit_cast<Link>(word[number]);
            switch (link.kind()) {
                case LinkKind::Subscription:
                    ++candidates_;
                    sink.take(link.target(), link.detail);
                    break;
                case LinkKind::Disjunction:
                    if (!state_.is_true(link.target())) {
                        state_.find(link.target());
                        ++state_.evaluated;
                    }
                    break;
                case LinkKind::LeafConjunction:
                    waiting_[2].push_back({link.target(), link.detail});
                    break;
                case LinkKind::Conjunction:
                    waiting_[graph.level(link.target())].push_back({link.target(), link.detail});
                    break;
            }
        }
    }
}

template <class Sink> void ATreeSearch::decide(const std::vector<Waiting>& conjunctions, Sink& sink) {
    const std::uint64_t* words = index_.graph().words();
    const Links* links = index_.graph().links();
    for (std::size_t number = 0; number < conjunctions.size(); ++number) {
        if (number + kOperandsAhead < conjunctions.size()) {
            __builtin_prefetch(words + conjunctions[number + kOperandsAhead].operands);
        }
        const Waiting waiting = conjunctions[number];
        if (!sink.wants(links[waiting.node])) continue;
        ++state_.evaluated;
        if (is_true(waiting.operands)) {
            state_.find(waiting.node);
        } else {
            candidates_ += std::bit_cast<ChildrenHead>(words[waiting.operands]).subscriptions;
        }
    }
}

// Are the operands true besides the first, which has spoken?
bool ATreeSearch::is_true(std::uint32_t operands) {
    const std::uint64_t* word = index_.graph().words() + operands;
    const std::uint32_t count = std::bit_cast<ChildrenHead>(*word).count;
    for (std::uint32_t number = 1; number < count; ++number) {
        const Child child = std::bit_cast<Child>(word[number + 1]);
        if (!is_true(child.node, child.detail)) return false;
    }
    return true;
}

bool ATreeSearch::is_true(NodeId node, std::uint32_t dimension) {
    if (dimension > 0 && is_present_[dimension] == 0) return false;
    if (state_.is_true(node)) return true;
    // Levels below are done: a watched node that is true is known to be.
    if (state_.is_false(node) || index_.graph().links()[node].size > 0) return false;
    return pull(node);
}

// Evaluates a node that nobody watches, and what it needs of those below, none of them twice.
bool ATreeSearch::pull(NodeId asked) {
    const ExpressionGraph& graph = index_.graph();
    walk_.assign(1, {asked, 0});
    while (!walk_.empty()) {
        const NodeId node = walk_.back().node;
        const ExpressionGraph::Node& shape = graph.node(node);
        if (shape.kind == NodeKind::Predicate) {
            settle(node, index_.predicates().is_true(shape.children, *event_));
            continue;
        }
        const bool deciding = shape.kind == NodeKind::Disjunction;
        const std::span<const Child> children = graph.children(node);
        bool is_decided = false;
        NodeId below = kNone;
        while (!is_decided && below == kNone && walk_.back().next < children.size()) {
            const NodeId child = children[walk_.back().next].node;
            const bool is_known = state_.is_true(child) || state_.is_false(child) || graph.links()[child].size > 0;
            if (!is_known) {
                below = child;
                break;
            }
            is_decided = state_.is_true(child) == deciding;
            ++walk_.back().next;
        }
        if (below != kNone) {
            walk_.push_back({below, 0});
        } else {
            settle(node, is_decided == deciding);
        }
    }
    return state_.is_true(asked);
}

void ATreeSearch::settle(NodeId node, bool truth) {
    truth ? state_.set_true(node) : state_.set_false(node);
    ++state_.evaluated;
    walk_.pop_back();
}

}  // namespace mercast::a_tree
