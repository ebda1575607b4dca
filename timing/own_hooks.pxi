# The tracer's own hooks, in the same stubs as shims.

# threading asks for the identity first thing in a new thread: so a thread is known from its beginning, and by its name;
# and last thing before it ends, when it may have another name.
cdef PyObject *see_thread(slot *self, PyObject *module, PyObject *argument) noexcept:
    see_asking_thread(recorded_state())
    return (<pair_function>self.real)(module, argument)


# A module has been or is about to be imported: its declared intrinsics can be interposed.
cdef PyObject *see_import(slot *self, PyObject *module, PyObject *argument) noexcept:
    cdef PyObject *result = (<pair_function>self.real)(module, argument)
    if result == NULL or not recorder_is_on() or recorded_state() == NULL:
        return result
    try:
        interpose_new_modules()
    except BaseException as raised:  # by a handler of the program's, for a signal that came meanwhile
        PyErr_SetObject(type(raised), raised)
        Py_DECREF(<object>result)
        return NULL
    return result


# ctypes has loaded an object: its native calls are seen from now on.
cdef PyObject *see_dlopen(slot *self, PyObject *module, PyObject *arguments) noexcept:
    cdef PyObject *result = (<pair_function>self.real)(module, arguments)
    if result != NULL and recorder_is_on() and recorded_state() != NULL:
        native_look()
    return result


# Another greenlet runs: put aside what is in progress in this one until it runs again.
cdef PyObject *see_switch(slot *self, PyObject *greenlet, PyObject *arguments, PyObject *keywords) noexcept:
    cdef c_aside aside
    cdef PyObject *result
    lay_aside(&aside, greenlet)
    result = (<triple_function>self.real)(greenlet, arguments, keywords)
    take_up(&aside)
    return result


cdef PyObject *see_throw(slot *self, PyObject *greenlet, PyObject *arguments) noexcept:
    cdef c_aside aside
    cdef PyObject *result
    lay_aside(&aside, greenlet)
    result = (<pair_function>self.real)(greenlet, arguments)
    take_up(&aside)
    return result


# An event loop of asyncio, or another one that announces itself, begins or ends to run.
cdef PyObject *see_loop(slot *self, PyObject *module, PyObject *loop) noexcept:
    cdef PyObject *result = (<pair_function>self.real)(module, loop)
    if result != NULL and recorded_state() != NULL:
        loop_runs(loop)
    return result


# An event loop sets its hooks of asynchronous generators when it begins to run, and restores the others when it ends.
cdef PyObject *see_loop_hooks(slot *self, PyObject *module, PyObject *arguments, PyObject *keywords) noexcept:
    cdef PyObject *result = (<triple_function>self.real)(module, arguments, keywords)
    if result != NULL and recorded_state() != NULL:
        loop_hooks_are_set()
    return result


# os._exit runs no handlers; the experiment learns the status all the same.
cdef PyObject *see_exit(
    slot *self, PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    if count == 1 and names == NULL:
        end_with_status(<object>arguments[0])
    return (<fast_keywords_function>self.real)(module, arguments, count, names)


cdef void end_with_status(object status) noexcept:
    cdef long value
    if type(status) is int:
        try:
            value = PyLong_AsLong(status)
        except OverflowError:
            return
        if -(1 << 31) <= value < 1 << 31:
            recorder_end(<int>(value & 0xff))
