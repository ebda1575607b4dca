#include "hooks/awaited_types.h"

#include <string.h>

#include "core/visible.h"
#include "cpython/frame.h"
#include "cpython/raised.h"
#include "hooks/await_event.h"
#include "hooks/await_steps.h"
#include "hooks/transaction_marks.h"

VISIBLE extern int _PyGen_SetStopIterationValue(PyObject *);

struct sort coroutines, sendings, throwings, generators;
static struct sort *const sorts[] = {&coroutines, &sendings, &throwings, &generators};

struct sort *sort_of(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    for (unsigned place = 0; place < sizeof sorts / sizeof *sorts; place++)
        if (type == &sorts[place]->type || type == sorts[place]->plain)
            return sorts[place];
    return &coroutines;
}

/* A coroutine itself says whether it has ended, because it may only have refused. For an item, its result says
   so. */
static bool has_ended(PyObject *awaited, const struct sort *sort, bool gave)
{
    return sort == &coroutines ? coroutine_has_ended(awaited) : !gave;
}

static bool has_not_begun(PyObject *awaited, const struct sort *sort)
{
    return sort == &coroutines && coroutine_has_not_begun(awaited);
}

/* Only objects of our type, which were therefore suspended, are timed. */
static struct step step_into(PyObject *awaited, struct sort *sort)
{
    struct step step = {.awaited = NULL};
    Py_INCREF(awaited); /* so that it cannot die meanwhile */
    if (Py_IS_TYPE(awaited, &sort->type)) {
        Py_SET_TYPE(awaited, sort->plain);
        step_begin(&step, awaited);
        step.awaited = awaited;
        if (!step.thread)
            marks_step(awaited, true);
    }
    return step;
}

/* By what it gives, trio's loop knows that a task lets others run, as for a lock that was free. */
static bool is_checkpoint(PyObject *given)
{
    return PyType_Check(given) && strcmp(((PyTypeObject *)given)->tp_name, "CancelShieldedCheckpoint") == 0;
}

/* After a step, the result shows how it ended; NULL without an exception is an end, too. */
static void stepped(struct step *step, struct sort *sort, PyObject *awaited, bool gave)
{
    if (!step->awaited) {
        Py_DECREF(awaited);
        return;
    }
    bool stopped = !gave && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_StopIteration));
    bool stays = !has_ended(awaited, sort, gave);
    step_end(step, !stays, !gave && !stopped && !PyErr_ExceptionMatches(PyExc_StopAsyncIteration));
    if (!step->thread)
        marks_step(awaited, false);
    struct await *await = await_find(awaited);
    if (await && stays && !step->gives_way)
        await->has_waited = true;
    if (await && has_not_begun(awaited, sort)) {
        await->call = 0;
        answer_ends(&await->answer);
    }
    if (stays)
        Py_SET_TYPE(awaited, &sort->type);
    else
        await_forget(awaited);
    Py_DECREF(awaited);
}

#define STEP(awaited, gave, call) \
    struct sort *sort = sort_of(awaited); \
    struct step step = step_into(awaited, sort); \
    call; \
    stepped(&step, sort, awaited, gave);

PySendResult step_send(PyObject *awaited, PyObject *value, PyObject **result)
{
    PySendResult how;
    STEP(awaited, how == PYGEN_NEXT, how = sort->plain->tp_as_async->am_send(awaited, value, result);
         step.result = how == PYGEN_RETURN && sort == &coroutines ? *result : NULL;
         step.gives_way = how == PYGEN_NEXT && is_checkpoint(*result))
    return how;
}

PyObject *coroutine_next(PyObject *awaited)
{
    PyObject *result;
    PySendResult how = step_send(awaited, Py_None, &result);
    if (how != PYGEN_RETURN)
        return result;
    if (result != Py_None)
        _PyGen_SetStopIterationValue(result);
    Py_DECREF(result);
    return NULL;
}

PyObject *step_next(PyObject *awaited)
{
    PyObject *result;
    STEP(awaited, result, result = sort->plain->tp_iternext(awaited))
    return result;
}

PyObject *method_send(PyObject *awaited, PyObject *value)
{
    PyObject *result;
    STEP(awaited, result, result = sort->send(awaited, value))
    return result;
}

