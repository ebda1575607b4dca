# Libraries before ours: wrappers that a library gives, which of them a call reaches, and what comes of it.
#
# A call is resolved from a level on: 0, the first library, for the program's own calls; n + 1 inside a wrapper of the
# library at position n. The level is part of the context (contextvars), so it follows tasks, and threads that are
# started inside a wrapper. Calls from a library's own code are resolved after that library, wherever the code runs.

cdef object _level = PyContextVar_New("interpose", NULL)
cdef list _links = []      # for ever: a call may be in one at the end
cdef list _binders = []    # the names of modules that wrappers are of, and the level of what they call
cdef object _catch_all = None
cdef object _awaiting = None
cdef int CO_COROUTINE = 0x80, CO_ASYNC_GENERATOR = 0x200
cdef int GENERATORS = 0x20 | CO_ASYNC_GENERATOR


cdef long context_level() except -1:
    cdef PyObject *value = NULL
    if PyContextVar_Get(_level, NULL, &value) < 0:
        PyErr_Clear()
    if value == NULL:
        return 0
    level = <object>value
    Py_DECREF(level)
    return level


cdef long level_here() except -1:
    """From which level on a call that is made here is resolved."""
    cdef long level = context_level()
    cdef void *names = PyEval_GetGlobals()
    for known, behind in _binders:
        if <void *>known == names and behind > level:
            level = behind
    return level


cdef object enter_level(long level):
    """Resolve from that level on; returns the argument for `leave_level`."""
    return None if context_level() == level else PyContextVar_Set(_level, level)


cdef bint leave_level(object token) except False:
    if token is not None and PyContextVar_Reset(_level, token) < 0:
        PyErr_Clear()  # a generator that began in another context
    return True


cdef class Real:
    """The original of a Python function or of a slot, as it is called behind a stub."""

    cdef c_signature signature
    cdef void *real
    cdef object function, owner
    cdef str name     # of a slot
    cdef bint is_bound

    cdef PyObject *call(self, tuple arguments, dict keywords) noexcept:
        cdef PyObject *owner = <PyObject *>self.owner
        cdef PyObject *result
        if self.signature == SIGNATURE_vector:
            given = (self.owner, *arguments) if self.is_bound else arguments
            return call_vector(self.real, self.function, given, keywords)
        if self.signature == SIGNATURE_unary:
            result = (<unary_function>self.real)(owner)
            if result == NULL and PyErr_Occurred() == NULL:
                PyErr_SetNone(StopIteration)
            return result
        if self.signature == SIGNATURE_initialise:
            if (<initialise_function>self.real)(owner, <PyObject *>arguments, <PyObject *>keywords) < 0:
                return NULL
            Py_INCREF(None)
            return <PyObject *>None
        return (<triple_function>self.real)(owner, <PyObject *>arguments, <PyObject *>keywords)

    def __call__(self, *arguments, **keywords):
        return given(self.call(arguments, keywords))

    def __getattr__(self, name):
        return getattr(self.function if self.name is None else getattr(type(self.owner), self.name), name)


cdef PyObject *call_vector(void *real, object function, tuple arguments, dict keywords) noexcept:
    cdef PyObject **items
    cdef PyObject *result
    cdef size_t count = len(arguments)
    cdef tuple names = tuple(keywords) if keywords else None
    cdef tuple values = arguments + tuple(keywords.values()) if keywords else arguments
    items = <PyObject **>malloc((len(values) + 1) * sizeof(PyObject *))
    if items == NULL:
        PyErr_SetNone(MemoryError)
        return NULL
    for place in range(len(values)):
        items[place] = <PyObject *>values[place]
    result = (<vector_function>real)(<PyObject *>function, items, count, <PyObject *>names if keywords else NULL)
    free(items)
    return result


cdef class Version:
    """What one library has of a target."""

    cdef object intrinsic
    cdef Timed timed
    cdef bint is_awaited   # its wrapper is a coroutine function

    def __init__(self, intrinsic):
        self.intrinsic = intrinsic
        self.timed = Timed(intrinsic)
        self.is_awaited = is_coroutine_function(intrinsic.wrapper)


cdef class Link:
    """The versions of a target in search order, and how the original is called behind a stub."""

    cdef list versions
    cdef PyMethodDef definition
    cdef void *plain    # the body of the stub for a call that no wrapper is for
    cdef bint is_method
    cdef bint is_awaited, is_stepped  # a call of it gives a coroutine; that, or a generator of their kind
    cdef str name       # of the slot, where it is one

    cdef bint passes(self) except -1:
        """Is the first library's version for this call, and has that no wrapper?"""
        cdef Version first = self.versions[0]
        plain = first.intrinsic.wrapper is None and not self.is_stepped
        return recorded_state() == NULL or (plain and level_here() == 0)


