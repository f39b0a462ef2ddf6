// The nodes of an A-Tree and the links between them [ATREE 4]: each distinct subexpression stands once.
//
// Expressions arrive without NOT, XOR and XNOR (zero suppression, [ATREE 5.2.1]): there are predicates, conjunctions
// and disjunctions. A conjunction in a conjunction, or a disjunction in a disjunction, has become part of it, and
// children are distinct; so a node is known by its kind and the set of its children. The graph knows nothing of values:
// what a predicate says, and when it is true, is for `Leaves`.
//
// Links lead upwards, from a node to whom it tells that it is true: disjunctions, conjunctions and subscriptions. A
// node is watched when it has such links. A watched disjunction hears all of its children, a watched conjunction only
// the one that is expected to be true least often, its access child (propagation on demand, [ATREE 5.2.2]). A
// disjunction with one listener is passed over: its children tell the listener. So a conjunction may hear of its access
// child as often as that has children, and a disjunction with many is passed over for a subscription only.
//
// Every change costs time for the expression that comes or goes, never for the index: links know their place in the
// list they are in, removal puts the last link into the gap, and freed nodes and spans are used again.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/id_table.hpp"
#include "core/values.hpp"
#include "memory/huge_pages.hpp"
#include "memory/span_pool.hpp"

namespace mercast::a_tree {

using NodeId = std::uint32_t;

enum class NodeKind : std::uint8_t { Unused, Predicate, Conjunction, Disjunction };

enum class LinkKind : std::uint32_t { Subscription, Disjunction, Conjunction, Span };

// To whom a node tells that it is true.
struct Link {
    static constexpr std::uint32_t kTargetBits = 29;
    static constexpr std::uint32_t kLargestTarget = (1U << kTargetBits) - 1;

    std::uint32_t where;
    // Of a subscription: the owner's business. Of a conjunction: the offset of its children, so that matching need not
    // look at the node. Of a span, which stands for several links: their offset.
    std::uint32_t detail;

    LinkKind kind() const { return static_cast<LinkKind>(where >> kTargetBits); }
    // The number of the subscription or node. Of a span, how many links it has. Of a conjunction, its gate: a dimension
    // without which it cannot be true, 0 if there is none. Most conjunctions fail there, and need not be looked at.
    std::uint32_t target() const { return where & kLargestTarget; }
    std::uint64_t word() const { return std::bit_cast<std::uint64_t>(*this); }
    static Link to(LinkKind kind, std::uint32_t target, std::uint32_t detail) {
        return {static_cast<std::uint32_t>(kind) << kTargetBits | target, detail};
    }
    static Link read(std::uint64_t word) { return std::bit_cast<Link>(word); }
};

// One child of a node, as it stands in the pool. What a search needs to know of it is here, because a look at the child
// itself would be a cache miss.
struct Child {
    NodeId node;
    // Of a predicate, its dimension: without a value in it, it is not true; 0 if there is none. Of a connective, the
    // offset of its children, with the highest bit set.
    std::uint32_t where;

    static constexpr std::uint32_t kIsConnective = 0x8000'0000;
    bool is_connective() const { return (where & kIsConnective) != 0; }
    std::uint32_t dimension() const { return where; }
    std::uint32_t children() const { return where & ~kIsConnective; }
};

// What stands before a node's children in the pool. After those of a disjunction come the places of its links at them.
struct ChildrenHead {
    static constexpr std::uint32_t kMany = 3;

    std::uint32_t count;
    NodeId node : Link::kTargetBits;
    std::uint32_t is_disjunction : 1;
    std::uint32_t subscriptions : 2;  // kMany for that many or more, of which the node knows the number.
};

class Children {
  public:
    // Up to so many, looking at all of them again costs no more than remembering what was seen.
    static constexpr std::uint32_t kFew = 16;

    explicit Children(const std::uint64_t* words) : words_(words) {}

    ChildrenHead head() const { return std::bit_cast<ChildrenHead>(words_[0]); }
    std::uint32_t size() const { return head().count; }
    Child operator[](std::uint32_t number) const { return std::bit_cast<Child>(words_[1 + number]); }

  private:
    const std::uint64_t* words_;
};

// The links of one node: a single one is stored in place, more are in the pool.
struct Links {
    std::uint64_t word = 0;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
};

// What the graph asks of predicates. A leaf is a predicate's number; `link` is the link that it is to follow.
class Leaves {
  public:
    virtual ~Leaves() = default;
    virtual void watch(std::uint32_t leaf, std::uint64_t link) = 0;
    virtual void unwatch(std::uint32_t leaf) = 0;
    // The links of a watched predicate have changed.
    virtual void update(std::uint32_t leaf, std::uint64_t link) = 0;
    virtual void count_use(std::uint32_t leaf, int times) = 0;
    // The share of publications that are expected to make the predicate true, when so many nodes use it.
    virtual double share(std::uint32_t leaf, std::uint32_t uses) const = 0;
    // Above 0 when the predicate cannot be true without a value in this dimension.
    virtual std::uint32_t dimension(std::uint32_t leaf) const = 0;
    virtual void remove_leaf(std::uint32_t leaf) = 0;
};

struct GraphShape {
    std::uint32_t nodes = 0;
    std::uint32_t levels = 0;
    std::uint32_t leaves = 0;
    std::uint32_t roots = 0;
    std::uint64_t edges = 0;
    std::uint32_t distinct_expressions = 0;
    std::uint32_t watched = 0;
};

class ExpressionGraph {
  public:
    struct Node {
        std::uint32_t hash = 0;
        std::uint32_t uses = 0;
        // Offset of head and children in the pool; of a predicate, its leaf.
        std::uint32_t children = 0;
        // Place of a conjunction's link at its access child.
        std::uint32_t access_link_place = 0;
        std::uint32_t level = 1;
        std::uint32_t subscriptions = 0;
        float share = 1.0F;
        NodeKind kind = NodeKind::Unused;
        // Its children, or the predicate index, know of it. A node is watched a moment before it listens.
        bool is_listening = false;
        std::uint64_t share_known_at = 0;
    };

