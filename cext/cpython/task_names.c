#include "cpython/task_names.h"

#include <ctype.h>
#include <string.h>

#include "core/interning.h"
#include "core/recorder.h"
#include "core/task_names.h"
#include "cpython/attributes.h"

/* --- the task that asyncio runs */

/* What a function that is C code gives; NULL if it is not. The reference to it is taken. */
static PyObject *called(PyObject *function)
{
    PyObject *given = function && PyCFunction_Check(function) ? PyObject_CallNoArgs(function) : NULL;
    Py_XDECREF(function);
    return given;
}

/* Before 3.12 this is known by a dictionary alone. */
static PyObject *task_of_running_loop(void)
{
    PyObject *tasks = entry_of_module("_asyncio", "_current_tasks");
    PyObject *loop = tasks && PyDict_CheckExact(tasks) ? called(entry_of_module("_asyncio", "_get_running_loop")) : NULL;
    PyObject *task = loop ? entry_at(tasks, loop) : NULL;
    Py_XDECREF(loop);
    Py_XDECREF(tasks);
    return task;
}

static PyObject *running_task(void)
{
    PyObject *current = entry_of_module("_asyncio", "current_task");
    return current ? called(current) : task_of_running_loop();
}

/* What a method gives that is C code; NULL if it is not. */
static PyObject *given_by(PyObject *object, const char *method)
{
    PyObject *name = PyUnicode_InternFromString(method);
    PyObject *found = name ? entry_of_type(Py_TYPE(object), name) : NULL;
    PyObject *given = found && Py_IS_TYPE(found, &PyMethodDescr_Type) ? PyObject_CallOneArg(found, object) : NULL;
    Py_XDECREF(found);
    Py_XDECREF(name);
    return given;
}

/* --- names */

/* The one that asyncio gives where the program gives none says nothing, and is another for each. */
static bool is_given_by_asyncio(PyObject *name)
{
    Py_ssize_t bytes = 0;
    const char *text = bytes_of_text(name, &bytes);
    if (!text || strncmp(text, "Task-", 5) != 0)
        return false;
    while (isdigit((unsigned char)text[5]))
        text++;
    return !text[5];
}

static PyObject *name_by_program(PyObject *outermost)
{
    PyObject *task = running_task();
    PyObject *coroutine = task ? given_by(task, "get_coro") : NULL;
    PyObject *name = coroutine == outermost ? given_by(task, "get_name") : NULL;
    if (name && is_given_by_asyncio(name))
        Py_CLEAR(name);
    Py_XDECREF(coroutine);
    Py_XDECREF(task);
    return name;
}

static PyObject *name_of_coroutine(PyObject *outermost)
{
    bool is_known = PyCoro_CheckExact(outermost) || PyGen_CheckExact(outermost) || PyAsyncGen_CheckExact(outermost);
    return is_known ? PyObject_GetAttrString(outermost, "__qualname__") : NULL;
}

/* What a greenlet is to run: greenlet knows it until that begins, gevent keeps it. No code of the program's runs. */
static PyObject *run_by_greenlet(PyObject *greenlet)
{
    PyObject *name = PyUnicode_InternFromString("run");
    PyObject *found = name ? entry_of_type(Py_TYPE(greenlet), name) : NULL, *run = NULL;
    if (found && Py_IS_TYPE(found, &PyGetSetDescr_Type))
        run = PyObject_GenericGetAttr(greenlet, name);
    else if (found) {
        PyObject **names = _PyObject_GetDictPtr(greenlet);
        run = names && *names ? entry_named(*names, "_run") : NULL;
    }
    Py_XDECREF(found);
    Py_XDECREF(name);
    PyErr_Clear();
    return run;
}

static PyObject *name_of_greenlet(PyObject *greenlet)
{
    PyObject *run = run_by_greenlet(greenlet);
    PyObject *function = run && PyMethod_Check(run) ? PyMethod_GET_FUNCTION(run) : run;
    PyObject *name = function && PyFunction_Check(function) ? ((PyFunctionObject *)function)->func_qualname : NULL;
    Py_XINCREF(name);
    Py_XDECREF(run);
    return name;
}

static uint32_t number_of_name(PyObject *name)
{
    Py_ssize_t bytes = 0;
    const char *text = bytes_of_text(name, &bytes);
    return text && bytes ? string_intern(text, (size_t)bytes) : 0;
}

void learn_task_name(uint32_t number, PyObject *outermost)
{
    struct thread *thread = recording();
    if (!thread || thread->quiet)
        return;
    struct reading begin = own_begin(thread);
    struct raised raised = raised_keep();
    PyObject *name = thread->in_loop ? name_by_program(outermost) : NULL;
    PyErr_Clear();
    name = name ? name : name_of_coroutine(outermost);
    name = name ? name : name_of_greenlet(outermost);
    task_name_keep(number, number_of_name(name));
    Py_XDECREF(name);
    raised_restore(raised);
    own_end(thread, begin);
}
