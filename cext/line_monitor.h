/* Line trace by sys.monitoring: callbacks in C. Events are asked for of the chosen code objects alone; of all others only
   their first beginning is seen, and then no more. */
#pragma once

static struct {
    PyObject *disable; /* sys.monitoring.DISABLE */
    PyObject *set_local_events;
    int tool;
    int events;        /* of a chosen code object */
    int jump, branch;  /* the same, of one with loops in one line */
} monitoring;

static PyObject *not_again(void)
{
    return Py_NewRef(monitoring.disable);
}

static PyThreadState *here_state(void)
{
    return _PyThreadState_UncheckedGet();
}

/* From now on the code's own events are told. */
static void observe(struct traced_code *known)
{
    known->observed = 1;
    known->plan = known->plan ? known->plan : plan_of(known->code);
    int events = monitoring.events;
    if (known->plan && known->plan->ways_back_in_line)
        events |= monitoring.jump | (known->plan->entries_by_branch ? monitoring.branch : 0);
    PyObject *set = PyObject_CallFunction(monitoring.set_local_events, "iOi", monitoring.tool, known->code, events);
    if (!set)
        PyErr_Clear();
    Py_XDECREF(set);
}

static __attribute__((noinline)) struct traced_code *look_and_observe(PyCodeObject *code, PyThreadState *state, frame *here)
{
    uint64_t begin = ticks_now();
    struct traced_code *known = traced_code_of(code, here);
    struct line_thread *thread = lines_of(state);
    if (known && known->chosen && !known->observed)
        observe(known);
    if (thread)
        lines_own(thread, begin);
    return known;
}

static PyObject *see_begin(PyObject *const *arguments, bool begins)
{
    PyThreadState *state = here_state();
    frame *here = frame_innermost(state);
    struct traced_code *known = here ? code_extra((PyCodeObject *)*arguments, traced.index) : NULL;
    if (UNLIKELY(!known || known->serial != traced.serial || !known->observed))
        known = here ? look_and_observe((PyCodeObject *)*arguments, state, here) : NULL;
    if (!known || !known->chosen || !lines.on)
        return not_again();
    function_begins(state, known, here, begins);
    Py_RETURN_NONE;
}

static PyObject *see_start(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    return see_begin(arguments, true);
}

static PyObject *see_resume(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    return see_begin(arguments, false);
}

/* It cannot be switched off for a place. */
static PyObject *see_throw(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    Py_DECREF(see_begin(arguments, false));
    Py_RETURN_NONE;
}

static PyObject *see_end(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)arguments, (void)count, (void)names;
    struct line_thread *thread = current_lines();
    if (LIKELY(thread != NULL))
        function_ends(thread, frame_running(thread->state));
    Py_RETURN_NONE;
}

/* All functions' are told, those not chosen too. */
static PyObject *see_unwind(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    struct line_thread *thread = current_lines();
    frame *here = frame_innermost(here_state());
    struct traced_code *known = thread && thread->beyond ? code_extra((PyCodeObject *)*arguments, traced.index) : NULL;
    if (thread && (thread->top->frame == here || (known && known->chosen)))
        function_ends(thread, here);
    Py_RETURN_NONE;
}

static __attribute__((noinline)) void line_begins_elsewhere(void)
{
    PyThreadState *state = here_state();
    frame *here = frame_innermost(state);
    struct line_thread *thread = find_frame(state, here);
    if (thread)
        line_begins(thread, here);
}

static PyObject *see_line(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)arguments, (void)count, (void)names;
    struct line_thread *thread = current_lines();
    frame *here = LIKELY(thread != NULL) ? frame_running(thread->state) : NULL;
    if (LIKELY(here && thread->top->frame == here))
        line_begins(thread, here);
    else
        line_begins_elsewhere();
    Py_RETURN_NONE;
}

static inline struct line_thread *innermost(PyThreadState *state, frame *here)
{
    struct line_thread *thread = current_lines();
    return LIKELY(thread && thread->top->frame == here) ? thread : find_frame(state, here);
}

/* A jump within a line: its way back, if it is one. */
static PyObject *see_jump(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    PyThreadState *state = here_state();
    frame *here = frame_innermost(state);
    struct line_thread *thread = innermost(state, here);
    if (!thread)
        Py_RETURN_NONE;
    const struct plan *plan = thread->top->plan;
    size_t from = (size_t)PyLong_AsLong(arguments[1]) / 2, to = (size_t)PyLong_AsLong(arguments[2]) / 2;
    if (from >= plan->units || to >= from)
        return not_again();
    uint32_t left = plan->spot_of[from] & SPOT_NUMBER, spot = plan->spot_of[to];
    if (plan->spot[left].line != plan->spot[spot & SPOT_NUMBER].line)
        return not_again();
    lines_charge(thread, thread->event_ticks);
    come_to(thread, plan, spot);
    Py_RETURN_NONE;
}

