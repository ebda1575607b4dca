/* Is told what line trace is told, and does nothing: what the interpreter alone takes for telling. */
#include <Python.h>

#if PY_VERSION_HEX >= 0x030c0000
static PyObject *see(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)arguments, (void)count;
    Py_RETURN_NONE;
}

/* see(*arguments): a callback for sys.monitoring. */
static PyMethodDef methods[] = {{"see", (PyCFunction)(void (*)(void))see, METH_FASTCALL, NULL}, {0}};
#else
static int see(PyObject *argument, PyFrameObject *frame, int what, PyObject *given)
{
    (void)argument, (void)frame, (void)what, (void)given;
    return 0;
}

/* begin(): have the trace function told of the calling thread. */
static PyObject *begin(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    PyEval_SetTrace(see, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"begin", begin, METH_NOARGS, NULL}, {0}};
#endif

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "floor", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_floor(void)
{
    return PyModule_Create(&definition);
}
