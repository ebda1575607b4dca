# The shims' bodies, one for each signature; those that let free locks pass; the tracer's own hooks.

cdef PyObject *time_pair(slot *self, PyObject *owner, PyObject *argument) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not begin_pair(&call, self, owner, &argument):
        return (<pair_function>self.real)(owner, argument)
    result = (<pair_function>self.real)(owner, argument)
    shim_end(&call, result, result == NULL)
    return result


cdef PyObject *time_triple(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not begin_tuple(&call, self, owner, arguments, keywords):
        return (<triple_function>self.real)(owner, arguments, keywords)
    result = (<triple_function>self.real)(owner, arguments, keywords)
    shim_end(&call, result, result == NULL)
    return result


cdef PyObject *time_fast(slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not shim_begin(&call, self, owner, arguments, count, NULL):
        return (<fast_function>self.real)(owner, arguments, count)
    result = (<fast_function>self.real)(owner, arguments, count)
    shim_end(&call, result, result == NULL)
    return result


cdef PyObject *time_fast_keywords(
    slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not shim_begin(&call, self, owner, arguments, count, names):
        return (<fast_keywords_function>self.real)(owner, arguments, count, names)
    result = (<fast_keywords_function>self.real)(owner, arguments, count, names)
    shim_end(&call, result, result == NULL)
    return result


cdef PyObject *time_method(
    slot *self, PyObject *owner, PyTypeObject *type, PyObject *const *arguments, size_t count, PyObject *names
) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not shim_begin(&call, self, owner, arguments, <Py_ssize_t>count, names):
        return (<method_function>self.real)(owner, type, arguments, count, names)
    result = (<method_function>self.real)(owner, type, arguments, count, names)
    shim_end(&call, result, result == NULL)
    return result


cdef PyObject *time_vector(
    slot *self, PyObject *function, PyObject *const *arguments, size_t flags, PyObject *names
) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not begin_vector(&call, self, function, arguments, flags, names):
        return (<vector_function>self.real)(function, arguments, flags, names)
    result = (<vector_function>self.real)(function, arguments, flags, names)
    shim_end(&call, result, result == NULL)
    return result


# A function that makes a coroutine or an asynchronous generator, which is what is timed.
cdef PyObject *time_awaited(
    slot *self, PyObject *function, PyObject *const *arguments, size_t flags, PyObject *names
) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not begin_vector(&call, self, function, arguments, flags, names):
        return (<vector_function>self.real)(function, arguments, flags, names)
    result = (<vector_function>self.real)(function, arguments, flags, names)
    shim_end_or_await(&call, result)
    return result


# The same for a Python function of a package, which is behind a wrapper.
cdef PyObject *time_wrapped(PyObject *wrapper, PyObject *const *arguments, size_t flags, PyObject *names) noexcept:
    cdef const slot *self = wrapper_slot(wrapper)
    cdef PyObject *real = wrapper_real(wrapper)
    cdef c_call call
    cdef PyObject *result
    if real == NULL:
        return NULL
    if begin_vector(&call, self, wrapper, arguments, flags, names):
        result = PyObject_Vectorcall(real, arguments, flags, names)
        shim_end_or_await(&call, result)
    else:
        result = PyObject_Vectorcall(real, arguments, flags, names)
    Py_DECREF(<object>real)
    return result


# tp_iternext gives NULL without an exception at the end: that is no error.
cdef PyObject *time_unary(slot *self, PyObject *owner) noexcept:
    cdef c_call call
    cdef PyObject *result
    if not shim_begin(&call, self, owner, NULL, 0, NULL):
        return (<unary_function>self.real)(owner)
    result = (<unary_function>self.real)(owner)
    shim_end(&call, result, result == NULL and PyErr_Occurred() != NULL)
    return result


cdef int time_initialise(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef c_call call
    cdef int result
    if not begin_tuple(&call, self, owner, arguments, keywords):
        return (<initialise_function>self.real)(owner, arguments, keywords)
    result = (<initialise_function>self.real)(owner, arguments, keywords)
    shim_end(&call, NULL, result < 0)
    return result


cdef void time_finish(slot *self, PyObject *owner) noexcept:
    cdef c_call call
    if not shim_begin(&call, self, owner, NULL, 0, NULL):
        (<finish_function>self.real)(owner)
        return
    (<finish_function>self.real)(owner)
    shim_end(&call, NULL, False)


cdef void *bodies[SIGNATURE_COUNT]
bodies[SIGNATURE_pair] = <void *>time_pair
bodies[SIGNATURE_triple] = <void *>time_triple
bodies[SIGNATURE_fast] = <void *>time_fast
bodies[SIGNATURE_fast_keywords] = <void *>time_fast_keywords
bodies[SIGNATURE_method] = <void *>time_method
bodies[SIGNATURE_vector] = <void *>time_vector
bodies[SIGNATURE_unary] = <void *>time_unary
bodies[SIGNATURE_initialise] = <void *>time_initialise
bodies[SIGNATURE_finish] = <void *>time_finish


# --- locks: the same, but a free one is passed through

cdef PyObject *take_pair(slot *self, PyObject *lock, PyObject *argument) noexcept:
    cdef thread_state *state = recorded_state()
    cdef c_thread *thread = lock_passes(self, lock, state, NULL, NULL)
    cdef PyObject *result
    if thread == NULL:
        result = time_pair(self, lock, argument)
        lock_waited(self, lock, state, result)
        return result
    result = (<pair_function>self.real)(lock, argument)
    lock_passed(self, lock, state, thread, result)
    return result


cdef PyObject *take_triple(slot *self, PyObject *lock, PyObject *arguments, PyObject *keywords) noexcept:
    cdef thread_state *state = recorded_state()
    cdef c_thread *thread = lock_passes(self, lock, state, first_of(arguments), keywords)
    cdef PyObject *result
    if thread == NULL:
        result = time_triple(self, lock, arguments, keywords)
        lock_waited(self, lock, state, result)
        return result
    result = (<triple_function>self.real)(lock, arguments, keywords)
    lock_passed(self, lock, state, thread, result)
    return result


cdef PyObject *take_fast_keywords(
    slot *self, PyObject *lock, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    cdef thread_state *state = recorded_state()
    cdef c_thread *thread = lock_passes(self, lock, state, arguments[0] if count else NULL, NULL)
    cdef PyObject *result
    if thread == NULL:
        result = time_fast_keywords(self, lock, arguments, count, names)
        lock_waited(self, lock, state, result)
        return result
    result = (<fast_keywords_function>self.real)(lock, arguments, count, names)
    lock_passed(self, lock, state, thread, result)
    return result


cdef void *takers[SIGNATURE_COUNT]
takers[SIGNATURE_pair] = <void *>take_pair
takers[SIGNATURE_triple] = <void *>take_triple
takers[SIGNATURE_fast_keywords] = <void *>take_fast_keywords


# --- what starts a program: the same, with what a descendant needs in the environment that is passed on

cdef PyObject *pass_pair(slot *self, PyObject *module, PyObject *arguments) noexcept:
    cdef c_passed passed
    cdef PyObject *result = time_pair(self, module, pass_tuple(&passed, self, arguments))
    pass_end(&passed, self)
    return result


cdef PyObject *pass_fast(slot *self, PyObject *module, PyObject *const *arguments, Py_ssize_t count) noexcept:
    cdef c_passed passed
    cdef PyObject *result = time_fast(self, module, pass_items(&passed, self, arguments, count, NULL), count)
    pass_end(&passed, self)
    return result


cdef PyObject *pass_fast_keywords(
    slot *self, PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    cdef c_passed passed
    cdef PyObject *const *given = pass_items(&passed, self, arguments, count, names)
    cdef PyObject *result = time_fast_keywords(self, module, given, count, names)
    pass_end(&passed, self)
    return result


cdef void *passers[SIGNATURE_COUNT]
passers[SIGNATURE_pair] = <void *>pass_pair
passers[SIGNATURE_fast] = <void *>pass_fast
passers[SIGNATURE_fast_keywords] = <void *>pass_fast_keywords


# --- the tracer's own hooks, in the same stubs

# threading asks for the identity first thing in a new thread: so a thread is known from its beginning, and by its name;
# and last thing before it ends, when it may have another name.
cdef PyObject *see_thread(slot *self, PyObject *module, PyObject *argument) noexcept:
    see_asking_thread(recorded_state())
    return (<pair_function>self.real)(module, argument)


# A module has been or is about to be imported: its declared intrinsics can be interposed.
cdef PyObject *see_import(slot *self, PyObject *module, PyObject *argument) noexcept:
    cdef PyObject *result = (<pair_function>self.real)(module, argument)
    if result == NULL or not recorder_state.on or recorded_state() == NULL:
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
    if result != NULL and recorder_state.on and recorded_state() != NULL:
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
