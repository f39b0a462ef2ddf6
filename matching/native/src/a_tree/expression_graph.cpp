#include "a_tree/expression_graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace mercast::a_tree {

ExpressionGraph::ExpressionGraph(Leaves& leaves, unsigned identity_bits)
    : leaves_(leaves), identity_mask_(identity_bits >= 32 ? 0xFFFF'FFFFULL : (1ULL << identity_bits) - 1) {}

NodeId ExpressionGraph::add_predicate(std::uint32_t leaf) {
    const NodeId id = new_node(NodeKind::Predicate, 0);
    nodes_[id].children = leaf;
    return id;
}

NodeId ExpressionGraph::connective(NodeKind kind, std::span<const NodeId> children) {
    std::uint64_t identity = static_cast<std::uint64_t>(kind);
    for (const NodeId child : children) identity = mixed(identity ^ child) + child;
    // Departs from [ATREE 4.2.1]: the ID is a hash of the children's numbers and needs no commutative arithmetic,
    // because children are nodes already and sorted.
    const auto hash = static_cast<std::uint32_t>(mixed(identity) & identity_mask_);
    const std::uint32_t known =
        table_.find(hash, [&](std::uint32_t other) { return has_children(other, kind, children); });
    if (known != kNone) return known;
    const NodeId id = new_node(kind, hash);
    table_.insert(hash, id);
    store_children(id, children);
    return id;
}

bool ExpressionGraph::has_children(NodeId id, NodeKind kind, std::span<const NodeId> wanted) {
    if (nodes_[id].kind != kind) return false;
    const Children own = children(id);
    if (own.size() != wanted.size()) return false;
    sorted_.clear();
    for (std::uint32_t number = 0; number < own.size(); ++number) sorted_.push_back(own[number].node);
    std::sort(sorted_.begin(), sorted_.end());
    return std::equal(sorted_.begin(), sorted_.end(), wanted.begin());
}

NodeId ExpressionGraph::new_node(NodeKind kind, std::uint32_t hash) {
    NodeId id;
    if (free_nodes_.empty()) {
        id = static_cast<NodeId>(nodes_.size());
        if (id >> Link::kTargetBits) throw std::length_error("the index is full: 2^29 nodes");
        nodes_.emplace_back();
        links_.emplace_back();
    } else {
        id = free_nodes_.back();
        free_nodes_.pop_back();
    }
    nodes_[id] = Node{};
    nodes_[id].kind = kind;
    nodes_[id].hash = hash;
    ++node_count_;
    made_.push_back(id);
    if (nodes_on_level_.empty()) nodes_on_level_.push_back(0);
    ++nodes_on_level_[0];
    return id;
}

void ExpressionGraph::store_children(NodeId id, std::span<const NodeId> children) {
    const auto count = static_cast<std::uint32_t>(children.size());
    const std::uint32_t offset = pool_.allocate(words_for(nodes_[id].kind, count));
    nodes_[id].children = offset;
    const std::uint32_t is_disjunction = nodes_[id].kind == NodeKind::Disjunction ? 1 : 0;
    *pool_.at(offset) = std::bit_cast<std::uint64_t>(ChildrenHead{count, id, is_disjunction, 0});
    std::uint32_t level = 1;
    for (const NodeId child : children) {
        use(child);
        level = std::max(level, nodes_[child].level + 1);
    }
    arrange(id, children);
    Node& node = nodes_[id];
    node.level = level;
    --nodes_on_level_[0];
    if (nodes_on_level_.size() < level) nodes_on_level_.resize(level);
    ++nodes_on_level_[level - 1];
}

// Writes the children. A conjunction's are sorted by expected share, rarest first: the first becomes the access child,
// and evaluation of the others ends early. A disjunction's are ascending, so that a binary search finds them.
void ExpressionGraph::arrange(NodeId id, std::span<const NodeId> children) {
    ranked_.clear();
    for (const NodeId child : children) ranked_.push_back({0, nodes_[child].uses, child});
    if (nodes_[id].kind == NodeKind::Conjunction) {
        for (Ranked& ranked : ranked_) ranked.share = share(ranked.node);
        std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& one, const Ranked& other) {
            if (one.share != other.share) return one.share < other.share;
            return one.uses != other.uses ? one.uses < other.uses : one.node < other.node;
        });
    }
    std::uint64_t* place = pool_.at(nodes_[id].children);
    for (const Ranked& ranked : ranked_) {
        const Node& child = nodes_[ranked.node];
        const bool is_leaf = child.kind == NodeKind::Predicate;
        const std::uint32_t where = is_leaf ? leaves_.dimension(child.children) : child.children | Child::kIsConnective;
        *++place = std::bit_cast<std::uint64_t>(Child{ranked.node, where});
    }
}

double ExpressionGraph::share(NodeId id) {
    Node& node = nodes_[id];
    if (node.kind == NodeKind::Predicate) return leaves_.share(node.children, node.uses);
    // Shares fall as uses grow. Computing a share again only after the uses have doubled keeps this cheap for large
    // nodes.
    if (predicate_uses_ <= 2 * node.share_known_at) return node.share;
    const bool is_conjunction = node.kind == NodeKind::Conjunction;
    double combined = is_conjunction ? 1.0 : 0.0;
    const Children parts = children(id);
    for (std::uint32_t number = 0; number < parts.size(); ++number) {
        const Node& below = nodes_[parts[number].node];
        const bool is_leaf = below.kind == NodeKind::Predicate;
        const double part = is_leaf ? leaves_.share(below.children, below.uses) : double{below.share};
        combined = is_conjunction ? combined * part : combined + part;
    }
    node.share = static_cast<float>(std::min(1.0, combined));
    node.share_known_at = predicate_uses_;
    return node.share;
}

