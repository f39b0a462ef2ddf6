// The module `matching._native`: what Python sees of the native indexes.
#include <nanobind/nanobind.h>

#include "a_tree/a_tree_bindings.hpp"
#include "a_tree/expression_scan_bindings.hpp"
#include "flat_bindings.hpp"
#include "ids_bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    module.doc() = "The native core of matching. Use it through matching.create(..., backend=\"native\").";
    // An index that lives in a global variable until the interpreter ends is no leak worth a page of text.
    nb::set_leak_warnings(false);
    mercast::python::bind_ids(module);
    mercast::python::bind_flat(module);
    mercast::a_tree::bind_a_tree(module);
    mercast::a_tree::bind_expression_scan(module);
}
