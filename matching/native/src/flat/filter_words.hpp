// A publication's table that tells which filter words pass. What does not pass cannot match; what passes may, and its tail
// decides. Grids that share a row of the table let too much pass, never too little.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "flat/entry.hpp"

namespace mercast {

class FilterTable {
  public:
    FilterTable();

    // The publication has a value in this sixteenth of the grid; it has none there any more.
    void allow(std::uint32_t grid, std::uint32_t sixteenth);
    void forbid(std::uint32_t grid);

    // Writes down the tails of the entries whose words pass. Returns how many; what lies beyond in the vector, which only
    // grows, means nothing.
    std::size_t find_passing(const std::vector<EntryRun>& runs, std::vector<const EntryTail*>& passing) const;

  private:
    // Both return the end of what they found.
    const EntryTail** find_by_vectors(const std::vector<EntryRun>& runs, const EntryTail** found) const;
    const EntryTail** find_by_bytes(const std::vector<EntryRun>& runs, const EntryTail** found) const;

    bool uses_vectors_;  // since it was made
    // With vectors: the smallest and the largest sixteenth by row. 64 codes are looked up at once.
    std::array<std::uint8_t, 256> smallest_;
    std::array<std::uint8_t, 256> largest_;
    // Without: a byte for each code, so that a word costs two loads.
    std::vector<std::uint8_t> allowed_;
};

}  // namespace mercast
