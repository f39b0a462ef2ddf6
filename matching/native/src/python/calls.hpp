// What the bindings of A-Tree and scan need of Python: patterns, and publications that stay.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace mercast::python {

namespace nb = nanobind;

// Does the pattern occur in the text? By the same RE2 as in pure Python, which keeps compiled patterns.
inline bool pattern_occurs(std::string_view pattern, std::string_view text) {
    nb::gil_scoped_acquire held;
    nb::object compile = nb::module_::import_("matching.expressions.model").attr("compile_pattern");
    nb::object compiled = compile(nb::str(pattern.data(), pattern.size()));
    return !compiled.attr("search")(nb::str(text.data(), text.size())).is_none();
}

// Events refer to a publication's texts. Where Python runs in between, another thread may change the dict: then a copy
// keeps the texts.
inline nb::object kept_publication(nb::handle publication, bool needs_copy) {
    if (!needs_copy || !PyDict_CheckExact(publication.ptr())) return nb::borrow(publication);
    return nb::steal(PyDict_Copy(publication.ptr()));
}

}  // namespace mercast::python
