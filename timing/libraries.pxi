# Libraries before ours: wrappers that a library gives, which of them a call reaches, and what comes of it.
#
# A call is resolved from a level on: 0, the first library, for the program's own calls; n + 1 inside a wrapper of the
# library at position n. The level is part of the context (contextvars), so it follows tasks, and threads that are
# started inside a wrapper. Calls from a library's own code are resolved after that library, wherever the code runs.

cdef object _level = PyContextVar_New("interpose", NULL)
cdef list _links = []      # for ever: a call may be in one at the end
cdef list _binders = []    # the names of modules that wrappers are of, and the level of what they call
cdef set _noted = set()
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
            note_failure(intrinsic, first_line(intrinsic.wrapper), "its wrapper did not call on, and gave nothing")
        elif following.raised is not None:
            note_failure(intrinsic, first_line(intrinsic.wrapper), "its wrapper kept an error, and gave nothing")
        elif following.result is not None:
            note_failure(intrinsic, first_line(intrinsic.wrapper), "its wrapper gave nothing")
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


cdef bint is_wrappers_own(object raised, Version version) except -1:
    """Not so what comes from outside: an interrupt, a task that is cancelled or closed while the wrapper awaits, an exit
    that a handler of the program's asks for."""
    wrapper = version.intrinsic.wrapper
    if isinstance(raised, Exception):
        return True
    if isinstance(raised, KeyboardInterrupt):
        return False
    if version.is_awaited and not isinstance(raised, SystemExit):
        return False
    traceback = raised.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and traceback.tb_frame.f_globals is said_of(wrapper, "__globals__")


cdef str first_line(object wrapper):
    code = said_of(wrapper, "__code__")
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


cdef str line_of(object raised, object wrapper):
    """The last line of the wrapper's own file that an error came through."""
    code = said_of(wrapper, "__code__")
    found, traceback = first_line(wrapper), raised.__traceback__
    while traceback is not None and code is not None:
        if traceback.tb_frame.f_code.co_filename == code.co_filename:
            found = f"{code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


cdef bint note_failure(object intrinsic, str place, str why) except False:
    """Note it in the map, once, and nowhere else."""
    cdef c_thread *thread
    cdef reading begin
    what = (intrinsic.library, intrinsic.target, why)
    if what in _noted:
        return True
    _noted.add(what)
    thread = recording()
    if thread == NULL:
        return True
    begin = own_begin(thread)
    try:
        fields = {"library": intrinsic.library, "target": intrinsic.target, "place": place, "why": why}
        append_to_map(element("failure", fields))
    except Exception:
        pass
    finally:
        own_end(thread, begin)
    return True


cdef str element(str tag, dict attributes):
    return "".join([f"  <{tag}", *[f' {name}="{escape(value)}"' for name, value in attributes.items()], "/>\n"])


cdef bint append_to_map(str entries) except False:
    encoded = entries.encode("utf-8", "replace") + b"</map>\n"
    recorder_map(encoded, len(encoded))
    return True


# --- the stubs' bodies

cdef PyObject *run_link(Link link, object real, object instance, tuple arguments, dict keywords) noexcept:
    """A call through the versions, from the current level on; tracebacks have no line of interpose."""
    cdef Passage passage = Passage()
    passage.link = link
    passage.real = real
    passage.instance = instance
    try:
        passage.level = level_here()
        result = passage.go(first_place(link, passage.level), arguments, keywords)
        Py_INCREF(result)
        return <PyObject *>result
    except BaseException as raised:
        if raised is passage.raised:
            raised.__traceback__ = passage.traceback
        PyErr_SetObject(type(raised), raised)
        return NULL


cdef Py_ssize_t first_place(Link link, long level) except -1:
    for place, version in enumerate(link.versions):
        if (<Version>version).intrinsic.order >= level:
            return place
    return len(link.versions)


cdef PyObject *run_function(slot *self, PyObject *owner, PyTypeObject *made, tuple arguments, dict keywords) noexcept:
    """The same for a C function or method."""
    cdef Link link = <Link>self.link
    try:
        real = PyCMethod_New(&link.definition, owner, NULL, made)
    except BaseException as raised:
        PyErr_SetObject(type(raised), raised)
        return NULL
    return run_link(link, real, <object>owner if link.is_method else None, arguments, keywords)


cdef PyObject *run_slot(slot *self, c_signature signature, PyObject *owner, tuple arguments, dict keywords) noexcept:
    cdef Real real = Real()
    real.signature = signature
    real.real = self.real
    real.owner = <object>owner
    real.name = (<Link>self.link).name
    return run_link(<Link>self.link, real, <object>owner, arguments, keywords)


