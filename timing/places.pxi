# Putting a shim in the place of what an intrinsic names, and its undo.

class NotInterposed(Exception):
    """Why an intrinsic could not be interposed, in a few words."""


cdef str ALREADY = "it is interposed already"
cdef str NOT_ASKED_FOR = "not asked for"
cdef str ABSENT = "this Python has no such name"
cdef str UNKNOWN = "its module has no such name"


cdef class Installed:
    """A stub in the place of a function or of a type's slot, and its undo."""

    cdef c_signature signature
    cdef slot *slot
    cdef PyMethodDef *definition
    cdef object type      # a weak reference, like the next: the program may let go of it
    cdef bytes method
    cdef object function

    cdef void *stub(self) noexcept:
        return slot_stub(self.signature, self.slot)

    cdef void put_in_definition(self, PyMethodDef *definition) noexcept:
        self.definition = definition
        self.slot.real = definition.ml_meth
        exchange_in_definition(definition, self.stub())

    cdef bint put_in_type(self, object type, bytes method, void *real) except False:
        self.type = ref(type)
        self.method = method
        self.slot.real = real
        return exchange_in_types(<PyTypeObject *>type, method, real, self.stub())

    cdef bint put_in_function(self, object function) except False:
        self.function = ref(function)
        self.slot.real = function_vectorcall(function)
        function_put(function, self.stub(), True)
        return True

    cdef str by(self):
        """In what way it was interposed."""
        return "method table" if self.definition != NULL else "slot" if self.function is None else "function"

    cdef bint is_dead(self):
        """Whether the function or type that contained it is gone."""
        there = self.type if self.function is None else self.function
        return there is not None and there() is None

    cdef bint restore_function(self):
        function = self.function()
        if function is None or function_vectorcall(function) == self.stub():
            if function is not None:
                function_put(function, self.slot.real, False)
            return True
        return False

    cdef bint restore_type(self) except False:
        owner = self.type()
        if owner is not None:
            exchange_in_types(<PyTypeObject *>owner, self.method, self.stub(), self.slot.real)
        return True

    def restore(self):
        """Put the real function back; False if somebody else has replaced the stub since."""
        if self.function is not None:
            if not self.restore_function():
                return False
        elif self.definition == NULL:
            self.restore_type()
        elif self.definition.ml_meth == self.stub():
            exchange_in_definition(self.definition, self.slot.real)
        else:
            return False
        self.slot.taken = 0
        return True


cdef slot *new_slot(c_signature signature, void *body, void *real) except NULL:
    """A slot for a stub in the place of `real`, which lets all calls pass until it is fit."""
    cdef slot *slot = slot_take(signature, real)
    if slot == NULL:
        free_dead_slots()
        slot = slot_take(signature, real)
    if slot == NULL:
        raise NotInterposed("the pool of stubs for its signature is full")
    slot.watched = WATCHED_unfit
    slot.body = body
    slot.ask = NULL
    slot.link = NULL
    slot.keyword = slot.attributes = slot.route = NULL
    slot.intrinsic = slot.numbers = slot.lowered = slot.through = slot.sampled = 0
    slot.detail = slot.subject = slot.late = slot.moves = slot.choice = slot.effect = slot.lock = slot.passes = slot.waits = slot.traffic = slot.asks = slot.shape = 0
    return slot


cdef bint free_dead_slots() except False:
    """Free slots in the pools whose functions are gone."""
    cdef Installed installed
    for installed in [each for each in _installed if (<Installed>each).is_dead()]:
        installed.restore()
        _installed.remove(installed)
    return True


