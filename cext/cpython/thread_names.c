#include "cpython/thread_names.h"

#include "core/recorder.h"
#include "cpython/attributes.h"
#include "cpython/ownership.h"
#include "cpython/sites.h"

static PyObject *way_to_name;
static PyObject *name_of_end; /* of the function in which threading forgets a thread */

static bool names_begin(void)
{
    if (!way_to_name)
        way_to_name = Py_BuildValue("(s)", "_name");
    if (!name_of_end)
        name_of_end = PyUnicode_InternFromString("_delete");
    return way_to_name && name_of_end;
}

/* The calling thread as threading knows it. A new reference, or NULL. */
static PyObject *active_thread(void)
{
    PyObject *active = entry_of_module("threading", "_active");
    PyObject *ident = active && PyDict_CheckExact(active) ? PyLong_FromUnsignedLong(PyThread_get_thread_ident()) : NULL;
    PyObject *found = ident ? entry_at(active, ident) : NULL;
    Py_XDECREF(ident);
    Py_XDECREF(active);
    return found;
}

/* The same where it is just about to be known, too: then it tells its own identity. */
static PyObject *python_thread(PyThreadState *state)
{
    frame *asking = frame_innermost(state);
    PyCodeObject *code = asking ? frame_code(asking) : NULL;
    if (code && code->co_argcount == 1 && PyUnicode_CompareWithASCIIString(code->co_name, "_set_ident") == 0)
        return Py_XNewRef(frame_value(asking, 0));
    return active_thread();
}

static void learn_thread_name(struct thread *thread, PyThreadState *state)
{
    struct reading begin = own_begin(thread);
    struct raised raised = raised_keep();
    thread->name_tries++;
    PyObject *known = names_begin() ? python_thread(state) : NULL;
    PyObject *name = known ? attribute_at(known, way_to_name) : NULL;
    Py_ssize_t bytes = 0;
    const char *text = bytes_of_text(name, &bytes);
    if (text && bytes) {
        snprintf(thread->name, sizeof thread->name, "%s", text);
        thread->record->fields.name = intern_text(name);
    }
    Py_XDECREF(name);
    Py_XDECREF(known);
    raised_restore(raised);
    own_end(thread, begin);
}

/* The calling thread is seen, by whatever it does first; its name is looked up until it is known, within limits. */
static void see_calling_thread(PyThreadState *state)
{
    struct thread *thread = state ? recording() : NULL;
    if (thread && !*thread->name && thread->name_tries < THREAD_NAME_TRIES && !thread->quiet)
        learn_thread_name(thread, state);
}

/* Its name as it ends, which threading tells by taking it out of those that are active. */
static void learn_last_name(struct thread *thread)
{
    struct reading begin = own_begin(thread);
    struct raised raised = raised_keep();
    PyObject *known = active_thread(), *name = known ? attribute_at(known, way_to_name) : NULL;
    Py_ssize_t bytes = 0;
    if (bytes_of_text(name, &bytes) && bytes)
        thread->record->fields.name = intern_text(name);
    Py_XDECREF(name);
    Py_XDECREF(known);
    raised_restore(raised);
    own_end(thread, begin);
}

/* Is it threading that asks, which is about to forget the calling thread? */
static bool is_ending(PyThreadState *state)
{
    frame *asking = frame_innermost(state);
    return asking && frame_code(asking)->co_name == name_of_end;
}

void see_asking_thread(PyThreadState *state)
{
    struct thread *thread = state ? recording() : NULL;
    if (!thread || thread->quiet)
        return;
    if (UNLIKELY(!*thread->name))
        see_calling_thread(state);
    else if (UNLIKELY(is_ending(state)))
        learn_last_name(thread);
}

void see_first_time(void)
{
    see_calling_thread(recorded_state());
}
