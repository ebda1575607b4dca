/* What CPython 3.14 and all later versions have alike, and show in public, known or not (cpython/version.h). */
#pragma once

#include "cpython/locks_since_314.h"

#define THREADS_HAVE_CONTEXTS 1
#define FUNCTIONS_ENTERED ENTERED_initialisers

#ifdef Py_GIL_DISABLED
static inline PyCodeObject *code_keep(PyCodeObject *code)
{
    return PyUnstable_TryIncRef((PyObject *)code) ? code : NULL;
}

static inline void code_can_be_kept(PyCodeObject *code)
{
    PyUnstable_EnableTryIncRef((PyObject *)code);
}
#else
static inline PyCodeObject *code_keep(PyCodeObject *code)
{
    return (PyCodeObject *)Py_NewRef(code);
}

static inline void code_can_be_kept(PyCodeObject *code)
{
    (void)code;
}
#endif
