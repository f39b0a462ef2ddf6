// Ids for Python: a buffer of 64-bit integers that behaves like a sequence, without building a list.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

namespace mercast::python {

namespace nb = nanobind;

struct Ids {
    std::vector<std::int64_t> values;
};

nb::object as_ids(std::vector<std::int64_t>&& values);

}  // namespace mercast::python
