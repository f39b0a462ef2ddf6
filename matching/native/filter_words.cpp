#include "filter_words.hpp"

#include <algorithm>
#include <cstring>

#include "fetch_line.hpp"
#include "vectors.hpp"

#ifdef MERCAST_HAS_VECTORS
#include <immintrin.h>
#endif

namespace mercast {
namespace {

constexpr std::uint8_t kNowhere = 0xff;  // larger than any sixteenth
constexpr std::uint32_t kWordsOfLine = 16;
constexpr std::uint32_t kLinesInFlight = 16;
constexpr std::uint32_t kLongestRun = 256;
constexpr std::uint32_t kLinesAhead = 6;

// For each sixteenth, the ranges that it lies in.
constexpr std::array<std::array<std::uint8_t, 256>, 16> kRangesWith = [] {
    std::array<std::array<std::uint8_t, 256>, 16> ranges{};
    for (std::size_t sixteenth = 0; sixteenth < 16; ++sixteenth) {
        for (std::size_t range = 0; range < 256; ++range) {
            ranges[sixteenth][range] = (range >> 4) <= sixteenth && sixteenth <= (range & 15) ? 1 : 0;
        }
    }
    return ranges;
}();

// Fetches the words of runs ahead of those that are scanned, a bounded number of lines at a time: many short runs, or few
// long ones. Of a long run it fetches the first lines; the others follow while it is scanned.
class Fetcher {
  public:
    explicit Fetcher(const std::vector<EntryRun>& runs) : runs_(runs) {}

    void go_on() {
        for (; next_ < runs_.size() && in_flight_ < kLinesInFlight; ++next_) {
            const std::uint32_t lines = lines_of(runs_[next_]);
            for (std::uint32_t line = 0; line < lines; ++line) {
                fetch_line(runs_[next_].words + line * kWordsOfLine);
            }
            in_flight_ += lines;
        }
    }

    void scanned(const EntryRun& run) { in_flight_ -= lines_of(run); }

  private:
    static std::uint32_t lines_of(const EntryRun& run) {
        return std::min((run.count + kWordsOfLine - 1) / kWordsOfLine, kLinesAhead);
    }

