#include "flat/flat_index.hpp"

#include <algorithm>

namespace mercast {

std::vector<std::int64_t> FlatIndex::ids_in_order() const {
    std::vector<std::pair<std::uint64_t, std::int64_t>> found;
    found.reserve(ids_.size());
    ids_.each(
        [&](std::int64_t id, std::uint32_t handle) { found.emplace_back(subscriptions_[handle].sequence(), id); });
    std::sort(found.begin(), found.end());
    std::vector<std::int64_t> ids;
    ids.reserve(found.size());
    for (const auto& [sequence, id] : found) ids.push_back(id);
    return ids;
}

FlatIndex::Figures FlatIndex::figures() const {
    const std::size_t bytes = vocabulary_.bytes() + destinations_.bytes() + dimensions_.bytes() + lists_.bytes() +
                              directory_.bytes() + ids_.bytes() + subscriptions_.bytes() + store_.spare_bytes() +
                              (drafts_ == nullptr ? 0 : sizeof(Drafts));
    return {lists_.count(), entries_, dimensions_.count(), dimensions_.grid_count(), bytes};
}

}  // namespace mercast
