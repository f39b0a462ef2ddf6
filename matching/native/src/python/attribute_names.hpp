// The numbers of attributes by the addresses of their names. Python mostly stores each name once ("interned"). Looking
// up an address is several times faster than looking up a text.
#pragma once

#include <Python.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/interning.hpp"
#include "python/values.hpp"

namespace mercast::python {

class AttributeNames {
  public:
    AttributeNames() = default;
    AttributeNames(const AttributeNames&) = delete;
    AttributeNames& operator=(const AttributeNames&) = delete;
    ~AttributeNames() {
        for (const Bucket& bucket : buckets_) {
            for (PyObject* name : bucket.names) Py_XDECREF(name);
        }
    }

    // Sets the number of the attribute, or kUnknown if no subscription uses it. Returns false if this is not an
    // attribute name.
    [[gnu::always_inline]] bool find(PyObject* name, const Interner& attributes, std::uint32_t& number) {
        if (!buckets_.empty()) {
            const Bucket& bucket = buckets_[place_of(name)];
            for (std::size_t i = 0; i < kWays; ++i) {
                if (bucket.names[i] != name || bucket.generations[i] != attributes.generation()) continue;
                number = bucket.numbers[i];
                return true;
            }
        }
        return look_up(name, attributes, number);
    }

  private:
    static constexpr unsigned kFewestBits = 3, kMostBits = 12;
    // As many as fit into a cache line.
    static constexpr std::size_t kWays = 3;

    struct alignas(64) Bucket {
        std::array<PyObject*, kWays> names{};
        std::array<std::uint64_t, kWays> generations{};
        std::array<std::uint32_t, kWays> numbers{};
        std::uint32_t replaced = 0;  // the position that was replaced last
    };
    static_assert(sizeof(Bucket) == 64);

    // Objects are at multiples of 16.
    std::size_t place_of(PyObject* name) const {
        return (reinterpret_cast<std::uintptr_t>(name) >> 4) * 0x9e3779b97f4a7c15U >> (64 - bits_);
    }

    [[gnu::noinline]] bool look_up(PyObject* name, const Interner& attributes, std::uint32_t& number) {
        std::string_view text;
        if (!as_text(name, text) || text.empty()) return false;
        number = attributes.find(text);
        if (number != Interner::kUnknown && PyUnicode_CHECK_INTERNED(name) != 0) {
            insert(name, number, attributes.generation());
        }
        return true;
    }

    // Holds a reference to the name, so that no other object gets its address.
    void insert(PyObject* name, std::uint32_t number, std::uint64_t generation) {
        if (buckets_.empty()) buckets_.resize(std::size_t{1} << bits_);
        if (buckets_[place_of(name)].names.back() != nullptr && ++crowded_ > buckets_.size() / 4 && bits_ < kMostBits)
            grow();
        Bucket& bucket = buckets_[place_of(name)];
        const std::size_t way = way_for(name, bucket);
        Py_INCREF(name);
        Py_XDECREF(bucket.names[way]);
        bucket.names[way] = name;
        bucket.generations[way] = generation;
        bucket.numbers[way] = number;
    }

    // Its present position, where its number may be outdated; or the first empty one; or each in turn.
    static std::size_t way_for(PyObject* name, Bucket& bucket) {
        for (std::size_t i = 0; i < kWays; ++i) {
            if (bucket.names[i] == name || bucket.names[i] == nullptr) return i;
        }
        return ++bucket.replaced % kWays;
    }

    void grow() {
        crowded_ = 0;
        ++bits_;
        std::vector<Bucket> before(std::size_t{1} << bits_);
        before.swap(buckets_);
        for (const Bucket& bucket : before) {
            for (std::size_t i = 0; i < kWays && bucket.names[i] != nullptr; ++i) {
                // The names of one bucket go to two, so there is room.
                Bucket& larger = buckets_[place_of(bucket.names[i])];
                const std::size_t way = way_for(bucket.names[i], larger);
                larger.names[way] = bucket.names[i];
                larger.generations[way] = bucket.generations[i];
                larger.numbers[way] = bucket.numbers[i];
            }
        }
    }

    std::vector<Bucket> buckets_;
    unsigned bits_ = kFewestBits;
    std::size_t crowded_ = 0;  // names inserted into a full bucket since the table grew
};

}  // namespace mercast::python