cdef Installed put_method(object function, void *body, c_signature wanted):
    """A stub for a C function or method; `body` NULL means the shim for its signature."""
    cdef PyMethodDef *definition = definition_of(function)
    cdef Installed installed = Installed()
    if definition == NULL:
        raise NotInterposed("it has no method table")
    if strcmp(definition.ml_name, b"__new__") == 0:
        raise NotInterposed("its method table is that of every type")
    installed.signature = signature_of(definition)
    if installed.signature == SIGNATURE_COUNT or (body != NULL and installed.signature != wanted):
        raise NotInterposed("its signature is unknown")
    if is_stub(definition.ml_meth):
        raise NotInterposed(ALREADY)
    if not is_writable(&definition.ml_meth):
        raise NotInterposed("its method table is read-only")
    body = body if body != NULL else bodies[installed.signature]
    installed.slot = new_slot(installed.signature, body, definition.ml_meth)
    if takes_one_argument(definition):
        installed.slot.shape = SHAPE_ONE
    elif takes_arguments(definition):
        installed.slot.shape = SHAPE_TUPLE
    installed.put_in_definition(definition)
    return installed


cdef Installed put_slot(type owner, bytes method):
    """A stub for a type's slot, in the type and in the subclasses that copied it."""
    cdef c_signature signature = SIGNATURE_COUNT
    cdef void **place = type_slot(<PyTypeObject *>owner, method, &signature)
    cdef Installed installed = Installed()
    if place == NULL or place[0] == NULL:
        raise NotInterposed("it has no such slot")
    if is_stub(place[0]):
        raise NotInterposed(ALREADY)
    installed.signature = signature
    installed.slot = new_slot(signature, bodies[signature], place[0])
    installed.put_in_type(owner, method, place[0])
    return installed


cdef Installed put_function(object module, object owner, object function, bint standard):
    """A stub for the vectorcall of a Python function, the module's own; of one of the standard library, if so said."""
    cdef Installed installed = Installed()
    if standard and is_own(function_file(function)):
        raise NotInterposed("a module of the program's own has that name")
    if is_stub(function_vectorcall(function)):
        raise NotInterposed(ALREADY)
    names = module_names(module)
    if function_globals(function) != <PyObject *>names:
        raise NotInterposed("somebody else's function is in its place")
    installed.signature = SIGNATURE_vector
    installed.slot = new_slot(SIGNATURE_vector, body_of_function(function), function_vectorcall(function))
    if owner is not module:
        installed.slot.shape = SHAPE_METHOD
    installed.put_in_function(function)
    return installed


cdef void *body_of_function(object function) except NULL:
    """The shim for a Python function: of one that is awaited, one that looks at what the call makes."""
    if not has_flag(function, CO_COROUTINE | CO_ASYNC_GENERATOR):
        return bodies[SIGNATURE_vector]
    know_awaits()
    return <void *>time_awaited


cdef dict module_names(object module):
    """A module's dictionary; a module that is loaded when it is used is not used by this."""
    return <dict>PyModule_GetDict_borrowed(module)


cdef object find(object module, str qualified):
    """The entries in the dictionaries under a qualified name, with their owner and own name; no attribute access runs.
    A type that its module does not export is found among all types by its full name. For a class, what initialises its
    instances."""
    cdef object owner = None, found = module
    for name in qualified.split("."):
        owner = found
        names = module_names(module) if owner is module else type.__getattribute__(owner, "__dict__")
        found = names[name] if name in names else None
        if owner is module and "." in qualified and not isinstance(found, type):
            found = hidden_type(f"{module.__name__}.{name}".encode())
        if found is None and isinstance(owner, type):
            found = inherited(owner, name)
        if found is None:
            raise NotInterposed(ABSENT)
    return initialiser(found) if isinstance(found, type) else (owner, found, name)


cdef object inherited(type owner, str name):
    """What a class has from those above it, where that is Python's; else it is the others'."""
    for each in type.mro(owner)[1:]:
        names = type.__getattribute__(each, "__dict__")
        if name in names:
            return names[name] if is_python_function(names[name]) else None
    return None


cdef tuple initialiser(type made):
    """The function that initialises a class's instances, with its owner."""
    for name in ("__init__", "__new__"):
        for each in type.mro(made):
            names = type.__getattribute__(each, "__dict__")
            if name in names and each is not object:
                return (each if type(names[name]).__name__ == "wrapper_descriptor" else made), names[name], name
    raise NotInterposed("its instances are initialised by nothing of its own")


