// The numbers of attributes by the addresses of their names, which Python mostly keeps once each ("interned"). Part of the
// bindings: looking up an address is several times faster than a text.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "interning.hpp"
#include "python_values.hpp"

namespace mercast::python {

class AttributeNames {
  public:
    AttributeNames() = default;
    AttributeNames(const AttributeNames&) = delete;
    AttributeNames& operator=(const AttributeNames&) = delete;
    ~AttributeNames() {
        for (const Slot& slot : slots_) Py_XDECREF(slot.name);
    }

    // The number of the attribute, or kUnknown if no subscription mentions it. False if it is no name of an attribute.
    bool find(PyObject* name, const Interner& attributes, std::uint32_t& number) {
        if (!slots_.empty()) {
            const Slot& slot = slots_[place_of(name)];
            if (slot.name == name && slot.generation == attributes.generation()) {
                number = slot.number;
                return true;
            }
        }
        return look_up(name, attributes, number);
    }

  private:
    static constexpr unsigned kFewestBits = 5, kMostBits = 11;

    struct Slot {
        PyObject* name = nullptr;
        std::uint32_t number = Interner::kUnknown;
        std::uint64_t generation = 0;
    };

    // Objects lie at multiples of 16.
    std::size_t place_of(PyObject* name) const {
        return (reinterpret_cast<std::uintptr_t>(name) >> 4) * 0x9e3779b97f4a7c15U >> (64 - bits_);
    }

    bool look_up(PyObject* name, const Interner& attributes, std::uint32_t& number) {
        std::string_view text;
        if (!as_text(name, text) || text.empty()) return false;
        number = attributes.find(text);
        if (number != Interner::kUnknown && PyUnicode_CHECK_INTERNED(name) != 0) {
            remember({name, number, attributes.generation()});
        }
        return true;
    }

    void remember(const Slot& slot) {
        if (slots_.empty()) {
            slots_.resize(std::size_t{1} << bits_);
        } else if (++remembered_ > slots_.size() && bits_ < kMostBits) {
            grow();
        }
        Slot& place = slots_[place_of(slot.name)];
        // It owns the name, so that no other comes to its address.
        Py_INCREF(slot.name);
        Py_XDECREF(place.name);
        place = slot;
    }

    void grow() {
        remembered_ = 0;
        ++bits_;
        std::vector<Slot> before(std::size_t{1} << bits_);
        before.swap(slots_);
        for (const Slot& slot : before) {
            // Two of the smaller table never meet in the larger one.
            if (slot.name != nullptr) slots_[place_of(slot.name)] = slot;
        }
    }

    std::vector<Slot> slots_;
    unsigned bits_ = kFewestBits;
    std::size_t remembered_ = 0;  // since it grew
};

}  // namespace mercast::python
