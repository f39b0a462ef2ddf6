// The module `matching._native`: the native indexes for Python.
#include <nanobind/nanobind.h>

#include "python/bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    module.doc() = "The native core of matching. Use it through matching.create(..., backend=\"native\").";
    // No leak warnings: an index in a global variable lives until the interpreter ends.
    nb::set_leak_warnings(false);
    mercast::python::bind_ids(module);
    mercast::python::bind_flat(module);
    mercast::python::bind_a_tree(module);
    mercast::python::bind_expression_scan(module);
}