cdef object hidden_type(bytes name):
    """The type of that full name, or None."""
    for each in type.__subclasses__(object):
        if strcmp((<PyTypeObject *>each).tp_name, name) == 0:
            return each
    return None


cdef uint8_t number_of(const char *const *words, str word) except 255:
    """The place of a word in one of the lists of words."""
    cdef uint8_t number = 0
    cdef bytes encoded = word.encode()
    while words[number] != NULL:
        if strcmp(words[number], encoded) == 0:
            return number
        number += 1
    raise NotInterposed(f"{word!r} means nothing here")


cdef dict _kept_for_ever = {}


cdef PyObject *kept_for_ever(object what) except? NULL:
    """One object for all equal ones; NULL for an empty one. A call may still use it after the end."""
    if not what:
        return NULL
    if type(what) is str:
        what = intern_text(what)
    else:
        what = tuple([tuple([intern_text(name) for name in way]) for way in what])
    kept = _kept_for_ever.setdefault(what, what)
    return <PyObject *>kept


cdef str RESULT = "result"
cdef tuple OF_CALLS = ("served", "holder", "tls")  # details that a call alone has


cdef uint8_t subject_number(object intrinsic) except? 0:
    """Which argument the detail is taken from; the object itself, or the result."""
    argument = intrinsic.argument
    if argument is None:
        return SUBJECT_OWNER
    if argument == RESULT and intrinsic.detail not in OF_CALLS:
        return SUBJECT_RESULT
    if type(argument) is not int or not 0 <= argument < SUBJECT_RESULT:
        raise NotInterposed(f"{argument!r} is no argument that {intrinsic.detail or 'nothing'} could be of")
    return argument


cdef bint fit(slot *slot, object intrinsic) except False:
    """Tell a slot what its intrinsic is like."""
    cdef int kind
    if not intrinsic.kinds:
        raise NotInterposed("it is of no kind")
    slot.detail = number_of(detail_words, intrinsic.detail)
    slot.keyword = kept_for_ever(intrinsic.keyword)
    slot.attributes = kept_for_ever(tuple([tuple(each.split(".")) for each in intrinsic.attribute.split()]))
    slot.route = kept_for_ever(tuple([tuple(each.split(".")) for each in intrinsic.route.split()]))
    slot.subject = subject_number(intrinsic)
    slot.late = is_detail_late(slot)
    slot.moves = number_of(moves_words, intrinsic.bytes)
    slot.choice = number_of(choice_words, intrinsic.choice)
    slot.effect = number_of(effect_words, intrinsic.effect)
    slot.passes = number_of(passes_words, intrinsic.passes)
    slot.waits = WAITS_wall if intrinsic.waits else WAITS_not
    if intrinsic.bytes in ("row", "rows") and recorder_state.rows != ROWS_each:
        slot.waits = WAITS_rows
    for kind in range(KIND_COUNT):
        slot.kinds[kind] = 0
    own_kinds = len(intrinsic.kinds) - intrinsic.sampled
    for offset, word in enumerate(intrinsic.kinds):
        kind = number_of(kind_words, word)
        if offset < own_kinds:
            slot.kinds[kind] = offset
            if intrinsic.sampled:
                chosen_know(intrinsic.number + offset, own_kinds - offset)
        number_is_of(intrinsic.number + offset, kind)
        know_for_filter(intrinsic, offset)
        if intrinsic.transaction == "is":
            transaction_add(intrinsic.number + offset)
        note_boundary(intrinsic.number + offset, intrinsic, word == "screen")
    slot.intrinsic = intrinsic.number
    slot.numbers = len(intrinsic.kinds)
    slot.sampled = intrinsic.sampled and chosen_state.one_in > 0
    slot.lowered = 0
    for offset, word in enumerate(intrinsic.levels):
        slot.levels[offset] = number_of(level_words, word)
        slot.lowered |= slot.levels[offset] != LEVEL_time
    slot.traffic = is_traffic(slot)
    slot.asks = intrinsic.terminal != ""
    return True


cdef bint is_plain_body(c_signature signature, slot *slot) noexcept:
    """Does it nothing but time its calls?"""
    return not slot.passes and (slot.body == bodies[signature] or (takers[signature] != NULL and slot.body == takers[signature]))


