# Putting a shim in the place of what an intrinsic names, and its undo.

class NotInterposed(Exception):
    """Why an intrinsic could not be interposed, in a few words."""


cdef str ALREADY = "it is interposed already"
cdef str NOT_ASKED_FOR = "not asked for"
cdef str PROPAGATION = "propagation"  # of its wrappers no call is recorded (interpose.library.PROPAGATION)
cdef str ABSENT = "this Python has no such name"
cdef str UNKNOWN = "its module has no such name"


@no_gc  # weak references are in no cycle
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

    cdef const char *by(self) noexcept:
        """In what way it was interposed."""
        return b"method table" if self.definition != NULL else b"slot" if self.function is None else b"function"

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
        slot_give_back(self.slot)
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
    installed.slot = new_function_slot(function, body_of_function(function))
    if owner is not module:
        installed.slot.shape = SHAPE_METHOD
    installed.put_in_function(function)
    forget_specialised(owner)
    return installed


cdef bint forget_specialised(object owner) except False:
    """Have the interpreter look again for what it found in a class when code became hot: its `__init__` is entered there."""
    if isinstance(owner, type):
        PyType_Modified(<PyTypeObject *>owner)
    return True


cdef void *body_of_function(object function) except NULL:
    """The shim for a Python function: of one that is awaited, one that looks at what the call makes."""
    if not has_flag(function, CO_COROUTINE | CO_ASYNC_GENERATOR):
        return bodies[SIGNATURE_vector]
    know_awaits()
    return <void *>time_awaited


cdef Installed put(object module, Declared intrinsic):
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
        raise NotInterposed(NO_SUCH_INIT)
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
        if installed.slot.effect == EFFECT_continue and runners[installed.signature] != NULL:
            installed.slot.body = runners[installed.signature]
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
        self.slot.keyword = self.slot.attributes = self.slot.headers = self.slot.route = NULL

    def __init__(self, intrinsic):
        fit(&self.slot, as_declared(intrinsic))
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
