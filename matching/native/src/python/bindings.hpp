// Each function adds one class, and the functions that belong to it, to the module `matching._native`.
#pragma once

#include <nanobind/nanobind.h>

namespace mercast::python {

namespace nb = nanobind;

void bind_ids(nb::module_& module);
void bind_flat(nb::module_& module);
void bind_a_tree(nb::module_& module);
void bind_expression_scan(nb::module_& module);

}  // namespace mercast::python
