// Flat: conjunctions in access-predicate lists over records of one cache line.
//
// A subscription is filed under one of its conditions, its access predicate: an equality or a small IN under a hash of
// dimension and value, a range in the buckets of its dimension's grid. Of [THESIS 6, 7] it keeps PSTBloom's idea, a word
// beside each reference that rules most of a list out before any subscription is touched, and PSTHash's, to file by the
// access predicate that fewest publications reach. It changes three things. PS-Tree's exact predicate spaces are coarse
// buckets, because exact spaces explode on wide domains and the record decides anyway. The word holds no hashed
// attributes but two more conditions, quantised to cells: it tells values apart and not only presence. Lists lie flat in
// memory, words before references, and everything that is touched is fetched ahead: time is cache lines, not
// comparisons.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dimensions.hpp"
#include "entry_lists.hpp"
#include "event.hpp"
#include "filter_words.hpp"
#include "form.hpp"
#include "record.hpp"
#include "storage.hpp"
#include "terms.hpp"

namespace mercast {

struct Answer {
    std::vector<std::int64_t> ids;      // ascending
    std::vector<std::int64_t> pending;  // match if their patterns do; ascending
    std::uint64_t candidates = 0;       // entries of the lists that the publication leads to
    std::uint64_t evaluated = 0;        // of these, records that were looked at
};

struct DestinationAnswer {
    std::vector<std::uint32_t> destinations;  // numbers, in the order in which they were hit
    std::vector<std::int64_t> pending;        // match if their patterns do, and their destination was not hit
    std::optional<std::int64_t> without;      // the smallest id that matches and has no destination
    std::uint64_t candidates = 0;
    std::uint64_t evaluated = 0;
};

// What one thread needs to match, kept between publications.
struct Scratch {
    Event event;
    std::vector<KeyPair> keys;                // by dimension
    std::vector<std::uint8_t> cells;          // by grid
    FilterTable filter;
    std::vector<std::uint32_t> dimensions;    // that have a value now
    std::vector<std::uint32_t> lists;
    std::vector<EntryRun> runs;               // what these lists hold
    std::vector<const EntryTail*> passing;    // the tails of the entries whose word passed
    std::vector<std::uint32_t> records;       // still to be looked at
    std::vector<bool> is_hit;                 // by destination
    std::vector<std::int64_t> sorting;
};

class FlatIndex {
  public:
    FlatIndex();
    FlatIndex(const FlatIndex&) = delete;
    FlatIndex& operator=(const FlatIndex&) = delete;
    ~FlatIndex();

    bool contains(std::int64_t id) const { return ids_.find({id}) != kNone; }
    // Where `contains`, `add` and `remove` will look.
    void prefetch(std::int64_t id) const { ids_.prefetch({id}); }
    // The id must not be there, and must be there.
    void add(std::int64_t id, const Conjunction& conjunction, std::optional<std::string_view> destination);
    void remove(std::int64_t id);

    // The scratch's event is matched. The index does not change, so several threads may do this.
    void match(Scratch& scratch, Answer& answer) const;
    void match_destinations(Scratch& scratch, DestinationAnswer& answer) const;
    // How often publications have a value in a dimension guides where the next subscriptions are filed. Tells the index
    // of the publication that was matched last.
    void learn(const Scratch& scratch);

    std::uint32_t size() const { return ids_.size(); }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Interner& destinations() const { return destinations_; }
    Form form(std::int64_t id) const;
    std::uint32_t destination(std::int64_t id) const;
    std::vector<std::int64_t> ids_in_order() const;  // of their addition

    struct Figures {
        std::uint64_t lists, entries, dimensions, grids, bytes;
    };
    Figures figures() const;

  private:
    // What is needed to change or explain a subscription: this, then where its entries are, then its form or, where that is
    // long, a pointer to it.
    struct Details {
        static constexpr std::uint16_t kLongForm = 0xffff;

        std::int64_t id;
        std::uint32_t record;
        std::uint32_t sequence_low;
        std::uint16_t sequence_high;
        std::uint16_t form_bytes;
        std::uint16_t copies;

        std::uint64_t sequence() const { return std::uint64_t{sequence_high} << 32 | sequence_low; }
    };
    static_assert(sizeof(Details) == 24);
    struct LongForm {
        std::size_t bytes;
        const std::uint8_t* at() const { return reinterpret_cast<const std::uint8_t*>(this + 1); }
    };
    struct Place {
        std::uint32_t list;
        std::uint32_t position;
    };
    struct Target;  // Where to file a subscription, and what it costs.

