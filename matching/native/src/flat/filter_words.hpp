// A publication's table that decides which filter words pass. A word that does not pass cannot match. One that passes
// may match, and its tail decides. Grids that share a row of the table let too much pass, never too little.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "flat/entry.hpp"

namespace mercast {

class FilterTable {
  public:
    FilterTable();

    // Sets that the publication has a value in this sixteenth of the grid; and that it has none.
    void allow(std::uint32_t grid, std::uint32_t sixteenth);
    void forbid(std::uint32_t grid);

    // Writes the tails of the entries whose words pass and returns their number. The vector only grows. Its contents
    // beyond this number have no meaning.
    std::size_t find_passing(const std::vector<EntryRun>& runs, std::vector<const EntryTail*>& passing) const;

  private:
    // Both return the end of the tails found.
    const EntryTail** find_by_vectors(const std::vector<EntryRun>& runs, const EntryTail** found) const;
    const EntryTail** find_by_bytes(const std::vector<EntryRun>& runs, const EntryTail** found) const;

    bool uses_vectors_;  // fixed at construction
    // With vector instructions: the smallest and the largest sixteenth by row. 64 codes are looked up at once.
    std::array<std::uint8_t, 256> smallest_;
    std::array<std::uint8_t, 256> largest_;
    // Without them: a byte for each code, so that a word costs two loads.
    std::vector<std::uint8_t> allowed_;
};

}  // namespace mercast