    // Fewer bits of identity make IDs collide, which costs time and changes no answer.
    ExpressionGraph(Leaves& leaves, unsigned identity_bits);

    // The node of a predicate that was not there before.
    NodeId add_predicate(std::uint32_t leaf);
    // The node of these children, which are distinct and ascending; it is made when there is none.
    NodeId connective(NodeKind kind, std::span<const NodeId> children);
    // Claims the node for a subscription; `made` and unclaimed nodes go again.
    void subscribe(NodeId node, std::uint32_t subscription, std::uint32_t detail);
    void unsubscribe(std::uint32_t subscription);
    // After an expression that was refused half way: what was made for it goes again.
    void drop_unused();

    Children children(NodeId id) const { return Children(pool_.at(nodes_[id].children)); }
    const Node& node(NodeId id) const { return nodes_[id]; }
    std::span<const NodeId> watched_constants() const { return constants_; }
    NodeId node_of(std::uint32_t subscription) const { return subscriptions_[subscription].node; }

    // One past the largest number of a node there has been.
    std::uint32_t node_limit() const { return static_cast<std::uint32_t>(nodes_.size()); }
    std::uint32_t top_level() const { return static_cast<std::uint32_t>(nodes_on_level_.size()); }
    // The link that stands for all of the node's.
    std::uint64_t outgoing_link(NodeId id) const {
        const Links& links = links_[id];
        return links.size == 1 ? links.word : Link::to(LinkKind::Span, links.size, offset(links)).word();
    }
    const Links* links() const { return links_.data(); }
    const std::uint64_t* words() const { return pool_.at(0); }

    GraphShape shape() const;
    std::size_t bytes() const;

  private:
    struct SubscriptionLink {
        NodeId node = kNone;
        std::uint32_t place = 0;
    };

    NodeId new_node(NodeKind kind, std::uint32_t hash);
    void store_children(NodeId id, std::span<const NodeId> children);
    void arrange(NodeId id, std::span<const NodeId> children);
    bool has_children(NodeId id, NodeKind kind, std::span<const NodeId> children);
    void remove_node(NodeId id);
    void use(NodeId id);
    void release(NodeId id);
    void release_memory();
    double share(NodeId id);

    std::uint32_t push_link(NodeId id, Link link);
    void remove_link(NodeId id, std::uint32_t place);
    void fit_links(Links& links, std::uint32_t capacity);
    std::uint64_t* link_words(Links& links) { return links.capacity == 0 ? &links.word : pool_.at(offset(links)); }
    static std::uint32_t offset(const Links& links) { return static_cast<std::uint32_t>(links.word); }
    void links_changed(NodeId id, bool is_between_one_and_two);
    void link_moved(NodeId id, Link link, std::uint32_t place);
    Link link_to(NodeId listener) const;
    std::uint32_t gate(NodeId conjunction) const;
    std::uint32_t dimension_of_all_parts(Children disjunction) const;
    bool needs(Child part, std::uint32_t dimension) const;
    void relink_children(NodeId disjunction);
    void listen(NodeId first);
    void stop_listening(NodeId first);
    void link_children(NodeId id, std::vector<NodeId>& newly_watched);
    void unlink_children(NodeId id, std::vector<NodeId>& no_longer_watched);

    std::uint32_t number_of_child(NodeId disjunction, NodeId child) const;
    std::uint32_t place_at_child(NodeId disjunction, std::uint32_t number) const;
    void set_place_at_child(NodeId disjunction, std::uint32_t number, std::uint32_t place);
    std::uint32_t words_for(NodeKind kind, std::uint32_t count) const {
        return 1 + count + (kind == NodeKind::Disjunction ? (count + 1) / 2 : 0);
    }
    ChildrenHead head(NodeId id) const { return std::bit_cast<ChildrenHead>(*pool_.at(nodes_[id].children)); }
    void count_subscription(NodeId id, int times);

    Leaves& leaves_;
    std::uint64_t identity_mask_;
    std::vector<Node, HugePages<Node>> nodes_;
    std::vector<Links, HugePages<Links>> links_;
    std::vector<NodeId> free_nodes_;
    std::uint32_t node_count_ = 0;
    std::vector<std::uint32_t> nodes_on_level_;
    SpanPool pool_;
    IdTable table_;
    std::vector<SubscriptionLink> subscriptions_;
    std::vector<NodeId> constants_;
    std::vector<NodeId> made_;
    std::uint64_t predicate_uses_ = 0;
    // Room that every change needs for a moment.
    std::vector<NodeId> pending_;
    std::vector<NodeId> sorted_;
    struct Ranked {
        double share;
        std::uint32_t uses;
        NodeId node;
    };
    std::vector<Ranked> ranked_;
};

}  // namespace mercast::a_tree
