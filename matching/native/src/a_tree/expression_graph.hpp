// The nodes of an A-Tree and the links between them [ATREE 4]. Each distinct subexpression is one node.
//
// Expressions arrive without NOT, XOR and XNOR (zero suppression, [ATREE 5.2.1]): there are predicates, conjunctions
// and disjunctions. A conjunction in a conjunction, or a disjunction in a disjunction, was merged into it, and children
// are distinct. So a node is identified by its kind and the set of its children. The graph does not know values:
// `Leaves` knows the meaning of predicates and when they are true.
//
// Links lead upwards, from a node to its listeners: disjunctions, conjunctions and subscriptions that are notified when
// it is true. A node is watched if it has links. A watched disjunction listens to all its children. A watched
// conjunction listens only to its access child, which is expected to be true least often (propagation on demand, [ATREE
// 5.2.2]). A disjunction with one listener is passed over: its children link to the listener. So a conjunction may be
// notified once for each child of its access child. A disjunction with many children is passed over only for a
// subscription.
//
// The cost of a change depends on the expression, not on the index. Links store their place in their list, removal
// moves the last link into the gap, and freed nodes and spans are reused.
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

// A link from a node to a node or subscription that is notified when the node is true.
struct Link {
    static constexpr std::uint32_t kTargetBits = 29;
    static constexpr std::uint32_t kLargestTarget = (1U << kTargetBits) - 1;

    std::uint32_t where;
    // Of a subscription: a value of the owner. Of a conjunction: the offset of its children, so that matching does not
    // read the node. Of a span, which represents several links: their offset.
    std::uint32_t detail;

    LinkKind kind() const { return static_cast<LinkKind>(where >> kTargetBits); }
    // The number of the subscription or node. Of a span: the number of its links. Of a conjunction: its gate, a
    // dimension without which it cannot be true, or 0. Most conjunctions fail at the gate and are not read.
    std::uint32_t target() const { return where & kLargestTarget; }
    std::uint64_t word() const { return std::bit_cast<std::uint64_t>(*this); }
    static Link to(LinkKind kind, std::uint32_t target, std::uint32_t detail) {
        return {static_cast<std::uint32_t>(kind) << kTargetBits | target, detail};
    }
    static Link read(std::uint64_t word) { return std::bit_cast<Link>(word); }
};

// One child of a node in the pool. It holds the data that a search needs, because reading the child itself would be a
// cache miss.
struct Child {
    NodeId node;
    // Of a predicate: its dimension, without a value in which it is not true, or 0. Of a connective: the offset of its
    // children, with the highest bit set.
    std::uint32_t where;

    static constexpr std::uint32_t kIsConnective = 0x8000'0000;
    bool is_connective() const { return (where & kIsConnective) != 0; }
    std::uint32_t dimension() const { return where; }
    std::uint32_t children() const { return where & ~kIsConnective; }
};

// The word before a node's children in the pool. The places of a disjunction's links at its children follow the
// children.
struct ChildrenHead {
    static constexpr std::uint32_t kMany = 3;

    std::uint32_t count;
    NodeId node : Link::kTargetBits;
    std::uint32_t is_disjunction : 1;
    std::uint32_t subscriptions : 2;  // kMany for this many or more; the node has the number.
};

class Children {
  public:
    // Up to this many children, reading all of them again costs no more than storing what was seen.
    static constexpr std::uint32_t kFew = 16;

    explicit Children(const std::uint64_t* words) : words_(words) {}

    ChildrenHead head() const { return std::bit_cast<ChildrenHead>(words_[0]); }
    std::uint32_t size() const { return head().count; }
    Child operator[](std::uint32_t number) const { return std::bit_cast<Child>(words_[1 + number]); }

  private:
    const std::uint64_t* words_;
};

// The links of one node. A single link is stored in place, several are in the pool.
struct Links {
    std::uint64_t word = 0;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
};

// The predicates, as the graph uses them. A leaf is a predicate's number. `link` is the link to follow when it is true.
class Leaves {
  public:
    virtual ~Leaves() = default;
    virtual void watch(std::uint32_t leaf, std::uint64_t link) = 0;
    virtual void unwatch(std::uint32_t leaf) = 0;
    // Replaces the link of a watched predicate.
    virtual void update(std::uint32_t leaf, std::uint64_t link) = 0;
    virtual void count_use(std::uint32_t leaf, int times) = 0;
    // The share of publications that are expected to make the predicate true, if this many nodes use it.
    virtual double share(std::uint32_t leaf, std::uint32_t uses) const = 0;
    // The dimension without a value in which the predicate cannot be true, or 0.
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
        // Place of a conjunction's link in the list of its access child.
        std::uint32_t access_link_place = 0;
        std::uint32_t level = 1;
        std::uint32_t subscriptions = 0;
        float share = 1.0F;
        NodeKind kind = NodeKind::Unused;
        // Whether its children, or the predicate index, have a link to it. A node is watched shortly before it listens.
        bool is_listening = false;
        std::uint64_t share_known_at = 0;
    };

    // Fewer bits of identity make IDs collide. This costs time and changes no answer.
    ExpressionGraph(Leaves& leaves, unsigned identity_bits);

    // Adds the node of a predicate that is new.
    NodeId add_predicate(std::uint32_t leaf);
    // The node with these children, which are distinct and ascending. Created if there is none.
    NodeId connective(NodeKind kind, std::span<const NodeId> children);
    // Links the node to a subscription, then removes nodes that were made and are not used.
    void subscribe(NodeId node, std::uint32_t subscription, std::uint32_t detail);
    void unsubscribe(std::uint32_t subscription);
    // Removes nodes that were made for an expression that was refused.
    void drop_unused();

    Children children(NodeId id) const { return Children(pool_.at(nodes_[id].children)); }
    const Node& node(NodeId id) const { return nodes_[id]; }
    std::span<const NodeId> watched_constants() const { return constants_; }
    NodeId node_of(std::uint32_t subscription) const { return subscriptions_[subscription].node; }

    // One more than the largest number that a node has had.
    std::uint32_t node_limit() const { return static_cast<std::uint32_t>(nodes_.size()); }
    std::uint32_t top_level() const { return static_cast<std::uint32_t>(nodes_on_level_.size()); }
    // The link that represents all links of the node.
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
    // Scratch memory of changes.
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