PyObject *method_throw(PyObject *awaited, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *result;
    STEP(awaited, result, result = sort->throw(awaited, arguments, count))
    return result;
}

/* It continues as it would without us, and is no longer watched. */
static void let_go(PyObject *awaited, struct sort *sort)
{
    if (Py_IS_TYPE(awaited, &sort->type))
        Py_SET_TYPE(awaited, sort->plain);
    await_forget(awaited);
}

PyObject *method_close(PyObject *awaited, PyObject *nothing)
{
    PyObject *result;
    const struct await *await = await_find(awaited);
    if (await && !await->call)
        let_go(awaited, sort_of(awaited));
    STEP(awaited, (PyObject *)NULL, result = sort->close(awaited, nothing))
    return result;
}

PyMethodDef step_methods[] = {
    {"send", method_send, METH_O, NULL},
    {"throw", (PyCFunction)(void *)method_throw, METH_FASTCALL, NULL},
    {"close", method_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static void step_finalise(PyObject *awaited)
{
    struct sort *sort = sort_of(awaited);
    let_go(awaited, sort);
    if (sort->plain->tp_finalize)
        sort->plain->tp_finalize(awaited);
}

static void step_dealloc(PyObject *awaited)
{
    struct sort *sort = sort_of(awaited);
    let_go(awaited, sort);
    sort->plain->tp_dealloc(awaited);
}

void await_becomes(PyObject *awaited, const struct await *like, struct sort *sort)
{
    struct await copy = *like, *await = Py_IS_TYPE(awaited, sort->plain) ? await_add(awaited) : NULL;
    if (!await)
        return;
    *await = copy;
    await->awaited = awaited;
    if (await->scope)
        ++*those_of_scope(await->scope);
    Py_XINCREF(await->told);
    Py_XINCREF(await->scope);
    Py_XINCREF(await->state);
    Py_SET_TYPE(awaited, &sort->type);
}

/* --- at the beginning */

static PyMethodDef *method_called(PyTypeObject *type, const char *name)
{
    for (PyMethodDef *method = type->tp_methods; method && method->ml_name; method++)
        if (strcmp(method->ml_name, name) == 0)
            return method;
    return NULL;
}

PyCFunction method_of(PyTypeObject *type, const char *name, int flags)
{
    PyMethodDef *method = method_called(type, name);
    return method && method->ml_flags == flags ? method->ml_meth : NULL;
}

int type_begin(PyTypeObject *type, PyTypeObject *plain, PyMethodDef *methods)
{
    Py_SET_REFCNT(type, 1);
    type->tp_name = plain->tp_name;
    type->tp_base = plain;
    type->tp_basicsize = plain->tp_basicsize;
    type->tp_itemsize = plain->tp_itemsize;
    type->tp_flags = plain->tp_flags & (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC);
    type->tp_traverse = plain->tp_traverse;
    type->tp_clear = plain->tp_clear;
    type->tp_weaklistoffset = plain->tp_weaklistoffset;
    type->tp_methods = methods;
    if (PyType_Ready(type))
        return -1;
    PyDict_DelItemString(type->tp_dict, "__doc__");
    PyErr_Clear();
    return 0;
}

int sort_begin(struct sort *sort, PyTypeObject *plain, PyMethodDef *methods)
{
    sort->plain = plain;
    sort->type.tp_dealloc = step_dealloc;
    sort->type.tp_finalize = step_finalise;
    return type_begin(&sort->type, plain, methods);
}

int steps_begin(struct sort *sort, PyTypeObject *plain, PyMethodDef *methods)
{
    sort->send = method_of(plain, "send", METH_O);
    sort->close = method_of(plain, "close", METH_NOARGS);
    sort->throw = (fast_function)(void *)method_of(plain, "throw", METH_FASTCALL);
    return sort->send && sort->close && sort->throw ? sort_begin(sort, plain, methods) : -1;
}

void never_awaited(PyObject *item)
{
    struct raised raised = raised_keep();
    PyObject *closed = item ? PyObject_CallMethod(item, "close", NULL) : NULL;
    Py_XDECREF(closed);
    Py_XDECREF(item);
    PyErr_Clear();
    raised_restore(raised);
}