cdef tuple as_tuple(PyObject *const *items, Py_ssize_t count):
    return tuple([<object>items[place] for place in range(count)])


cdef dict as_dict(PyObject *const *items, PyObject *names):
    if names == NULL:
        return {}
    return {name: <object>items[place] for place, name in enumerate(<tuple>names)}


cdef dict keywords_of(PyObject *keywords):
    return <dict>keywords if keywords != NULL else {}


cdef PyObject *link_pair(slot *self, PyObject *owner, PyObject *argument) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<pair_body>link.plain)(self, owner, argument)
    if self.shape == SHAPE_TUPLE:
        return run_function(self, owner, NULL, <tuple>argument, {})
    return run_function(self, owner, NULL, (<object>argument,) if self.shape == SHAPE_ONE else (), {})


cdef PyObject *link_triple(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<triple_body>link.plain)(self, owner, arguments, keywords)
    if link.definition.ml_name == NULL:
        return run_slot(self, SIGNATURE_triple, owner, <tuple>arguments, keywords_of(keywords))
    return run_function(self, owner, NULL, <tuple>arguments, keywords_of(keywords))


cdef PyObject *link_fast(slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<fast_body>link.plain)(self, owner, arguments, count)
    return run_function(self, owner, NULL, as_tuple(arguments, count), {})


cdef PyObject *link_fast_keywords(
    slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<fast_keywords_body>link.plain)(self, owner, arguments, count, names)
    return run_function(self, owner, NULL, as_tuple(arguments, count), as_dict(arguments + count, names))


cdef PyObject *link_method(
    slot *self, PyObject *owner, PyTypeObject *made, PyObject *const *arguments, size_t count, PyObject *names
) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<method_body>link.plain)(self, owner, made, arguments, count, names)
    return run_function(self, owner, made, as_tuple(arguments, count), as_dict(arguments + count, names))


cdef PyObject *link_vector(
    slot *self, PyObject *function, PyObject *const *arguments, size_t flags, PyObject *names
) noexcept:
    cdef Link link = <Link>self.link
    cdef Py_ssize_t count = PyVectorcall_NARGS(flags)
    cdef Real real
    cdef bint method = self.shape == SHAPE_METHOD and count > 0
    if link.passes():
        return (<vector_body>link.plain)(self, function, arguments, flags, names)
    real = Real()
    real.signature = SIGNATURE_vector
    real.real = self.real
    real.function = <object>function
    keywords = as_dict(arguments + count, names)
    if not method:
        return run_link(link, real, None, as_tuple(arguments, count), keywords)
    real.owner = <object>arguments[0]
    real.is_bound = True
    return run_link(link, real, real.owner, as_tuple(arguments + 1, count - 1), keywords)


cdef PyObject *link_unary(slot *self, PyObject *owner) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<unary_body>link.plain)(self, owner)
    return run_slot(self, SIGNATURE_unary, owner, (), {})