void ExpressionGraph::use(NodeId id) {
    ++nodes_[id].uses;
    if (nodes_[id].kind != NodeKind::Predicate) return;
    ++predicate_uses_;
    leaves_.count_use(nodes_[id].children, 1);
}

void ExpressionGraph::release(NodeId id) {
    --nodes_[id].uses;
    if (nodes_[id].kind != NodeKind::Predicate) return;
    --predicate_uses_;
    leaves_.count_use(nodes_[id].children, -1);
}

void ExpressionGraph::subscribe(NodeId id, std::uint32_t subscription, std::uint32_t detail) {
    if (subscriptions_.size() <= subscription) subscriptions_.resize(std::size_t{subscription} + 1);
    use(id);
    count_subscription(id, 1);
    const std::uint32_t place = push_link(id, Link::to(LinkKind::Subscription, subscription, detail));
    subscriptions_[subscription] = {id, place};
    if (links_[id].size == 1) listen(id);
    drop_unused();
}

void ExpressionGraph::drop_unused() {
    // A node is made after its children. In reverse order, a child that loses its last use is visited later.
    for (std::size_t number = made_.size(); number-- > 0;) {
        const NodeId id = made_[number];
        if (nodes_[id].uses > 0) continue;
        if (nodes_[id].kind != NodeKind::Predicate) {
            const Children parts = children(id);
            for (std::uint32_t child = 0; child < parts.size(); ++child) release(parts[child].node);
        }
        remove_node(id);
    }
    made_.clear();
    if (made_.capacity() > 4096) std::vector<NodeId>().swap(made_);
}

void ExpressionGraph::unsubscribe(std::uint32_t subscription) {
    const SubscriptionLink stored = subscriptions_[subscription];
    count_subscription(stored.node, -1);
    // Links that lead straight to the subscription must be found before its record is cleared.
    if (links_[stored.node].size == 1) stop_listening(stored.node);
    subscriptions_[subscription] = {};
    remove_link(stored.node, stored.place);
    pending_.assign(1, stored.node);
    while (!pending_.empty()) {
        const NodeId id = pending_.back();
        pending_.pop_back();
        release(id);
        if (nodes_[id].uses > 0) continue;
        if (nodes_[id].kind != NodeKind::Predicate) {
            const Children parts = children(id);
            for (std::uint32_t child = 0; child < parts.size(); ++child) pending_.push_back(parts[child].node);
        }
        remove_node(id);
    }
    if (node_count_ == 0) release_memory();
}

// The last node was removed. Releases the memory.
void ExpressionGraph::release_memory() {
    decltype(nodes_)().swap(nodes_);
    decltype(links_)().swap(links_);
    std::vector<NodeId>().swap(free_nodes_);
    std::vector<SubscriptionLink>().swap(subscriptions_);
    std::vector<NodeId>().swap(pending_);
}

void ExpressionGraph::count_subscription(NodeId id, int times) {
    nodes_[id].subscriptions += static_cast<std::uint32_t>(times);
    if (nodes_[id].kind == NodeKind::Predicate) return;
    ChildrenHead changed = head(id);
    changed.subscriptions = std::min(nodes_[id].subscriptions, ChildrenHead::kMany) & ChildrenHead::kMany;
    *pool_.at(nodes_[id].children) = std::bit_cast<std::uint64_t>(changed);
}

void ExpressionGraph::remove_node(NodeId id) {
    Node& node = nodes_[id];
    if (node.kind == NodeKind::Predicate) {
        leaves_.remove_leaf(node.children);
    } else {
        table_.erase(node.hash, id);
        pool_.release(node.children, words_for(node.kind, head(id).count));
    }
    --nodes_on_level_[node.level - 1];
    while (!nodes_on_level_.empty() && nodes_on_level_.back() == 0) nodes_on_level_.pop_back();
    node = Node{};
    --node_count_;
    free_nodes_.push_back(id);
}

GraphShape ExpressionGraph::shape() const {
    GraphShape shape;
    shape.nodes = node_count_;
    shape.levels = top_level();
    for (NodeId id = 0; id < nodes_.size(); ++id) {
        const Node& node = nodes_[id];
        if (node.kind == NodeKind::Unused) continue;
        const bool is_leaf = node.kind == NodeKind::Predicate;
        shape.leaves += is_leaf;
        shape.roots += !is_leaf && node.uses == node.subscriptions;
        shape.edges += is_leaf ? 0 : children(id).size();
        shape.distinct_expressions += node.subscriptions > 0;
        shape.watched += links_[id].size > 0;
    }
    return shape;
}

std::size_t ExpressionGraph::bytes() const {
    return nodes_.capacity() * sizeof(Node) + links_.capacity() * sizeof(Links) + pool_.bytes() + table_.bytes() +
           subscriptions_.capacity() * sizeof(SubscriptionLink) +
           (free_nodes_.capacity() + constants_.capacity() + made_.capacity() + pending_.capacity()) * sizeof(NodeId);
}

}  // namespace mercast::a_tree
