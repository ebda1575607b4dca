#include "hooks/install.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/own_thread.h"
#include "core/shared_files.h"
#include "cpython/attributes.h"
#include "cpython/side_lock.h"

/* Reads the kernel's list of mappings, for Linux before 6.11. */
static bool is_listed_as_writable(uintptr_t wanted, uintptr_t *begin, uintptr_t *end)
{
    char line[512], mode[8];
    bool writable = false;
    FILE *maps = fopen(OWN_PROC "/maps", "re");
    while (maps && !writable && fgets(line, sizeof line, maps))
        writable = sscanf(line, "%lx-%lx %7s", begin, end, mode) == 3 && *begin <= wanted && wanted < *end &&
                   mode[1] == 'w';
    if (maps)
        fclose(maps);
    return writable;
}

bool is_writable(const void *address)
{
    static uintptr_t known_begin, known_end;
    uintptr_t begin, end, wanted = (uintptr_t)address;
    if (known_begin <= wanted && wanted < known_end)
        return true;
    int writable = mapping_is_writable(wanted, &begin, &end);
    if (writable < 0)
        writable = is_listed_as_writable(wanted, &begin, &end);
    if (writable) {
        known_begin = begin;
        known_end = end;
    }
    return writable;
}

/* A function compiled by Cython 3 begins like one in C. However it is called, also by its vectorcall, the pointer is
   read from its definition at each call. If its vectorcall is elsewhere, it was compiled for the limited API, and has
   another layout. */
static bool is_cython_function(PyObject *callable)
{
    const PyTypeObject *type = Py_TYPE(callable);
    const char *dot = strrchr(type->tp_name, '.'), *name = dot ? dot + 1 : type->tp_name;
    return strcmp(name, "cython_function_or_method") == 0 && type->tp_basicsize > (Py_ssize_t)sizeof(PyCMethodObject) &&
           type->tp_vectorcall_offset == (Py_ssize_t)offsetof(PyCFunctionObject, vectorcall);
}

PyMethodDef *definition_of(PyObject *callable)
{
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml;
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyClassMethodDescr_Type))
        return ((PyMethodDescrObject *)callable)->d_method;
    return is_cython_function(callable) ? ((PyCFunctionObject *)callable)->m_ml : NULL;
}

enum signature signature_of(const PyMethodDef *definition)
{
    switch (definition->ml_flags &
            (METH_VARARGS | METH_KEYWORDS | METH_NOARGS | METH_O | METH_FASTCALL | METH_METHOD)) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS:
        return SIGNATURE_pair;
    case METH_VARARGS | METH_KEYWORDS:
        return SIGNATURE_triple;
    case METH_FASTCALL:
        return SIGNATURE_fast;
    case METH_FASTCALL | METH_KEYWORDS:
        return SIGNATURE_fast_keywords;
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
        return SIGNATURE_method;
    default:
        return SIGNATURE_COUNT;
    }
}

bool takes_one_argument(const PyMethodDef *definition)
{
    return definition->ml_flags & METH_O;
}

bool takes_arguments(const PyMethodDef *definition)
{
    return definition->ml_flags & METH_VARARGS;
}

/* The slots of a type that can be interposed, by the name of the method that shows them. */
#define TYPE_SLOTS(X) \
    X("__next__", tp_iternext, SIGNATURE_unary) \
    X("__iter__", tp_iter, SIGNATURE_unary) \
    X("__call__", tp_call, SIGNATURE_triple) \
    X("__init__", tp_init, SIGNATURE_initialise) \
    X("__del__", tp_finalize, SIGNATURE_finish)

void **type_slot(PyTypeObject *type, const char *name, enum signature *signature)
{
#define PLACE_OF_SLOT(method, member, pool) \
    if (strcmp(name, method) == 0) { \
        *signature = pool; \
        return (void **)&type->member; \
    }
    TYPE_SLOTS(PLACE_OF_SLOT)
    return NULL;
}

/* Put `to` in the place of `from` in the type's slot and in the descriptor that shows the slot as a method. */
static void exchange_in_type(PyTypeObject *type, const char *name, void *from, void *to)
{
    enum signature signature;
    void **place = type_slot(type, name, &signature);
    if (*place == from)
        __atomic_store_n(place, to, __ATOMIC_RELEASE);
    PyObject *shown = type->tp_dict ? entry_named(type->tp_dict, name) : NULL;
    if (shown && Py_IS_TYPE(shown, &PyWrapperDescr_Type) && ((PyWrapperDescrObject *)shown)->d_wrapped == from)
        __atomic_store_n(&((PyWrapperDescrObject *)shown)->d_wrapped, to, __ATOMIC_RELEASE);
    Py_XDECREF(shown);
    PyType_Modified(type);
}

bool exchange_in_types(PyTypeObject *type, const char *name, void *from, void *to)
{
    exchange_in_type(type, name, from, to);
    PyObject *subclasses = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", type);
    bool done = subclasses != NULL;
    for (Py_ssize_t index = 0; done && index < PyList_GET_SIZE(subclasses); index++)
        done = exchange_in_types((PyTypeObject *)PyList_GET_ITEM(subclasses, index), name, from, to);
    Py_XDECREF(subclasses);
    return done;
}

#if IS_FREE_THREADED
static __thread bool installing;

bool installing_begin(void)
{
    if (installing || !side_begin(SIDE_MODULES))
        return false;
    installing = true;
    return true;
}

void installing_end(void)
{
    installing = false;
    side_end(SIDE_MODULES);
}
#else
static bool installing;

bool installing_begin(void)
{
    bool before = installing;
    installing = true;
    return !before;
}

void installing_end(void)
{
    installing = false;
}
#endif