cdef int link_initialise(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef Link link = <Link>self.link
    cdef PyObject *result
    if link.passes():
        return (<initialise_body>link.plain)(self, owner, arguments, keywords)
    result = run_slot(self, SIGNATURE_initialise, owner, <tuple>arguments, keywords_of(keywords))
    if result == NULL:
        return -1
    Py_DECREF(<object>result)
    return 0


cdef void *linkers[SIGNATURE_COUNT]
linkers[SIGNATURE_pair] = <void *>link_pair
linkers[SIGNATURE_triple] = <void *>link_triple
linkers[SIGNATURE_fast] = <void *>link_fast
linkers[SIGNATURE_fast_keywords] = <void *>link_fast_keywords
linkers[SIGNATURE_method] = <void *>link_method
linkers[SIGNATURE_vector] = <void *>link_vector
linkers[SIGNATURE_unary] = <void *>link_unary
linkers[SIGNATURE_initialise] = <void *>link_initialise


# --- into their places

cdef bint is_linked(object intrinsic) except -1:
    """Does it matter which library calls?"""
    return intrinsic.wrapper is not None or bool(intrinsic.others)


cdef Link new_link(object owner, object function, object intrinsic):
    cdef Link link = Link()
    cdef Version version
    link.versions = [Version(each) for each in (intrinsic, *intrinsic.others)]
    function = function.__func__ if type(function) in (staticmethod, classmethod) else function
    link.is_method = isinstance(owner, type)
    link.is_awaited = is_coroutine_function(function)
    link.is_stepped = has_flag(function, CO_COROUTINE | CO_ASYNC_GENERATOR)
    if link.is_stepped:
        know_awaits()
    for version in link.versions:
        if version.is_awaited and not link.is_awaited:
            raise NotInterposed("its wrapper is a coroutine function, and it is none")
        if has_flag(version.intrinsic.wrapper, GENERATORS) and not has_flag(function, GENERATORS):
            raise NotInterposed("its wrapper is a generator, and it is none")
    _links.append(link)
    return link


cdef bint link_up(Installed installed, object owner, object function, object intrinsic) except False:
    """Let a stub's calls go through the libraries."""
    cdef Link link
    if linkers[installed.signature] == NULL:
        raise NotInterposed("a wrapper cannot stand there")
    link = new_link(owner, function, intrinsic)
    if installed.definition != NULL:
        link.definition = installed.definition[0]
        link.definition.ml_meth = installed.slot.real
    elif installed.function is None:
        link.name = installed.method.decode()
    link.plain = installed.slot.body
    installed.slot.link = <PyObject *>link
    installed.slot.body = linkers[installed.signature]
    return True


cdef bint is_linked_by_wrapt(object owner, object found, str name) except -1:
    """Has it no place for a stub, or one that more than this name is for?"""
    function = found.__func__ if type(found) in (staticmethod, classmethod) else found
    if is_python_function(function):
        return isinstance(owner, type) and name not in names_of(owner)
    return definition_of(function) == NULL and type(found).__name__ != "wrapper_descriptor"


cdef Installed put_linked(object module, object owner, object found, str name):
    """A stub for calls that go through the libraries."""
    cdef Installed installed
    function = found.__func__ if type(found) in (staticmethod, classmethod) else found
    if isinstance(owner, type) and type(found).__name__ == "wrapper_descriptor":
        return put_slot(owner, name.encode())
    if not is_python_function(function):
        return put_method(function, NULL, SIGNATURE_COUNT)
    installed = put_in_function(function)
    if owner is not module and (type(found) is not staticmethod or name == "__new__"):
        installed.slot.shape = SHAPE_METHOD
    return installed


cdef Installed put_in_function(object function):
    """A stub for a Python function, wherever it is from: it was asked for by its name."""
    cdef Installed installed = Installed()
    if is_stub(function_vectorcall(function)):
        raise NotInterposed(ALREADY)
    installed.signature = SIGNATURE_vector
    installed.slot = new_slot(SIGNATURE_vector, body_of_function(function), function_vectorcall(function))
    installed.put_in_function(function)
    return installed


cdef class Linked:
    """What wrapt calls: the versions of a target."""

    cdef Link link

    def __init__(self, Link link):
        self.link = link

    def __call__(self, wrapped, instance, tuple arguments, dict keywords):
        return given(run_link(self.link, wrapped, instance, arguments, keywords))


cdef Installed put_linked_wrapper(object module, object owner, str name, object found, object intrinsic):
    """A wrapper of wrapt's that sends calls through the libraries."""
    cdef Wrapped wrapped = Wrapped()
    bound = type(found) if type(found) in (staticmethod, classmethod) else None
    function = found if bound is None else found.__func__
    if not callable(function):
        raise NotInterposed("it cannot be called")
    made = wrapt_type()(function, Linked(new_link(owner, function, intrinsic)))
    wrapped.put_in(owner, name, made, made if bound is None else bound(made))
    return wrapped


cdef bint libraries_begin(object intrinsics, object modules, object catch_all) except False:
    """Note whose code belongs to which library, and let threads that are started inside a wrapper continue there."""
    global _catch_all
    _binders.clear()
    _noted.clear()
    _catch_all = catch_all
    wrapping = [each for first in intrinsics for each in (first, *first.others) if each.wrapper is not None]
    for each in wrapping:
        names = said_of(each.wrapper, "__globals__")
        own = names is not None and each.place.rpartition(":")[0] == names.get("__file__")
        if own and not any([known is names for known, _ in _binders]):
            _binders.append((names, each.order + 1))
    if wrapping and "_thread" in modules:
        put_hook(modules["_thread"], "start_new_thread", <void *>carry_pair, SIGNATURE_pair)
        put_hook(modules["_thread"], "start_new", <void *>carry_pair, SIGNATURE_pair)
        put_hook(modules["_thread"], "start_joinable_thread", <void *>carry_triple, SIGNATURE_triple)
    return True


cdef class Carried:
    """What a thread runs that was started inside a wrapper: calls are resolved from the same level on."""

    cdef object function
    cdef long level

    def __call__(self, *arguments, **keywords):
        enter_level(self.level)
        self.enter_context()
        return self.function(*arguments, **keywords)

    def enter(self):
        enter_level(self.level)

    cdef bint enter_context(self) except False:
        """From 3.14 on threading runs what a thread is for in a context of its own, new and empty where none was given."""
        if PY_VERSION_HEX < 0x030E0000 or not PyMethod_Check(self.function):
            return True
        names = said_of(self.function.__self__, "__dict__")
        context = names.get("_context") if type(names) is dict else None
        if PyContext_CheckExact(context) and len(context) == 0:
            context.run(self.enter)
        return True


cdef tuple carried(PyObject *arguments):
    cdef Carried inner
    cdef tuple given = <tuple>arguments
    cdef long level = level_here() if recorded_state() != NULL else 0
    if level == 0 or not given or not callable(given[0]):
        return given
    inner = Carried()
    inner.function, inner.level = given[0], level
    return (inner, *given[1:])


cdef PyObject *carry_pair(slot *self, PyObject *module, PyObject *arguments) noexcept:
    given = carried(arguments)
    return (<pair_function>self.real)(module, <PyObject *>given)


cdef PyObject *carry_triple(slot *self, PyObject *module, PyObject *arguments, PyObject *keywords) noexcept:
    given = carried(arguments)
    return (<triple_function>self.real)(module, <PyObject *>given, keywords)


# --- patterns

cdef list names_under(object module, str qualified):
    """What there is in the module that a pattern may stand for: functions and methods that are its own."""
    found = [("", module)]
    *classes, _ = qualified.split(".")
    for word in classes:
        found = [
            (f"{before}{name}.", thing)
            for before, owner in found
            for name, thing in names_in(module, owner)
            if isinstance(thing, type) and (word == name or WILD in word)
        ]
    return [
        before + name for before, owner in found for name, thing in names_in(module, owner) if is_its_own(module, owner, thing)
    ]


cdef list names_in(object module, object owner):
    names = module_names(module) if owner is module else type.__getattribute__(owner, "__dict__")
    return [(name, thing) for name, thing in names.items() if type(name) is str]


cdef bint is_its_own(object module, object owner, object thing) except -1:
    function = thing.__func__ if type(thing) in (staticmethod, classmethod) else thing
    names = module_names(module)
    if is_python_function(function):
        return owner is not module or function_globals(function) == <PyObject *>names
    return definition_of(function) != NULL and (owner is not module or function.__self__ is module)


cdef str WILD = "*"


cdef bint expand(str name, object module) except False:
    """Declare what the patterns of a module match, now that the module is imported."""
    global _next_number
    patterns = [each for each in _declared[name] if WILD in each.qualified]
    if not patterns:
        return True
    known = {(each.module, each.qualified) for declared in _declared.values() for each in declared}
    public = {each.name for declared in _declared.values() for each in declared}
    names = dict.fromkeys([found for each in patterns for found in names_under(module, each.qualified)])
    new = [found for found in names if (name, found) not in known and f"{name}.{found}" not in public]
    for each in patterns[0].expand(patterns, name, new, _next_number):
        _declared[name].append(each)
        _next_number = number_after(each)
    return True


cdef object number_after(object intrinsic):
    last = intrinsic.others[-1] if intrinsic.others else intrinsic
    return last.number + max(1, len(last.kinds))


def called_by_wrapt(intrinsic, function=None):
    """What wrapt is to call instead of the function."""
    return Linked(new_link(None, function, intrinsic)) if is_linked(intrinsic) else Timed(intrinsic)


# --- what commands ask

def declared():
    """All declarations, as (module, qualified name, name, kind, library, the library that a wrapper calls, place of the
    declaration); also for packages that are not imported."""
    for package in list(_to_come):
        declare_package(package)
    return [
        (first.module, first.qualified, each.name + each.suffix, "".join(each.kinds[:1]), each.library, each.passes_on, each.place)
        for intrinsics in _declared.values() for first in intrinsics for each in (first, *first.others)
    ]


def note_libraries(entries):
    """Note in the map which libraries there are, and which were not used: pairs of an element's name and its fields."""
    if entries:
        append_to_map("".join([element(tag, fields) for tag, fields in entries]))
