#include "hooks/object_descriptor.h"

#include <stdbool.h>
#include <string.h>

#include "cpython/attributes.h"
#include "hooks/attribute_names.h"

/* How to get the descriptor of a raw file and of a socket: by their own C methods. */
enum { DESCRIPTOR_OWNERS = 3 };
static struct {
    PyTypeObject *type;
    PyObject *(*ask)(PyObject *, PyObject *);
} descriptor_owners[DESCRIPTOR_OWNERS];

void descriptor_owner_add(unsigned place, PyTypeObject *type, void *ask)
{
    descriptor_owners[place].ask = (PyObject * (*)(PyObject *, PyObject *)) ask;
    __atomic_store_n(&descriptor_owners[place].type, type, __ATOMIC_RELEASE);
}

/* A closed one raises, which is ignored. */
static int descriptor_of_owner(PyObject *owner, PyObject *(*ask)(PyObject *, PyObject *))
{
    struct raised raised = raised_keep();
    PyObject *number = ask(owner, NULL);
    int found = number && PyLong_CheckExact(number) ? descriptor_of_number(number) : -1;
    Py_XDECREF(number);
    raised_restore(raised);
    return found;
}

/* The object below a text or buffer of the standard library, from its C type; a new reference or NULL. */
static PyObject *what_lies_under(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;
    const char *attribute = strcmp(name, "_io.TextIOWrapper") == 0 ? "buffer" : strncmp(name, "_io.Buffered", 12) == 0 ? "raw" : NULL;
    if (!attribute)
        return NULL;
    struct raised raised = raised_keep();
    PyObject *under = PyObject_GetAttrString(object, attribute);
    raised_restore(raised);
    return under;
}

static bool is_made_alike(const PyTypeObject *type, const PyTypeObject *known)
{
    while (type && type->tp_dealloc != known->tp_dealloc)
        type = type->tp_base;
    return type && type->tp_basicsize == known->tp_basicsize;
}

int descriptor_elsewhere(PyObject *object)
{
    if (!object)
        return -1;
    if (PyLong_CheckExact(object))
        return descriptor_of_number(object);
    for (unsigned place = 0; place < DESCRIPTOR_OWNERS; place++)
        if (descriptor_owners[place].type && is_made_alike(Py_TYPE(object), descriptor_owners[place].type))
            return descriptor_of_owner(object, descriptor_owners[place].ask);
    return -1;
}

int descriptor_under(PyObject *object)
{
    for (unsigned place = 0; place < DESCRIPTOR_OWNERS; place++)
        if (descriptor_owners[place].type && PyObject_TypeCheck(object, descriptor_owners[place].type))
            return descriptor_of_owner(object, descriptor_owners[place].ask);
    PyObject *under = what_lies_under(object);
    int number = under ? descriptor_of(under) : -1;
    Py_XDECREF(under);
    return number;
}

int descriptor_of_waited(PyObject *object)
{
    int number = descriptor_of(object);
    for (Py_ssize_t place = 0; number < 0 && object && place < PyTuple_GET_SIZE(socket_ways); place++) {
        PyObject *inner = attribute_at(object, PyTuple_GET_ITEM(socket_ways, place));
        number = inner ? descriptor_of(inner) : -1;
        Py_XDECREF(inner);
    }
    return number;
}