    Details& details(std::uint32_t handle) const { return *reinterpret_cast<Details*>(details_.at(handle)); }
    static Place* places(Details& details) { return reinterpret_cast<Place*>(&details + 1); }
    static std::uint8_t* form_place(Details& details) {
        return reinterpret_cast<std::uint8_t*>(places(details) + details.copies);
    }
    static const LongForm* long_form(const Details& details);
    static Form form_of(const Details& details);
    void store_form(Details& details, Form form);
    void drop_form(const Details& details);
    std::uint32_t destination_of_owner(const Details& details) const { return destination_of(records_.at(details.record)); }

    struct Subscription {
        std::int64_t id;
        std::uint64_t sequence;
        std::uint32_t destination;
    };
    // Files what `terms_` and the form say.
    void file(const Subscription& subscription, Form form);
    void unfile(std::uint32_t handle);
    void take_out_entries(Details& details);
    std::uint32_t position_of(const Details& owner, std::uint32_t copy) const;
    void retain_grids(const Entry& entry);
    void release_grids(const Entry& entry);
    bool is_stale(const Entry& entry) const;
    void refresh(std::uint32_t list);
    void refile_lists_of(std::uint32_t grid);
    void compact_lists();
    void compact_records(std::uint32_t freed);
    void compact_details(std::uint32_t freed);

    // An interval's cells in its dimension's newest grid, and what share of publications they let pass.
    struct Rating {
        Grid::Cells cells{1, 1, false};
        std::uint32_t grid = 0;
        double presence = 0;
        double share = 1;
    };

    // These speak of `terms_`.
    void rate_intervals();
    Target choose_target() const;
    double value_share(std::uint32_t dimension, std::uint64_t key) const;
    Entry make_entry(std::size_t filed_under, bool is_filed_by_value, std::int64_t id) const;
    void collect_lists(const Target& target);
    static bool is_value(const EntryLists::Owner& owner);
    // The list of those that are filed by this value: it hangs on the newest grid if the value is a cut of it, or in the
    // table. `find` may give kNone.
    std::uint32_t find_value_list(std::uint32_t dimension, std::uint64_t key) const;
    std::uint32_t value_list(std::uint32_t dimension, std::uint64_t key);
    void set_value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t list);
    // When the dimension has a new grid.
    void move_value_lists(std::uint32_t dimension, std::uint32_t former_grid);
    std::uint32_t bucket_list(std::uint32_t grid, std::uint32_t bucket);
    void drop_list(std::uint32_t list);

    void load(Scratch& scratch) const;
    void unload(Scratch& scratch) const;
    void touch(Scratch& scratch, std::uint32_t attribute, Aspect aspect, KeyPair keys) const;
    void find_lists(Scratch& scratch) const;
    // What the lists hold, and how many entries that is. The records of those that are alone are to be looked at.
    std::uint64_t find_runs(Scratch& scratch) const;
    // Finds the entries that pass their ranges. Those that are decided go to the ids, if there are any to go to; the
    // records of the others are to be looked at. Returns how many entries the lists have.
    std::uint64_t filter(Scratch& scratch, std::vector<std::int64_t>* decided) const;
    std::int64_t id_of(const std::byte* record, std::uint16_t shape) const;
    template <typename Wants, typename Hit>
    void verify(const Scratch& scratch, Wants wants, Hit hit) const;

    Vocabulary vocabulary_;
    Interner destinations_;
    Dimensions dimensions_;
    ChunkStore store_;
    EntryLists lists_{store_};
    NumberTable<ValueKey> values_;
    NumberTable<IdKey> ids_;
    SizedSlots<64, 31> records_{store_};
    SizedSlots<16, 31> details_{store_};
    std::uint32_t always_ = kNone;  // the list of those that no condition leads to
    std::uint64_t next_sequence_ = 0;
    std::uint64_t publications_ = 0;
    std::uint64_t entries_ = 0;
    std::size_t long_form_bytes_ = 0;

    std::vector<std::uint8_t> form_;          // while a subscription is added
    Terms terms_;
    std::vector<Rating> ratings_;
    std::vector<std::uint32_t> target_lists_;
    std::vector<std::uint32_t> grown_lists_;
    std::vector<std::uint32_t> outgrown_;
};

}  // namespace mercast