cdef class Passage:
    """One call on its way through the versions: the original function, the level, and the exception of the original."""

    cdef Link link
    cdef object real, instance, raised, traceback
    cdef long level

    def __call__(self, *arguments, **keywords):
        """The original."""
        return given(self.call(arguments, keywords))

    cdef PyObject *call(self, tuple arguments, dict keywords) except? NULL:
        cdef PyObject *result
        cdef PyObject *type
        cdef PyObject *value
        cdef PyObject *traceback
        token = enter_level(self.level)
        if isinstance(self.real, Real):
            result = (<Real>self.real).call(arguments, keywords)
        else:
            result = PyObject_Call(self.real, arguments, keywords)
        if result == NULL:
            PyErr_Fetch(&type, &value, &traceback)
            PyErr_NormalizeException(&type, &value, &traceback)
            self.raised = <object>value
            self.traceback = <object>traceback if traceback != NULL else None
            leave_level(token)
            PyErr_Restore(type, value, traceback)
            return NULL
        leave_level(token)
        return result

    cdef object go(self, Py_ssize_t place, tuple arguments, dict keywords):
        """Call the version at that position, or the original if there is none."""
        cdef Version version
        cdef Timed timed
        if place == len(self.link.versions):
            return self(*arguments, **keywords)
        version = self.link.versions[place]
        timed = version.timed
        if version.intrinsic.wrapper is None:
            return timed(self, self.instance, arguments, keywords)
        return timed(Running(self, version, place), self.instance, arguments, keywords)


cdef class Next:
    """What a wrapper is given as `wrapped`: what the next library has, in the end the original; and what came of it."""

    cdef Passage passage
    cdef Py_ssize_t place
    cdef readonly bint called
    cdef public object result, raised

    def __init__(self, Passage passage, Py_ssize_t place):
        self.passage = passage
        self.place = place

    def __call__(self, *arguments, **keywords):
        self.called = True
        self.raised = self.result = None
        try:
            result = self.passage.go(self.place, arguments, keywords)
        except BaseException as raised:
            self.raised = raised
            raise
        self.result = result
        if self.passage.link.is_awaited:
            return awaiting().kept(self, result, self.enter, leave)
        return result

    def enter(self):
        return enter_level(self.passage.level)

    def __getattr__(self, name):
        return getattr(self.passage.real, name)


def leave(token):
    leave_level(token)


cdef class Running:
    """Call a wrapper: its exceptions stay with it, the original's result belongs to the program."""

    cdef Passage passage
    cdef Version version
    cdef Py_ssize_t place

    def __init__(self, Passage passage, Version version, Py_ssize_t place):
        self.passage = passage
        self.version = version
        self.place = place

    def __call__(self, *arguments, **keywords):
        cdef Next following = Next(self.passage, self.place + 1)
        result, failure = None, None
        token = self.enter()
        try:
            result = self.version.intrinsic.wrapper(following, self.passage.instance, arguments, dict(keywords))
        except BaseException as raised:
            failure = raised
        leave_level(token)
        if self.version.is_awaited and failure is None:
            return awaiting().awaited(self, following, result, arguments, keywords, leave)
        if self.settles(following, result, failure):
            return outcome(following, arguments, keywords)
        return result

    def enter(self):
        return enter_level(self.version.intrinsic.order + 1)

    def settles(self, Next following, result, failure):
        """Whether the program must see the original's result. Raises exceptions that are for the program."""
        intrinsic = self.version.intrinsic
        if failure is not None:
            if failure is following.raised or intrinsic.raises or not is_wrappers_own(failure, self.version):
                raise failure
            note_failure(intrinsic, line_of(failure, intrinsic.wrapper), f"its wrapper raised {type(failure).__name__}")
            return True
        if result is not None or intrinsic.overrides:
            return False
        if not following.called:
            note_failure(intrinsic, first_line(intrinsic.wrapper), "its wrapper neither called the function nor returned a value")
        elif following.raised is not None:
            note_failure(intrinsic, first_line(intrinsic.wrapper), "its wrapper caught an exception and returned nothing")
        elif following.result is not None:
            note_failure(intrinsic, first_line(intrinsic.wrapper), "its wrapper returned nothing")
        else:
            return False
        return True


cdef object outcome(Next following, tuple arguments, dict keywords):
    """The original's result: it is called once, whatever happened in the wrapper."""
    if not following.called:
        return following(*arguments, **keywords)
    if following.raised is not None:
        raise following.raised
    return following.result


cdef object awaiting():
    """What awaited wrappers need; sys.modules is afterwards as before."""
    global _awaiting
    if _awaiting is None:
        had = [name for name in ("interpose.timing", "interpose.timing.awaiting") if name in _modules]
        from interpose.timing import awaiting as found
        _awaiting = found
        if "interpose.timing.awaiting" not in had:
            _modules.pop("interpose.timing.awaiting", None)
        if "interpose.timing" not in had:
            _modules.pop("interpose.timing", None)
            vars(_modules["interpose"]).pop("timing", None)
    return _awaiting


cdef object said_of(object function, str name):
    """An attribute, or None; what has code of its own for that may raise anything."""
    try:
        return getattr(function, name, None)
    except Exception:
        return None


cdef bint is_coroutine_function(object function) except -1:
    return has_flag(function, CO_COROUTINE)


cdef bint has_flag(object function, int flag) except -1:
    code = said_of(function, "__code__")
    return code is not None and bool(code.co_flags & flag)
