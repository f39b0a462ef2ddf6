// Listeners: the part of the expression graph that changes when a node starts or stops being watched.

#include <algorithm>
#include <cstring>

#include "a_tree/expression_graph.hpp"

namespace mercast::a_tree {

std::uint32_t ExpressionGraph::push_link(NodeId id, Link link) {
    Links& links = links_[id];
    const std::uint32_t place = links.size;
    const std::uint32_t room = links.capacity == 0 ? 1 : links.capacity;
    if (place == room) fit_links(links, place < 2 ? 2 : place + place / 2);
    ++links.size;
    link_words(links)[place] = std::bit_cast<std::uint64_t>(link);
    if (place > 0) links_changed(id, links.size == 2);
    return place;
}

void ExpressionGraph::remove_link(NodeId id, std::uint32_t place) {
    Links& links = links_[id];
    std::uint64_t* words = link_words(links);
    const std::uint32_t last = --links.size;
    if (place != last) {
        words[place] = words[last];
        link_moved(id, Link::read(words[place]), place);
    }
    if (links.capacity > 0 && (last <= 1 || last <= links.capacity / 4)) fit_links(links, last <= 1 ? 0 : 2 * last);
    if (last > 0) links_changed(id, last == 1);
}

// Propagates a change in the number of links of a node that stays watched.
void ExpressionGraph::links_changed(NodeId id, bool is_between_one_and_two) {
    // A node that does not listen yet reads its links when it starts to listen.
    if (!nodes_[id].is_listening) return;
    if (nodes_[id].kind == NodeKind::Predicate) {
        leaves_.update(nodes_[id].children, outgoing_link(id));
    } else if (nodes_[id].kind == NodeKind::Disjunction && is_between_one_and_two) {
        relink_children(id);
    }
}

// The link to this listener in a child's list. The parents of a disjunction are conjunctions. So a disjunction that is
// passed over is replaced by a conjunction or a subscription, never by another disjunction.
Link ExpressionGraph::link_to(NodeId id) const {
    const Node& node = nodes_[id];
    if (node.kind == NodeKind::Conjunction) return Link::to(LinkKind::Conjunction, gate(id), node.children);
    if (links_[id].size == 1) {
        const Link only = Link::read(links_[id].word);
        if (only.kind() == LinkKind::Subscription || head(id).count <= Children::kFew) return only;
    }
    return Link::to(LinkKind::Disjunction, id, 0);
}

// A dimension that a child other than the access child needs; that of a predicate, if there is one.
std::uint32_t ExpressionGraph::gate(NodeId conjunction) const {
    const Children all = children(conjunction);
    std::uint32_t found = 0;
    for (std::uint32_t number = 1; number < all.size(); ++number) {
        const Child child = all[number];
        if (child.is_connective()) {
            if (found == 0) found = dimension_of_all_parts(Children(pool_.at(child.children())));
        } else if (child.dimension() > 0) {
            found = child.dimension();
            break;
        }
    }
    return found <= Link::kLargestTarget ? found : 0;
}

// A dimension that each part of a disjunction needs, or 0. The parts of an XOR share all their dimensions.
std::uint32_t ExpressionGraph::dimension_of_all_parts(Children disjunction) const {
    constexpr std::uint32_t kTried = 4;
    if (!disjunction[0].is_connective()) return 0;
    const Children first(pool_.at(disjunction[0].children()));
    for (std::uint32_t number = 0; number < std::min(first.size(), kTried); ++number) {
        if (first[number].is_connective() || first[number].dimension() == 0) continue;
        const std::uint32_t dimension = first[number].dimension();
        std::uint32_t part = 1;
        while (part < disjunction.size() && needs(disjunction[part], dimension)) ++part;
        if (part == disjunction.size()) return dimension;
    }
    return 0;
}

// Whether a part of a disjunction needs the dimension: a predicate in it, or a conjunction with such a predicate.
bool ExpressionGraph::needs(Child part, std::uint32_t dimension) const {
    if (!part.is_connective()) return part.dimension() == dimension;
    const Children conjunction(pool_.at(part.children()));
    for (std::uint32_t number = 0; number < conjunction.size(); ++number) {
        const Child child = conjunction[number];
        if (!child.is_connective() && child.dimension() == dimension) return true;
    }
    return false;
}

void ExpressionGraph::relink_children(NodeId disjunction) {
    const auto word = std::bit_cast<std::uint64_t>(link_to(disjunction));
    const std::uint32_t count = children(disjunction).size();
    for (std::uint32_t number = 0; number < count; ++number) {
        const NodeId child = children(disjunction)[number].node;
        link_words(links_[child])[place_at_child(disjunction, number)] = word;
        if (links_[child].size == 1) links_changed(child, false);
    }
}

// Moves the links to a span of this capacity, or into the node for 0.
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

// Updates the stored place of a link that moved within this node's list.
void ExpressionGraph::link_moved(NodeId id, Link link, std::uint32_t place) {
    NodeId disjunction = link.target();
    if (link.kind() == LinkKind::Subscription) {
        SubscriptionLink& stored = subscriptions_[link.target()];
        if (stored.node == id) {
            stored.place = place;
            return;
        }
        disjunction = stored.node;
    } else if (link.kind() == LinkKind::Conjunction) {
        const Children listening(pool_.at(link.detail));
        if (listening[0].node == id) {
            nodes_[listening.head().node].access_link_place = place;
            return;
        }
        disjunction = listening[0].node;
    }
    // The link of a disjunction, or of the listener that replaces one that is passed over.
    set_place_at_child(disjunction, number_of_child(disjunction, id), place);
}

std::uint32_t ExpressionGraph::number_of_child(NodeId disjunction, NodeId child) const {
    const Children sorted = children(disjunction);
    std::uint32_t low = 0;
    std::uint32_t high = sorted.size();
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (sorted[middle].node < child) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

std::uint32_t ExpressionGraph::place_at_child(NodeId disjunction, std::uint32_t number) const {
    const std::uint64_t word = *pool_.at(nodes_[disjunction].children + 1 + head(disjunction).count + number / 2);
    return static_cast<std::uint32_t>(number % 2 == 0 ? word : word >> 32);
}

void ExpressionGraph::set_place_at_child(NodeId disjunction, std::uint32_t number, std::uint32_t place) {
    std::uint64_t& word = *pool_.at(nodes_[disjunction].children + 1 + head(disjunction).count + number / 2);
    const unsigned shift = number % 2 == 0 ? 0 : 32;
    word = (word & ~(std::uint64_t{0xFFFF'FFFF} << shift)) | std::uint64_t{place} << shift;
}

void ExpressionGraph::listen(NodeId first) {
    std::vector<NodeId> watched{first};
    while (!watched.empty()) {
        const NodeId id = watched.back();
        watched.pop_back();
        Node& node = nodes_[id];
        node.is_listening = true;
        if (node.kind == NodeKind::Predicate) {
            leaves_.watch(node.children, outgoing_link(id));
        } else if (node.level == 1) {
            // A constant: TRUE is a conjunction without children, and FALSE is never propagated.
            if (node.kind == NodeKind::Conjunction) constants_.push_back(id);
        } else {
            link_children(id, watched);
        }
    }
}

void ExpressionGraph::link_children(NodeId id, std::vector<NodeId>& newly_watched) {
    const bool is_conjunction = nodes_[id].kind == NodeKind::Conjunction;
    const std::uint32_t linked = is_conjunction ? 1 : head(id).count;
    for (std::uint32_t number = 0; number < linked; ++number) {
        const NodeId child = children(id)[number].node;
        const std::uint32_t place = push_link(child, link_to(id));
        if (is_conjunction) {
            nodes_[id].access_link_place = place;
        } else {
            set_place_at_child(id, number, place);
        }
        if (place == 0) newly_watched.push_back(child);
    }
}

void ExpressionGraph::stop_listening(NodeId first) {
    std::vector<NodeId> unwatched{first};
    while (!unwatched.empty()) {
        const NodeId id = unwatched.back();
        unwatched.pop_back();
        Node& node = nodes_[id];
        node.is_listening = false;
        if (node.kind == NodeKind::Predicate) {
            leaves_.unwatch(node.children);
        } else if (node.level == 1) {
            std::erase(constants_, id);
        } else {
            unlink_children(id, unwatched);
        }
    }
}

void ExpressionGraph::unlink_children(NodeId id, std::vector<NodeId>& no_longer_watched) {
    const bool is_conjunction = nodes_[id].kind == NodeKind::Conjunction;
    const std::uint32_t linked = is_conjunction ? 1 : head(id).count;
    for (std::uint32_t number = 0; number < linked; ++number) {
        const NodeId child = children(id)[number].node;
        remove_link(child, is_conjunction ? nodes_[id].access_link_place : place_at_child(id, number));
        if (links_[child].size == 0) no_longer_watched.push_back(child);
    }
}

}  // namespace mercast::a_tree
