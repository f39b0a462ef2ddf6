// The class `Ids`.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "python/bindings.hpp"
#include "python/ids.hpp"

namespace mercast::python {
namespace {

const std::vector<std::int64_t>& values_of(PyObject* ids) { return nb::inst_ptr<Ids>(ids)->values; }

Py_ssize_t ids_length(PyObject* self) { return static_cast<Py_ssize_t>(values_of(self).size()); }

PyObject* ids_item(PyObject* self, Py_ssize_t position) {
    const auto& values = values_of(self);
    if (position < 0 || position >= static_cast<Py_ssize_t>(values.size())) {
        PyErr_SetString(PyExc_IndexError, "position beyond the ids");
        return nullptr;
    }
    return PyLong_FromLongLong(values[static_cast<std::size_t>(position)]);
}

PyObject* ids_subscript(PyObject* self, PyObject* key) {
    const auto& values = values_of(self);
    if (!PySlice_Check(key)) {
        Py_ssize_t position = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (position == -1 && PyErr_Occurred() != nullptr) return nullptr;
        return ids_item(self, position < 0 ? position + static_cast<Py_ssize_t>(values.size()) : position);
    }
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) return nullptr;
    const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(values.size()), &start, &stop, step);
    std::vector<std::int64_t> chosen(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i)
        chosen[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(start + i * step)];
    return as_ids(std::move(chosen)).release().ptr();
}

int ids_contains(PyObject* self, PyObject* value) {
    if (!PyLong_Check(value)) return 0;
    int overflow = 0;
    const std::int64_t wanted = PyLong_AsLongLongAndOverflow(value, &overflow);
    const auto& values = values_of(self);
    return overflow == 0 && std::find(values.begin(), values.end(), wanted) != values.end() ? 1 : 0;
}

// Equal to any list, tuple or ids with the same numbers.
PyObject* ids_compare(PyObject* self, PyObject* other, int operation) {
    const bool is_ids = Py_TYPE(other) == Py_TYPE(self);
    if ((operation != Py_EQ && operation != Py_NE) || !(is_ids || PyList_Check(other) || PyTuple_Check(other))) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    bool is_equal = false;
    if (is_ids) {
        is_equal = values_of(self) == values_of(other);
    } else {
        PyObject* list = PySequence_List(self);
        PyObject* their_list = list == nullptr ? nullptr : PySequence_List(other);
        const int compared = their_list == nullptr ? -1 : PyObject_RichCompareBool(list, their_list, Py_EQ);
        Py_XDECREF(list);
        Py_XDECREF(their_list);
        if (compared < 0) return nullptr;
        is_equal = compared == 1;
    }
    return PyBool_FromLong(is_equal == (operation == Py_EQ) ? 1 : 0);
}

PyObject* ids_repr(PyObject* self) {
    PyObject* list = PySequence_List(self);
    if (list == nullptr) return nullptr;
    PyObject* text = PyUnicode_FromFormat("Ids(%R)", list);
    Py_DECREF(list);
    return text;
}

int ids_buffer(PyObject* self, Py_buffer* view, int flags) {
    if ((flags & PyBUF_WRITABLE) != 0) {
        PyErr_SetString(PyExc_BufferError, "ids cannot be written to");
        view->obj = nullptr;
        return -1;
    }
    static char format[] = "q";
    const auto& values = values_of(self);
    view->buf = const_cast<std::int64_t*>(values.data());
    view->len = static_cast<Py_ssize_t>(values.size() * sizeof(std::int64_t));
    view->itemsize = sizeof(std::int64_t);
    view->readonly = 1;
    view->ndim = 1;
    view->format = (flags & PyBUF_FORMAT) != 0 ? format : nullptr;
    auto* shape = new Py_ssize_t(static_cast<Py_ssize_t>(values.size()));
    view->shape = shape;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &view->itemsize : nullptr;
    view->suboffsets = nullptr;
    view->internal = shape;
    view->obj = self;
    Py_INCREF(self);
    return 0;
}

void ids_release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Py_ssize_t*>(view->internal); }

}  // namespace

nb::object as_ids(std::vector<std::int64_t>&& values) { return nb::cast(Ids{std::move(values)}); }

void bind_ids(nb::module_& module) {
    static PyType_Slot slots[] = {
        {Py_sq_length, reinterpret_cast<void*>(ids_length)},
        {Py_sq_item, reinterpret_cast<void*>(ids_item)},
        {Py_sq_contains, reinterpret_cast<void*>(ids_contains)},
        {Py_mp_length, reinterpret_cast<void*>(ids_length)},
        {Py_mp_subscript, reinterpret_cast<void*>(ids_subscript)},
        {Py_tp_iter, reinterpret_cast<void*>(PySeqIter_New)},
        {Py_tp_richcompare, reinterpret_cast<void*>(ids_compare)},
        {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
        {Py_tp_repr, reinterpret_cast<void*>(ids_repr)},
        {Py_bf_getbuffer, reinterpret_cast<void*>(ids_buffer)},
        {Py_bf_releasebuffer, reinterpret_cast<void*>(ids_release_buffer)},
        {0, nullptr},
    };
    nb::class_<Ids> bound(module, "Ids", nb::type_slots(slots));
    bound.def("index", [](const Ids& ids, std::int64_t id) {
        const auto found = std::find(ids.values.begin(), ids.values.end(), id);
        if (found == ids.values.end()) throw nb::value_error("this id is not among them");
        return found - ids.values.begin();
    });
    bound.def("count",
              [](const Ids& ids, std::int64_t id) { return std::count(ids.values.begin(), ids.values.end(), id); });
    nb::module_::import_("collections.abc").attr("Sequence").attr("register")(bound);
}

}  // namespace mercast::python
