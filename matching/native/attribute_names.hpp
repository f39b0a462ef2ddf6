// The numbers of attributes by the addresses of their names, which Python mostly keeps once each ("interned"). Part of the
// bindings: looking up an address is several times faster than a text.
#pragma once

#include <Python.h>

#include <array>
#include <cstdint>

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
        Slot& slot = slots_[place_of(name)];
        if (slot.name == name && slot.generation == attributes.generation()) {
            number = slot.number;
            return true;
        }
        std::string_view text;
        if (!as_text(name, text) || text.empty()) return false;
        number = attributes.find(text);
        if (number != Interner::kUnknown && PyUnicode_CHECK_INTERNED(name) != 0) {
            // The slot owns the name, so that no other comes to its address.
            Py_INCREF(name);
            Py_XDECREF(slot.name);
            slot = {name, number, attributes.generation()};
        }
        return true;
    }

  private:
    static constexpr std::size_t kSlots = 2048;

    struct Slot {
        PyObject* name = nullptr;
        std::uint32_t number = Interner::kUnknown;
        std::uint64_t generation = 0;
    };

    // Objects lie at multiples of 16.
    static std::size_t place_of(PyObject* name) {
        return (reinterpret_cast<std::uintptr_t>(name) >> 4) * 0x9e3779b97f4a7c15U >> 53;
    }
    static_assert(kSlots == std::size_t{1} << (64 - 53));

    std::array<Slot, kSlots> slots_{};
};

}  // namespace mercast::python
