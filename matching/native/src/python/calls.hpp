// Calls into Python by the bindings of A-Tree and scan.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace mercast::python {

namespace nb = nanobind;

// Returns whether the pattern occurs in the text. Uses the same RE2 as pure Python, which caches compiled patterns.
inline bool pattern_occurs(std::string_view pattern, std::string_view text) {
    nb::gil_scoped_acquire gil;
    nb::object compile = nb::module_::import_("matching.expressions.model").attr("compile_pattern");
    nb::object compiled = compile(nb::str(pattern.data(), pattern.size()));
    return !compiled.attr("search")(nb::str(text.data(), text.size())).is_none();
}

// Events refer to a publication's texts. If Python code runs during matching, another thread may change the dict. A
// copy then keeps the texts alive.
inline nb::object kept_publication(nb::handle publication, bool needs_copy) {
    if (!needs_copy || !PyDict_CheckExact(publication.ptr())) return nb::borrow(publication);
    return nb::steal(PyDict_Copy(publication.ptr()));
}

}  // namespace mercast::python
