// The module `matching._native`: what Python sees of the native indexes.
#include <nanobind/nanobind.h>

#include "message_pack.hpp"
#include "python_reading.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    module.doc() = "The native core of matching. Use it through matching.create(..., backend=\"native\").";
}
