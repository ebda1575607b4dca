#include "cpython/monitoring.h"

#include <stddef.h>

#include "cpython/version.h"

#if HAS_MONITORING

enum { INSTRUCTION_EVENT = 6 }; /* its place in the interpreter's lists by events */

PyObject *monitoring_disable;
static PyObject *set_local_events;

/* What sys.monitoring calls: the least that can be called, for a built-in function would do more than the callback. */
struct callback {
    PyObject_HEAD
    vectorcallfunc call;
};

static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "interpose.callback",
    .tp_basicsize = sizeof(struct callback),
    .tp_vectorcall_offset = offsetof(struct callback, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
};

static PyObject *new_callback(vectorcallfunc call)
{
    struct callback *callback = PyObject_New(struct callback, &callback_type);
    if (callback)
        callback->call = call;
    return (PyObject *)callback;
}

int event_number(const char *name)
{
    PyObject *events = PyObject_GetAttrString(PySys_GetObject("monitoring"), "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    int found = number ? (int)PyLong_AsLong(number) : 0;
    if (!number)
        PyErr_Clear();
    Py_XDECREF(events);
    Py_XDECREF(number);
    return found;
}

int branch_event_numbers(void)
{
    int numbers = 0;
#define ADD_NUMBER(name) numbers |= event_number(name);
    BRANCH_EVENTS(ADD_NUMBER)
#undef ADD_NUMBER
    return numbers;
}

static bool done(PyObject *result)
{
    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    return result != NULL;
}

static bool register_callbacks(PyObject *monitor, const struct monitor_tool *tool, bool on)
{
    bool registered = true;
    for (const struct monitored *each = tool->events; each->event; each++) {
        PyObject *callback = on ? new_callback(each->call) : Py_NewRef(Py_None);
        registered &= callback && done(PyObject_CallMethod(monitor, "register_callback", "iiO", tool->number,
                                                           event_number(each->event), callback));
        Py_XDECREF(callback);
    }
    return registered;
}

/* CPython records which tools want which instruction only if several tools watch a code object. When a second one
   comes, it starts an empty list, and the first tool, ours or the program's, gets no more instruction events (3.12,
   3.13). So this makes the list before that. */
static void keep_instruction_tools(PyCodeObject *code)
{
#if IS_KNOWN
    _PyCoMonitoringData *data = code->_co_monitoring;
    if (!data || !data->per_instruction_opcodes || data->per_instruction_tools)
        return;
    uint8_t *tools = PyMem_Malloc((size_t)Py_SIZE(code));
    for (Py_ssize_t unit = 0; tools && unit < Py_SIZE(code); unit++)
        tools[unit] = data->per_instruction_opcodes[unit] ? data->active_monitors.tools[INSTRUCTION_EVENT] : 0;
    data->per_instruction_tools = tools;
#else
    (void)code;
#endif
}

bool monitor_code(const struct monitor_tool *tool, PyCodeObject *code, int events)
{
    keep_instruction_tools(code);
    bool is_monitored = done(PyObject_CallFunction(set_local_events, "iOi", tool->number, code, events));
    keep_instruction_tools(code);
    return is_monitored;
}

bool monitor_all(const struct monitor_tool *tool, int events)
{
    return done(PyObject_CallMethod(PySys_GetObject("monitoring"), "set_events", "ii", tool->number, events));
}

/* Tool numbers 3 and 4 are reserved for nobody; 0 to 2 and 5 are for debuggers, coverage, profilers and
   optimizers. */
static bool take_number(PyObject *monitor, struct monitor_tool *tool)
{
    for (int index = 0; index < 2; index++) {
        tool->number = tool->numbers[index];
        if (done(PyObject_CallMethod(monitor, "use_tool_id", "is", tool->number, "interpose")))
            return true;
    }
    return false;
}

static bool monitoring_prepare(PyObject *monitor)
{
    if (!monitoring_disable)
        monitoring_disable = PyObject_GetAttrString(monitor, "DISABLE");
    if (!set_local_events)
        set_local_events = PyObject_GetAttrString(monitor, "set_local_events");
    return monitoring_disable && set_local_events && PyType_Ready(&callback_type) == 0;
}

const char *monitoring_begin(struct monitor_tool *tool)
{
    PyObject *monitor = PySys_GetObject("monitoring");
    if (UNSUPPORTED)
        return UNSUPPORTED;
    if (!monitor || !monitoring_prepare(monitor)) {
        PyErr_Clear();
        return "sys.monitoring is missing";
    }
    if (!take_number(monitor, tool))
        return "sys.monitoring: other tools use all free tool numbers";
    register_callbacks(monitor, tool, true);
    return NULL;
}

void monitoring_end(const struct monitor_tool *tool)
{
    PyObject *monitor = PySys_GetObject("monitoring");
    if (!monitor)
        return;
    monitor_all(tool, 0);
    register_callbacks(monitor, tool, false);
    done(PyObject_CallMethod(monitor, "free_tool_id", "i", tool->number));
}

#endif
