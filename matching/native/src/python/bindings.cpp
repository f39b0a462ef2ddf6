// The module `matching._native`: what Python sees of the native indexes.
#include <nanobind/nanobind.h>

#include "python/bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    module.doc() = "The native core of matching. Use it through matching.create(..., backend=\"native\").";
    // An index that lives in a global variable until the interpreter ends is no leak worth a page of text.
    nb::set_leak_warnings(false);
    mercast::python::bind_ids(module);
    mercast::python::bind_flat(module);
    mercast::python::bind_a_tree(module);
    mercast::python::bind_expression_scan(module);
}