    const std::vector<EntryRun>& runs_;
    std::size_t next_ = 0;
    std::uint32_t in_flight_ = 0;
};

void append(const EntryRun& run, const std::uint32_t* positions, std::uint32_t found,
            std::vector<const EntryTail*>& passing) {
    for (std::uint32_t i = 0; i < found; ++i) {
        const EntryTail* tail = run.tails + positions[i];
        fetch_line(tail);
        passing.push_back(tail);
    }
}

}  // namespace

FilterTable::FilterTable() : uses_vectors_(vectors_are_used) {
    // Row 0 is that of no condition, which always passes.
    smallest_.fill(kNowhere);
    largest_.fill(0);
    smallest_[0] = 0;
    if (uses_vectors_) return;
    allowed_.assign(256 * 256, 0);
    std::fill_n(allowed_.begin(), 256, std::uint8_t{1});
}

void FilterTable::allow(std::uint32_t grid, std::uint32_t sixteenth) {
    const unsigned row = filter_row(grid);
    if (uses_vectors_) {
        const auto value = static_cast<std::uint8_t>(sixteenth);
        smallest_[row] = std::min(smallest_[row], value);
        largest_[row] = std::max(largest_[row], value);
        return;
    }
    std::uint8_t* allowed = &allowed_[row * 256];
    const std::uint8_t* ranges = kRangesWith[sixteenth].data();
    for (std::size_t i = 0; i < 256; ++i) allowed[i] |= ranges[i];
}

void FilterTable::forbid(std::uint32_t grid) {
    const unsigned row = filter_row(grid);
    smallest_[row] = kNowhere;
    largest_[row] = 0;
    if (!uses_vectors_) std::memset(&allowed_[row * 256], 0, 256);
}

void FilterTable::find_passing(const std::vector<EntryRun>& runs, std::vector<const EntryTail*>& passing) const {
    if (uses_vectors_) {
        find_by_vectors(runs, passing);
    } else {
        find_by_bytes(runs, passing);
    }
}

void FilterTable::find_by_bytes(const std::vector<EntryRun>& runs, std::vector<const EntryTail*>& passing) const {
    const std::uint8_t* allowed = allowed_.data();
    std::array<std::uint32_t, kLongestRun> positions;
    Fetcher fetcher(runs);
    for (const EntryRun& run : runs) {
        fetcher.go_on();
        std::uint32_t found = 0;
        // Without a branch on what passes, which no processor could foresee.
        for (std::uint32_t position = 0; position < run.count; ++position) {
            const FilterWord word = run.words[position];
            positions[found] = position;
            found += allowed[word.codes[0]] & allowed[word.codes[1]];
        }
        append(run, positions.data(), found, passing);
        fetcher.scanned(run);
    }
}

#ifdef MERCAST_HAS_VECTORS

// A table of 256 bytes in registers, looked up by each byte of a vector.
struct ByteTable {
    __m512i parts[4];
};

MERCAST_VECTORS static inline ByteTable loaded(const std::array<std::uint8_t, 256>& bytes) {
    return {{_mm512_loadu_si512(&bytes[0]), _mm512_loadu_si512(&bytes[64]), _mm512_loadu_si512(&bytes[128]),
             _mm512_loadu_si512(&bytes[192])}};
}

MERCAST_VECTORS static inline __m512i looked_up(const ByteTable& table, __m512i bytes) {
    const __m512i lower = _mm512_permutex2var_epi8(table.parts[0], bytes, table.parts[1]);
    const __m512i upper = _mm512_permutex2var_epi8(table.parts[2], bytes, table.parts[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), lower, upper);
}

MERCAST_VECTORS void FilterTable::find_by_vectors(const std::vector<EntryRun>& runs,
                                                  std::vector<const EntryTail*>& passing) const {
    const ByteTable smallest = loaded(smallest_), largest = loaded(largest_);
    const __m512i nibble = _mm512_set1_epi16(15);
    const __m512i step = _mm512_set1_epi32(kWordsOfLine);
    // What passes is written sixteen at a time, of which only the first count.
    std::array<std::uint32_t, kLongestRun + kWordsOfLine> positions;
    Fetcher fetcher(runs);
    for (const EntryRun& run : runs) {
        fetcher.go_on();
        __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        std::uint32_t found = 0;
        for (std::uint32_t line = 0; line < run.count; line += kWordsOfLine) {
            fetch_line(run.words + line + kLinesAhead * kWordsOfLine);
            const std::uint32_t left = run.count - line;
            const auto wanted = static_cast<__mmask16>(left < kWordsOfLine ? (1U << left) - 1 : 0xffffU);
            const __m512i codes = _mm512_maskz_loadu_epi32(wanted, run.words + line);
            // The row is the upper byte of each code; what the lower byte looks up is shifted out.
            const __m512i low = _mm512_srli_epi16(looked_up(smallest, codes), 8);
            const __m512i high = _mm512_srli_epi16(looked_up(largest, codes), 8);
            const __m512i first = _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble);
            const __m512i last = _mm512_and_si512(codes, nibble);
            const std::uint32_t passes = _mm512_cmple_epu16_mask(first, high) & _mm512_cmpge_epu16_mask(last, low);
            const auto both = static_cast<__mmask16>(_pext_u32(passes & (passes >> 1), 0x55555555U) & wanted);
            // To a register first: compressing straight into memory takes a hundred cycles on some processors.
            _mm512_storeu_si512(positions.data() + found, _mm512_maskz_compress_epi32(both, numbers));
            found += static_cast<std::uint32_t>(__builtin_popcount(both));
            numbers = _mm512_add_epi32(numbers, step);
        }
        append(run, positions.data(), found, passing);
        fetcher.scanned(run);
    }
}

#else

void FilterTable::find_by_vectors(const std::vector<EntryRun>& runs, std::vector<const EntryTail*>& passing) const {
    find_by_bytes(runs, passing);
}

#endif

}  // namespace mercast
