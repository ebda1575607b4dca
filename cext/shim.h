/* What every shim does before and after the real call; the shims themselves are in timing/shims.pyx. */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "recorder.h"
#include "sites.h"
#include "statement.h"
#include "stubs.h"

enum { DESCRIPTORS_KNOWN = 256, STATEMENT_READ = 64 * 1024 };

/* --- detail */

static uint32_t intern_normalised(PyObject *statement, uint64_t key)
{
    static char text[STRING_BYTES + 1]; /* under the interpreter's lock; one more byte tells that it was cut */
    Py_ssize_t bytes;
    const char *sql = PyUnicode_AsUTF8AndSize(statement, &bytes);
    if (sql)
        return statement_intern(key, text, statement_normalise(sql, (size_t)bytes, text, sizeof text));
    PyErr_Clear();
    return 0;
}

static uint32_t intern_beginning(PyObject *statement, uint64_t key)
{
    PyObject *beginning = PyUnicode_Substring(statement, 0, STATEMENT_READ);
    if (!beginning) {
        PyErr_Clear();
        return 0;
    }
    uint32_t number = intern_normalised(beginning, key);
    Py_DECREF(beginning);
    return number;
}

static __attribute__((noinline)) uint32_t new_statement(PyObject *statement, uint64_t key)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    bool whole = PyUnicode_GET_LENGTH(statement) <= STATEMENT_READ;
    uint32_t number = whole ? intern_normalised(statement, key) : intern_beginning(statement, key);
    own_end(thread, begin);
    return number;
}

static uint32_t statement_detail(PyObject *statement)
{
    if (!PyUnicode_CheckExact(statement))
        return 0;
    Py_hash_t hash = ((PyASCIIObject *)statement)->hash;
    if (hash == -1)
        hash = PyObject_Hash(statement);
    uint64_t key = (uint64_t)hash ^ ((uint64_t)PyUnicode_GET_LENGTH(statement) << 48);
    uint32_t number = statement_find(key);
    return LIKELY(number) ? number : new_statement(statement, key);
}

static uint32_t descriptor_detail(PyObject *descriptor)
{
    static uint32_t known[DESCRIPTORS_KNOWN], known_serial;
    char text[32];
    if (known_serial != recorder.serial) {
        memset(known, 0, sizeof known);
        known_serial = recorder.serial;
    }
    if (!PyLong_CheckExact(descriptor))
        return 0;
    int overflow;
    long number = PyLong_AsLongAndOverflow(descriptor, &overflow);
    if (overflow || number < 0)
        return 0;
    if (number < DESCRIPTORS_KNOWN && known[number])
        return known[number];
    uint32_t detail = string_intern(text, (size_t)snprintf(text, sizeof text, "descriptor %ld", number));
    if (number < DESCRIPTORS_KNOWN)
        known[number] = detail;
    return detail;
}

static inline uint32_t detail_of(const struct slot *slot, PyObject *subject)
{
    if (!subject)
        return 0;
    return slot->detail == DETAIL_STATEMENT ? statement_detail(subject) : descriptor_detail(subject);
}

/* The argument that the detail is taken from, by the way arguments are passed; NULL where it was not given. */
static inline PyObject *subject_in_array(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count)
{
    return slot->detail && slot->detail_argument < count ? arguments[slot->detail_argument] : NULL;
}

static inline PyObject *subject_in_tuple(const struct slot *slot, PyObject *arguments)
{
    if (!slot->detail || !arguments || !PyTuple_Check(arguments) ||
        slot->detail_argument >= PyTuple_GET_SIZE(arguments))
        return NULL;
    return PyTuple_GET_ITEM(arguments, slot->detail_argument);
}

/* METH_O passes the argument itself, METH_VARARGS a tuple of them, METH_NOARGS nothing. */
static inline PyObject *subject_of_pair(const struct slot *slot, PyObject *argument)
{
    if (!slot->detail || !argument)
        return NULL;
    return slot->detail_argument == DETAIL_WHOLE ? argument : subject_in_tuple(slot, argument);
}

/* --- error */

static long errno_of(PyObject *error)
{
    if (!error || !PyObject_TypeCheck(error, (PyTypeObject *)PyExc_OSError))
        return 0;
    PyObject *number = ((PyOSErrorObject *)error)->myerrno;
    int overflow = 0;
    return number && PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : 0;
}

/* The exception that is set, by its type's name and the system's error number; it stays set. */
static __attribute__((noinline)) uint32_t error_here(void)
{
    char text[256];
    PyObject *type, *value, *traceback;
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    PyErr_Fetch(&type, &value, &traceback);
    int bytes = 0;
    if (type && PyType_Check(type)) {
        const char *name = ((PyTypeObject *)type)->tp_name;
        long number = errno_of(value);
        bytes = number ? snprintf(text, sizeof text, "%s errno %ld", name, number)
                       : snprintf(text, sizeof text, "%s", name);
    }
    PyErr_Restore(type, value, traceback);
    if (bytes <= 0)
        bytes = snprintf(text, sizeof text, "error");
    size_t length = strnlen(text, sizeof text);
    uint32_t number = string_intern(text, length);
    own_end(thread, begin);
    return number;
}

/* --- bytes */

static inline uint64_t bytes_of(const struct slot *slot, PyObject *result)
{
    if (slot->bytes == BYTES_NONE || !result || !PyLong_CheckExact(result))
        return 0;
    int overflow;
    long long bytes = PyLong_AsLongLongAndOverflow(result, &overflow);
    return overflow || bytes < 0 ? 0 : (uint64_t)bytes;
}

/* --- the two sides of a call */

/* The calling thread's state if it runs in the interpreter that is recorded: another one may have a lock of its own,
   and ours is all that orders what the recorder does. */
static inline PyThreadState *recorded_state(void)
{
    PyThreadState *state = _PyThreadState_UncheckedGet();
    return LIKELY(state && state->interp == sites_interpreter) ? state : NULL;
}

/* False: pass through, there is nothing to end. */
static inline bool shim_begin(struct span *span, const struct slot *slot, PyObject *subject)
{
    PyThreadState *state = recorded_state();
    struct thread *thread = state ? recording() : NULL;
    if (UNLIKELY(!thread)) {
        if (state && recorder.on)
            recorder_lose();
        return false;
    }
    uint32_t detail = slot->detail ? detail_of(slot, subject) : 0;
    return span_begin(span, thread, slot->intrinsic, stack_here(state), detail);
}

static inline void shim_end(struct span *span, const struct slot *slot, PyObject *result, bool failed)
{
    if (UNLIKELY(!span_stop(span)))
        return;
    uint32_t error = UNLIKELY(failed) ? error_here() : 0;
    if (UNLIKELY(span->wall_ns >= recorder.stack_above_ns && recorder.stack_kept))
        span->stack = whole_stack_here();
    span_record(span, bytes_of(slot, result), error);
}

/* What calibration calls instead of an intrinsic. */
static PyObject *do_nothing(PyObject *self, PyObject *argument)
{
    (void)self;
    return argument;
}
