/* Is told what line trace is told, and does nothing, or reads the time each time: what the interpreter alone takes for
   telling, and the quickest clock. */
#include <Python.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <time.h>
#endif

static unsigned long long sum; /* of what was read, or it would not be */

static unsigned long long ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_nsec;
#endif
}

#if PY_VERSION_HEX >= 0x030c0000
static PyObject *see(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)arguments, (void)count, (void)names;
    Py_RETURN_NONE;
}

static PyObject *see_and_read(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)arguments, (void)count, (void)names;
    sum += ticks();
    Py_RETURN_NONE;
}

struct callback {
    PyObject_HEAD
    vectorcallfunc call;
};

/* The least that sys.monitoring can call. */
static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "floor.callback",
    .tp_basicsize = sizeof(struct callback),
    .tp_vectorcall_offset = offsetof(struct callback, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
};

/* begin(reads): a callback for sys.monitoring. */
static PyObject *begin(PyObject *self, PyObject *reads)
{
    (void)self;
    struct callback *made = PyType_Ready(&callback_type) ? NULL : PyObject_New(struct callback, &callback_type);
    if (made)
        made->call = reads == Py_True ? see_and_read : see;
    return (PyObject *)made;
}
#else
static int see(PyObject *argument, PyFrameObject *frame, int what, PyObject *given)
{
    (void)argument, (void)frame, (void)what, (void)given;
    return 0;
}

static int see_and_read(PyObject *argument, PyFrameObject *frame, int what, PyObject *given)
{
    (void)argument, (void)frame, (void)what, (void)given;
    sum += ticks();
    return 0;
}

/* begin(reads): have the trace function told of the calling thread. */
static PyObject *begin(PyObject *self, PyObject *reads)
{
    (void)self;
    PyEval_SetTrace(reads == Py_True ? see_and_read : see, NULL);
    Py_RETURN_NONE;
}
#endif

static PyMethodDef methods[] = {{"begin", begin, METH_O, NULL}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "floor", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_floor(void)
{
    return PyModule_Create(&definition);
}
