#include "hooks/call_result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/recorder.h"
#include "cpython/attributes.h"
#include "cpython/version.h"
#include "hooks/attribute_names.h"
#include "hooks/kafka_messages.h"

/* --- error */

/* Before CPython 3.12 the error may not have been made yet: then its arguments are there. */
static long errno_of(PyObject *type, PyObject *error)
{
    if (!error || !PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)PyExc_OSError))
        return 0;
    PyObject *number = PyTuple_Check(error) ? first_of(error)
                       : PyObject_TypeCheck(error, (PyTypeObject *)PyExc_OSError) ? ((PyOSErrorObject *)error)->myerrno
                                                                                  : NULL;
    int overflow = 0;
    return number && PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : 0;
}

uint32_t error_number_here(void)
{
    struct raised raised = raised_keep();
    long number = raised.type && PyType_Check(raised.type) ? errno_of(raised.type, raised.value) : 0;
    raised_restore(raised);
    return number > 0 ? (uint32_t)number : EINVAL;
}

/* Is the class called so: by its name alone, or by its module and its name? */
static bool type_is_called(PyTypeObject *type, const char *name, size_t bytes)
{
    const char *full = type->tp_name, *dot = strrchr(full, '.'), *last = dot ? dot + 1 : full;
    const char *parted = memrchr(name, '.', bytes), *wanted = parted ? parted + 1 : name;
    size_t wanted_bytes = (size_t)(name + bytes - wanted), module_bytes = parted ? (size_t)(parted - name) : 0;
    if (strlen(last) != wanted_bytes || memcmp(last, wanted, wanted_bytes) != 0)
        return false;
    if (!parted)
        return true;
    if (dot)
        return (size_t)(dot - full) == module_bytes && memcmp(full, name, module_bytes) == 0;
    PyObject *module = entry_of_type(type, name_of_module);
    bool is_plain = module && PyUnicode_Check(module) && PyUnicode_IS_COMPACT_ASCII(module);
    const char *text = is_plain ? PyUnicode_DATA(module) : "builtins";
    size_t text_bytes = is_plain ? (size_t)PyUnicode_GET_LENGTH(module) : strlen(text);
    bool is_called_so = text_bytes == module_bytes && memcmp(text, name, module_bytes) == 0;
    Py_XDECREF(module);
    return is_called_so;
}

/* Whether it, or one of its bases, has this name. */
static bool is_error_called(PyTypeObject *type, const char *name, size_t bytes)
{
    Py_ssize_t count = type->tp_mro ? PyTuple_GET_SIZE(type->tp_mro) : 0;
    if (bytes == 1 && *name == '*')
        return true;
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *base = PyTuple_GET_ITEM(type->tp_mro, place);
        if (PyType_Check(base) && type_is_called((PyTypeObject *)base, name, bytes))
            return true;
    }
    return false;
}

static bool fires_trigger(PyTypeObject *type)
{
    for (const char *name = recorder.trigger_errors; *name;) {
        size_t bytes = strcspn(name, " ");
        if (is_error_called(type, name, bytes))
            return true;
        name += bytes + strspn(name + bytes, " ");
    }
    return false;
}

uint32_t error_here(uint64_t begun_ns)
{
    char text[256];
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct raised raised = raised_keep();
    int bytes = 0;
    if (raised.type && PyType_Check(raised.type)) {
        const char *full = ((PyTypeObject *)raised.type)->tp_name, *dot = strrchr(full, '.'), *name = dot ? dot + 1 : full;
        long number = errno_of(raised.type, raised.value);
        bytes = number ? snprintf(text, sizeof text, "%s errno %ld", name, number)
                       : snprintf(text, sizeof text, "%s", name);
        if (fires_trigger((PyTypeObject *)raised.type))
            recorder_trigger_once(thread, begun_ns);
    }
    raised_restore(raised);
    if (bytes <= 0)
        bytes = snprintf(text, sizeof text, "error");
    size_t length = strnlen(text, sizeof text);
    uint32_t number = detail_intern(text, length);
    own_end(thread, begin);
    return number;
}

/* --- bytes */

bool is_programs_buffer(PyObject *object)
{
    if (!HAS_PYTHONS_BUFFERS)
        return false;
    PyObject *method = entry_of_type(Py_TYPE(object), name_of_buffer);
    bool is_programs = !method || !Py_IS_TYPE(method, &PyWrapperDescr_Type);
    Py_XDECREF(method);
    return is_programs;
}

static uint64_t size_of_buffer(PyObject *object)
{
    Py_buffer view;
    uint64_t bytes = 0;
    struct raised raised = raised_keep();
    if (PyObject_CheckBuffer(object) && !is_programs_buffer(object) && PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) == 0) {
        bytes = (uint64_t)view.len;
        PyBuffer_Release(&view);
    }
    raised_restore(raised);
    return bytes;
}

uint64_t size_of(PyObject *moved)
{
    int overflow;
    if (!moved)
        return 0;
    if (PyLong_CheckExact(moved)) {
        long long bytes = PyLong_AsLongLongAndOverflow(moved, &overflow);
        return overflow || bytes < 0 ? 0 : (uint64_t)bytes;
    }
    if (PyBytes_Check(moved))
        return (uint64_t)PyBytes_GET_SIZE(moved);
    if (PyByteArray_Check(moved))
        return (uint64_t)PyByteArray_GET_SIZE(moved);
    if (PyUnicode_Check(moved))
        return (uint64_t)PyUnicode_GET_LENGTH(moved);
    if (PyMemoryView_Check(moved))
        return (uint64_t)PyMemoryView_GET_BUFFER(moved)->len;
    if (PyTuple_Check(moved))
        return PyTuple_GET_SIZE(moved) ? size_of(PyTuple_GET_ITEM(moved, 0)) : 0;
    return size_of_buffer(moved);
}

uint64_t size_of_sent(const struct call *call, PyObject *result)
{
    if (call->slot->moves == MOVES_messages)
        return size_of_messages(result);
    return size_of(call->count > 1 ? call->arguments[1] : argument_called(call, name_of_value));
}

uint64_t rows_of(const struct slot *slot, PyObject *result)
{
    if (!result || result == Py_None)
        return 0;
    if (slot->moves == MOVES_row)
        return 1;
    if (slot->moves == MOVES_cursor)
        return 0;
    return PyList_Check(result) || PyTuple_Check(result) ? (uint64_t)PySequence_Fast_GET_SIZE(result) : 0;
}
