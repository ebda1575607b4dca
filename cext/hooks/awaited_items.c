#include "hooks/awaited_items.h"

#include "hooks/await_table.h"
#include "hooks/awaited_types.h"

static PyObject *item_of(PyObject *generator, PyObject *item)
{
    const struct await *await = await_find(generator);
    if (item && await)
        await_becomes(item, await, Py_IS_TYPE(item, sendings.plain) ? &sendings : &throwings);
    return item;
}

/* As if of its own type, which what makes an item asks for. */
#define ITEM(generator, call) \
    struct sort *sort = sort_of(generator); \
    Py_SET_TYPE(generator, sort->plain); \
    PyObject *item = call; \
    Py_SET_TYPE(generator, &sort->type); \
    return item_of(generator, item);

static PyObject *generator_next(PyObject *generator)
{
    ITEM(generator, PyAsyncGen_Type.tp_as_async->am_anext(generator))
}

static PyObject *method_asend(PyObject *generator, PyObject *value)
{
    ITEM(generator, sort->send(generator, value))
}

static PyObject *method_aclose(PyObject *generator, PyObject *nothing)
{
    ITEM(generator, sort->close(generator, nothing))
}

/* The type for items as this one. From 3.15 on they are stepped like coroutines. */
static int items_begin(struct sort *sort, PyTypeObject *plain, PyAsyncMethods *methods)
{
    sort->type.tp_iternext = step_next;
    if (plain->tp_as_async->am_send) {
        methods->am_send = step_send;
        sort->type.tp_as_async = methods;
    }
    return steps_begin(sort, plain, step_methods);
}

static PyMethodDef generator_methods[] = {
    {"asend", method_asend, METH_O, NULL},
    {"aclose", method_aclose, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyAsyncMethods generator_async = {.am_anext = generator_next}, sending_async, throwing_async;

int generators_begin(PyObject *generator)
{
    PyObject *sending = PyObject_CallMethod(generator, "__anext__", NULL);
    PyObject *throwing = sending ? PyObject_CallMethod(generator, "aclose", NULL) : NULL;
    generators.send = method_of(&PyAsyncGen_Type, "asend", METH_O);
    generators.close = method_of(&PyAsyncGen_Type, "aclose", METH_NOARGS);
    generator_async.am_aiter = PyAsyncGen_Type.tp_as_async->am_aiter;
    generators.type.tp_as_async = &generator_async;
    int failed = !throwing || !generators.send || !generators.close ||
                 items_begin(&sendings, Py_TYPE(sending), &sending_async) ||
                 items_begin(&throwings, Py_TYPE(throwing), &throwing_async) ||
                 sort_begin(&generators, &PyAsyncGen_Type, generator_methods);
    never_awaited(sending);
    never_awaited(throwing);
    return failed ? -1 : 0;
}
