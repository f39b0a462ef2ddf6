// Who listens to whom: the part of the expression graph that changes when a node begins or ceases to be watched.

#include <cstring>

#include "expression_graph.hpp"

namespace mercast::a_tree {

std::uint32_t ExpressionGraph::push_link(NodeId id, Link link) {
    Links& links = links_[id];
    const std::uint32_t place = links.size;
    if (place >= 1 && place == (links.capacity == 0 ? 1 : links.capacity)) fit_links(links, place < 2 ? 2 : place + place / 2);
    ++links.size;
    link_words(links)[place] = std::bit_cast<std::uint64_t>(link);
    return place;
}

void ExpressionGraph::remove_link(NodeId id, std::uint32_t place) {
    Links& links = links_[id];
    std::uint64_t* words = link_words(links);
    const std::uint32_t last = --links.size;
    if (place != last) {
        words[place] = words[last];
        moved(std::bit_cast<Link>(words[place]), place);
    }
    if (links.capacity > 0 && (last <= 1 || last <= links.capacity / 4)) fit_links(links, last <= 1 ? 0 : 2 * last);
}

// Moves the links to a span of this capacity, or into place for 0.
void ExpressionGraph::fit_links(Links& links, std::uint32_t capacity) {
    std::uint64_t word = 0;
    if (capacity == 0) {
        word = links.size > 0 ? *link_words(links) : 0;
    } else {
        capacity = SpanPool::capacity_for(capacity);
        word = pool_.allocate(capacity);
        std::memcpy(pool_.at(static_cast<std::uint32_t>(word)), link_words(links), links.size * sizeof(word));
    }
    if (links.capacity > 0) pool_.release(offset(links), links.capacity);
    links.capacity = capacity;
    links.word = word;
}

// Tells the owner of a link that it stands in another place of its list.
void ExpressionGraph::moved(Link link, std::uint32_t place) {
    switch (link.kind()) {
        case LinkKind::Subscription:
            subscriptions_[link.target()].place = place;
            break;
        case LinkKind::Disjunction: {
            std::uint64_t& word = *pool_.at(nodes_[link.target()].children + 1 + link.detail);
            Child child = std::bit_cast<Child>(word);
            child.detail = place;
            word = std::bit_cast<std::uint64_t>(child);
            break;
        }
        case LinkKind::LeafConjunction:
        case LinkKind::Conjunction:
            nodes_[link.target()].heard_at = place;
            break;
    }
}

void ExpressionGraph::listen(NodeId first) {
    std::vector<NodeId> watched{first};
    while (!watched.empty()) {
        const NodeId id = watched.back();
        watched.pop_back();
        const Node& node = nodes_[id];
        if (node.kind == NodeKind::Predicate) {
            leaves_.watch(node.children, id);
        } else if (node.level == 1) {
            // A constant: TRUE is a conjunction of nothing, and FALSE is never heard of.
            if (node.kind == NodeKind::Conjunction) constants_.push_back(id);
        } else {
            listen_to_children(id, watched);
        }
    }
}

void ExpressionGraph::listen_to_children(NodeId id, std::vector<NodeId>& newly_watched) {
    const bool is_conjunction = nodes_[id].kind == NodeKind::Conjunction;
    const std::uint32_t offset = nodes_[id].children;
    const std::uint32_t heard = is_conjunction ? 1 : head(id).count;
    for (std::uint32_t number = 0; number < heard; ++number) {
        Child child = std::bit_cast<Child>(*pool_.at(offset + 1 + number));
        if (is_conjunction) {
            const LinkKind kind = nodes_[id].has_leaves_only ? LinkKind::LeafConjunction : LinkKind::Conjunction;
            nodes_[id].heard_at = push_link(child.node, Link::to(kind, id, offset));
        } else {
            child.detail = push_link(child.node, Link::to(LinkKind::Disjunction, id, number));
            *pool_.at(offset + 1 + number) = std::bit_cast<std::uint64_t>(child);
        }
        if (links_[child.node].size == 1) newly_watched.push_back(child.node);
    }
}

void ExpressionGraph::stop_listening(NodeId first) {
    std::vector<NodeId> unwatched{first};
    while (!unwatched.empty()) {
        const NodeId id = unwatched.back();
        unwatched.pop_back();
        const Node& node = nodes_[id];
        if (node.kind == NodeKind::Predicate) {
            leaves_.unwatch(node.children, id);
        } else if (node.level == 1) {
            std::erase(constants_, id);
        } else {
            leave_children(id, unwatched);
        }
    }
}

void ExpressionGraph::leave_children(NodeId id, std::vector<NodeId>& no_longer_watched) {
    const bool is_conjunction = nodes_[id].kind == NodeKind::Conjunction;
    const std::uint32_t offset = nodes_[id].children;
    const std::uint32_t heard = is_conjunction ? 1 : head(id).count;
    for (std::uint32_t number = 0; number < heard; ++number) {
        const Child child = std::bit_cast<Child>(*pool_.at(offset + 1 + number));
        remove_link(child.node, is_conjunction ? nodes_[id].heard_at : child.detail);
        if (links_[child.node].size == 0) no_longer_watched.push_back(child.node);
    }
}

}  // namespace mercast::a_tree
