#include "flat/filter_words.hpp"

#include <algorithm>
#include <cstring>

#include "core/vectors.hpp"
#include "memory/fetch_line.hpp"

#ifdef MERCAST_HAS_VECTORS
#include <immintrin.h>
#endif

namespace mercast {
namespace {

constexpr std::uint8_t kNowhere = 0xff;  // larger than any sixteenth
// Prefetch distance: this many lines of words are on their way to the cache while one is tested.
constexpr std::size_t kLinesAhead = 16;
constexpr std::uint32_t kWordsOfLine = EntryRun::kMost;

// For each sixteenth, whether a range (first and last sixteenth) contains it.
constexpr std::array<std::array<std::uint8_t, 256>, 16> kRangesWith = [] {
    std::array<std::array<std::uint8_t, 256>, 16> ranges{};
    for (std::size_t sixteenth = 0; sixteenth < 16; ++sixteenth) {
        for (std::size_t range = 0; range < 256; ++range) {
            ranges[sixteenth][range] = (range >> 4) <= sixteenth && sixteenth <= (range & 15) ? 1 : 0;
        }
    }
    return ranges;
}();

void fetch_ahead(const std::vector<EntryRun>& runs, std::size_t at) {
    fetch_line(runs[std::min(at + kLinesAhead, runs.size() - 1)].words);
}

// Prefetches the tails that were found, two at a time.
class TailFetcher {
  public:
    explicit TailFetcher(const EntryTail* const* passing) : next_(passing) {}

    // Branch-free: fetches two whether or not there are two. Fetching beyond the end has no effect on the result.
    void fetch_next(const EntryTail* const* end) {
        fetch_line(next_[0]);
        fetch_line(next_[1]);
        next_ = std::min(next_ + 2, end);
    }

  private:
    const EntryTail* const* next_;
};

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

std::size_t FilterTable::find_passing(const std::vector<EntryRun>& runs, std::vector<const EntryTail*>& passing) const {
    // Whole lines are written, of which only the first tails count. TailFetcher reads two pointers beyond the last.
    const std::size_t most = (runs.size() + 1) * kWordsOfLine;
    if (passing.size() < most) passing.resize(std::max(most, 2 * passing.size()));
    const EntryTail** end = uses_vectors_ ? find_by_vectors(runs, passing.data()) : find_by_bytes(runs, passing.data());
    return static_cast<std::size_t>(end - passing.data());
}

const EntryTail** FilterTable::find_by_bytes(const std::vector<EntryRun>& runs, const EntryTail** found) const {
    const std::uint8_t* allowed = allowed_.data();
    TailFetcher fetcher(found);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        fetch_ahead(runs, i);
        const EntryRun& run = runs[i];
        // Branch-free: which word passes is not predictable. Every tail is written, and the end moves if its word
        // passes.
        for (std::uint32_t position = 0; position < run.count; ++position) {
            const FilterWord word = run.words[position];
            *found = run.tails + position;
            found += allowed[word.codes[0]] & allowed[word.codes[1]];
        }
        fetcher.fetch_next(found);
    }
    return found;
}

#ifdef MERCAST_HAS_VECTORS

// A table of 256 bytes in registers, indexed by each byte of a vector.
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

MERCAST_VECTORS const EntryTail** FilterTable::find_by_vectors(const std::vector<EntryRun>& runs,
                                                               const EntryTail** found) const {
    static_assert(sizeof(EntryTail) == 32 && sizeof(const EntryTail*) == 8 && kWordsOfLine == 16);
    const ByteTable smallest = loaded(smallest_), largest = loaded(largest_);
    const __m512i nibble = _mm512_set1_epi16(15);
    const __m512i offsets = _mm512_setr_epi64(0, 32, 64, 96, 128, 160, 192, 224);
    TailFetcher fetcher(found);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        fetch_ahead(runs, i);
        const EntryRun& run = runs[i];
        const auto wanted = static_cast<__mmask16>(_bzhi_u32(0xffffU, run.count));
        const __m512i codes = _mm512_maskz_loadu_epi32(wanted, run.words);
        // The row is the upper byte of each code. The result for the lower byte is shifted out.
        const __m512i low = _mm512_srli_epi16(looked_up(smallest, codes), 8);
        const __m512i high = _mm512_srli_epi16(looked_up(largest, codes), 8);
        const __m512i first = _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble);
        const __m512i last = _mm512_and_si512(codes, nibble);
        const std::uint32_t passes = _mm512_cmple_epu16_mask(first, high) & _mm512_cmpge_epu16_mask(last, low);
        const std::uint32_t both = _pext_u32(passes & (passes >> 1), 0x55555555U) & wanted;
        // The addresses of the tails, eight at a time. Compresses into a register first: compressing into memory takes
        // a hundred cycles on some processors.
        const __m512i front = _mm512_add_epi64(_mm512_set1_epi64(reinterpret_cast<long long>(run.tails)), offsets);
        const __m512i back = _mm512_add_epi64(_mm512_set1_epi64(reinterpret_cast<long long>(run.tails + 8)), offsets);
        _mm512_storeu_si512(found, _mm512_maskz_compress_epi64(static_cast<__mmask8>(both & 0xff), front));
        found += __builtin_popcount(both & 0xff);
        _mm512_storeu_si512(found, _mm512_maskz_compress_epi64(static_cast<__mmask8>(both >> 8), back));
        found += __builtin_popcount(both >> 8);
        fetcher.fetch_next(found);
    }
    return found;
}

#else

const EntryTail** FilterTable::find_by_vectors(const std::vector<EntryRun>& runs, const EntryTail** found) const {
    return find_by_bytes(runs, found);
}

#endif

}  // namespace mercast
