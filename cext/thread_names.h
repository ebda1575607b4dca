/* The names that threads have in Python: read where a thread is first seen, which may have begun before, and where threading
   asks who it is, first thing in a new one. Nothing of the program's is run. */
#pragma once

#include "frame.h"
#include "ownership.h"
#include "plain.h"
#include "sites.h"

/* A borrowed reference, or NULL. */
static PyObject *entry_of_module(const char *module, const char *name)
{
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
    PyObject *names = found && PyModule_Check(found) ? PyModule_GetDict(found) : NULL;
    return names ? PyDict_GetItemString(names, name) : NULL;
}

/* The calling thread as threading knows it: the one that is just about to be known tells its own identity. Borrowed. */
static PyObject *python_thread(PyThreadState *state)
{
    frame *asking = frame_innermost(state);
    PyCodeObject *code = asking ? frame_code(asking) : NULL;
    if (code && code->co_argcount == 1 && PyUnicode_CompareWithASCIIString(code->co_name, "_set_ident") == 0)
        return frame_first_argument(asking);
    PyObject *active = entry_of_module("threading", "_active");
    PyObject *ident = active && PyDict_CheckExact(active) ? PyLong_FromUnsignedLong(PyThread_get_thread_ident()) : NULL;
    PyObject *found = ident ? PyDict_GetItemWithError(active, ident) : NULL;
    Py_XDECREF(ident);
    return found;
}

static __attribute__((noinline)) void learn_thread_name(struct thread *thread, PyThreadState *state)
{
    static PyObject *way;
    PyObject *type, *value, *traceback;
    struct reading begin = own_begin(thread);
    PyErr_Fetch(&type, &value, &traceback);
    thread->name_tries++;
    if (!way)
        way = Py_BuildValue("(s)", "_name");
    PyObject *known = way ? python_thread(state) : NULL, *name = known ? attribute_at(known, way) : NULL;
    Py_ssize_t bytes = 0;
    const char *text = bytes_of_text(name, &bytes);
    if (text && bytes) {
        snprintf(thread->name, sizeof thread->name, "%s", text);
        thread->record->fields.name = intern_text(name);
    }
    Py_XDECREF(name);
    PyErr_Restore(type, value, traceback);
    own_end(thread, begin);
}

/* The calling thread is seen, by whatever it does first; its name is looked for until it is known, but not for ever. */
static inline void see_calling_thread(PyThreadState *state)
{
    struct thread *thread = state ? recording() : NULL;
    if (thread && !*thread->name && thread->name_tries < THREAD_NAME_TRIES && !thread->quiet)
        learn_thread_name(thread, state);
}

static void see_first_time(void)
{
    see_calling_thread(recorded_state());
}