/* A loop of one line whose body is come to by the test at its top. */
static PyObject *see_branch(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    (void)self, (void)count, (void)names;
    PyThreadState *state = here_state();
    struct line_thread *thread = innermost(state, frame_innermost(state));
    if (!thread)
        Py_RETURN_NONE;
    const struct plan *plan = thread->top->plan;
    uint32_t from = (uint32_t)PyLong_AsLong(arguments[1]) / 2, to = (uint32_t)PyLong_AsLong(arguments[2]) / 2;
    int line = from < plan->units ? plan->spot[plan->spot_of[from] & SPOT_NUMBER].line : -1;
    for (uint32_t index = 0; index < plan->loops; index++) {
        const struct planned_loop *loop = &plan->loop[index];
        if (!loop->in_one_line || loop->is_for || loop->line != line || from >= loop->target)
            continue;
        thread->top->table->loops[index].passes += to == loop->target;
        Py_RETURN_NONE;
    }
    return not_again();
}

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

static const struct {
    const char *event;
    vectorcallfunc call;
} line_callbacks[] = {
    {"PY_START", see_start}, {"PY_RESUME", see_resume}, {"PY_THROW", see_throw},
    {"PY_RETURN", see_end},  {"PY_YIELD", see_end},     {"PY_UNWIND", see_unwind},
    {"LINE", see_line},      {"JUMP", see_jump},        {"BRANCH", see_branch},
};

static PyObject *new_callback(vectorcallfunc call)
{
    struct callback *callback = PyObject_New(struct callback, &callback_type);
    if (callback)
        callback->call = call;
    return (PyObject *)callback;
}

/* The number of an event by its name; 0 with an exception where there is none. */
static int event_number(const char *name)
{
    PyObject *events = PyObject_GetAttrString(PySys_GetObject("monitoring"), "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    int found = number ? (int)PyLong_AsLong(number) : 0;
    Py_XDECREF(events);
    Py_XDECREF(number);
    return found;
}

static bool done(PyObject *result)
{
    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    return result != NULL;
}

static bool register_callbacks(PyObject *monitor, bool on)
{
    bool registered = true;
    for (size_t each = 0; each < sizeof line_callbacks / sizeof *line_callbacks; each++) {
        PyObject *callback = on ? new_callback(line_callbacks[each].call) : Py_NewRef(Py_None);
        registered &= callback && done(PyObject_CallMethod(monitor, "register_callback", "iiO", monitoring.tool,
                                                           event_number(line_callbacks[each].event), callback));
        Py_XDECREF(callback);
    }
    return registered;
}

/* Functions that are in progress are seen from their next line on, of all threads. */
static void observe_running(void)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(traced.interpreter);
    for (; state; state = PyThreadState_Next(state))
        for (frame *here = frame_innermost(state); here; here = frame_outer(here)) {
            struct traced_code *known = traced_code_of(frame_code(here), here);
            if (known && known->chosen && !known->observed)
                observe(known);
        }
}

static void observe_no_more(void)
{
    for (struct traced_code *known = traced.first; known; known = known->next) {
        if (!known->observed)
            continue;
        known->observed = 0;
        done(PyObject_CallFunction(monitoring.set_local_events, "iOi", monitoring.tool, known->code, 0));
    }
}

/* Numbers that CPython has given to nobody; 0 to 2 and 5 are for debuggers, coverage, profilers and optimizers. */
static bool take_tool(PyObject *monitor)
{
    static const int tools[] = {4, 3};
    for (int index = 0; index < 2; index++) {
        monitoring.tool = tools[index];
        if (done(PyObject_CallMethod(monitor, "use_tool_id", "is", monitoring.tool, "interpose")))
            return true;
    }
    return false;
}

static bool prepare_monitoring(PyObject *monitor)
{
    if (!monitoring.disable)
        monitoring.disable = PyObject_GetAttrString(monitor, "DISABLE");
    if (!monitoring.set_local_events)
        monitoring.set_local_events = PyObject_GetAttrString(monitor, "set_local_events");
    monitoring.events = event_number("PY_START") | event_number("PY_RESUME") | event_number("PY_RETURN") |
                        event_number("PY_YIELD") | event_number("LINE");
    monitoring.jump = event_number("JUMP");
    monitoring.branch = event_number("BRANCH");
    return monitoring.disable && monitoring.set_local_events && PyType_Ready(&callback_type) == 0;
}

/* They are told of all threads, or of none. */
enum { EVENTS_BY_THREAD = 0 };

/* Have the events told; why not, or NULL. */
static const char *events_begin(void)
{
    PyObject *monitor = PySys_GetObject("monitoring");
    if (!monitor || !prepare_monitoring(monitor)) {
        PyErr_Clear();
        return "sys.monitoring is not there";
    }
    if (!take_tool(monitor))
        return "sys.monitoring: the numbers for tools that are nobody's are taken by others";
    int events = event_number("PY_START") | event_number("PY_RESUME") | event_number("PY_THROW") | event_number("PY_UNWIND");
    register_callbacks(monitor, true);
    observe_running();
    done(PyObject_CallMethod(monitor, "set_events", "ii", monitoring.tool, events));
    return NULL;
}

/* What was missed meanwhile, or NULL. */
static const char *events_end(void)
{
    PyObject *monitor = PySys_GetObject("monitoring");
    if (!monitor)
        return NULL;
    done(PyObject_CallMethod(monitor, "set_events", "ii", monitoring.tool, 0));
    observe_no_more();
    register_callbacks(monitor, false);
    done(PyObject_CallMethod(monitor, "free_tool_id", "i", monitoring.tool));
    return NULL;
}
