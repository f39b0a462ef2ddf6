// Python's texts and integers in C++.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>

namespace mercast::python {

inline bool as_text(PyObject* object, std::string_view& text) {
    if (!PyUnicode_CheckExact(object)) return false;
    if (PyUnicode_IS_COMPACT_ASCII(object)) {
        // The bytes of an ASCII string are UTF-8.
        text = {static_cast<const char*>(PyUnicode_DATA(object)),
                static_cast<std::size_t>(PyUnicode_GET_LENGTH(object))};
        return true;
    }
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(object, &size);
    if (bytes == nullptr) {
        PyErr_Clear();
        return false;
    }
    text = {bytes, static_cast<std::size_t>(size)};
    return true;
}

inline bool as_int64(PyObject* object, std::int64_t& value) {
    if (!PyLong_CheckExact(object)) return false;
#if PY_VERSION_HEX >= 0x030c0000
    const auto* number = reinterpret_cast<const PyLongObject*>(object);
    if (PyUnstable_Long_IsCompact(number)) {
        value = PyUnstable_Long_CompactValue(number);
        return true;
    }
#else
    // At most one digit, which is the usual case.
    if (const Py_ssize_t size = Py_SIZE(object); size >= -1 && size <= 1) {
        value = size * static_cast<std::int64_t>(reinterpret_cast<const PyLongObject*>(object)->ob_digit[0]);
        return true;
    }
#endif
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}

}  // namespace mercast::python