cdef bint let_pass(Installed installed, object owner, object intrinsic) except False:
    """Let free locks pass, if the slot's intrinsic takes a lock with a visible state."""
    cdef PyMethodDef *definition
    cdef slot *slot = installed.slot
    slot.lock = number_of(lock_words, intrinsic.lock)
    seen = owner is _locks_seen.get(intrinsic.lock)
    if slot.lock == LOCK_semaphore and owner.__name__ == "SemLock":
        definition = definition_of(type.__getattribute__(owner, "__dict__").get("_is_zero"))
        seen = definition != NULL and signature_of(definition) == SIGNATURE_pair
        slot.ask = definition.ml_meth if seen else NULL
    if slot.lock and seen and takers[installed.signature] != NULL:
        slot.body = takers[installed.signature]
    return True


cdef Installed put(object module, object intrinsic):
    """Interpose it in the way that fits the object, or as its declaration requests."""
    cdef Installed installed
    owner, found, name = find(module, intrinsic.qualified)
    linked = is_linked(intrinsic)
    if linked and is_linked_by_wrapt(owner, found, name):
        return put_linked_wrapper(module, owner, name, found, intrinsic)
    if not linked and is_for_wrapper(module, found, intrinsic.by):
        return put_wrapper(module, owner, name, found, intrinsic)
    if UNSUPPORTED != NULL and is_python_function(found):
        raise NotInterposed(UNSUPPORTED.decode())
    if IS_FREE_THREADED and is_python_function(found) and has_flag(found, CO_COROUTINE | CO_ASYNC_GENERATOR):
        raise NotInterposed(NO_AWAITS)
    if name == "__init__" and is_python_function(found) and is_gone_round(found):
        raise NotInterposed("from CPython 3.14 on not every call of such an __init__ could be seen")
    if linked:
        installed = put_linked(module, owner, found, name)
    elif isinstance(owner, type) and type(found).__name__ == "wrapper_descriptor":
        installed = put_slot(owner, name.encode())
    elif is_python_function(found):
        installed = put_function(module, owner, found, intrinsic.library == "system")
    else:
        installed = put_method(found, NULL, SIGNATURE_COUNT)
    try:
        fit(installed.slot, intrinsic)
        if intrinsic.waits and installed.function is not None:
            installed.slot.waits = WAITS_off_cpu
        let_pass(installed, owner, intrinsic)
        if installed.slot.passes and passers[installed.signature] != NULL:
            installed.slot.body = passers[installed.signature]
        if linked:
            link_up(installed, owner, found, intrinsic)
        else:
            installed.slot.through = is_plain_body(installed.signature, installed.slot)
        slot_is_fit(installed.slot)
        if not linked:
            slot_watch(installed.slot)
    except BaseException:
        installed.restore()
        raise
    return installed


cdef class Timed:
    """What wrapt calls instead of an intrinsic: it times the call, without a frame."""

    cdef slot slot

    def __cinit__(self):
        self.slot.keyword = self.slot.attributes = self.slot.route = NULL

    def __init__(self, intrinsic):
        fit(&self.slot, intrinsic)
        _timed_by_wrapt.append(self)

    def __call__(self, wrapped, instance, tuple arguments, dict keywords):
        cdef c_passed passed
        cdef PyObject *result
        if not self.slot.passes:
            return given(self.time(wrapped, instance, <PyObject *>arguments, keywords))
        result = self.time(wrapped, instance, pass_tuple(&passed, &self.slot, <PyObject *>arguments), keywords)
        pass_end(&passed, &self.slot)
        return given(result)

    cdef PyObject *time(self, wrapped, instance, PyObject *arguments, dict keywords) noexcept:
        cdef c_call call
        cdef PyObject *result
        if not begin_tuple(&call, &self.slot, <PyObject *>instance, arguments, <PyObject *>keywords):
            return PyObject_Call(wrapped, <object>arguments, keywords)
        result = PyObject_Call(wrapped, <object>arguments, keywords)
        shim_end_or_await(&call, result)
        return result
