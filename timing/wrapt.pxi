# Wrappers of wrapt's in the place of Python functions of packages, and their undo.

cdef object _wrapt = None  # its type of wrappers
cdef bint _wrapt_is_c = False
cdef bint _awaits_known = False


# An ordinary import of wrapt brings half the standard library, including asyncio and ssl, which the program may not
# want. Only one extension module is needed; a later import of wrapt finds it.
cdef object import_wrapt():
    """wrapt's own type of wrappers."""
    global _wrapt, _wrapt_is_c
    if _wrapt is None:
        try:
            load_extension_of_wrapt()
        except Exception:
            pass  # it was installed without, or is another wrapt than those known
        loaded = _modules.get("wrapt._wrappers")
        _wrapt = getattr(loaded, "FunctionWrapper", None)
        _wrapt_is_c = _wrapt is not None
        if _wrapt_is_c:
            wrapper_begin(_wrapt)
        else:
            from wrapt import FunctionWrapper
            _wrapt = FunctionWrapper
        know_awaits()
    return _wrapt


cdef bint know_awaits() except False:
    """Look at what Python awaits, by some of its own kind; Cython's are others."""
    global _awaits_known
    if _awaits_known or UNSUPPORTED != NULL or IS_FREE_THREADED:
        return True
    _awaits_known = True
    names = {"__builtins__": {}}  # as in code of namedtuple, which is never taken for the program's
    exec("async def items():\n    yield\nasync def nothing():\n    pass", names)
    awaits_begin(names["nothing"](), names["items"]())
    return True


cdef bint load_extension_of_wrapt() except False:
    if "wrapt._wrappers" in _modules or "wrapt" in _modules:
        return True
    importing = _modules["_frozen_importlib"]
    finder = _modules["_frozen_importlib_external"].PathFinder
    directories = finder.find_spec("wrapt").submodule_search_locations
    errors = finder.find_spec("wrapt.exceptions", directories)
    if errors is not None:
        importing._load(errors)
    module = importing.module_from_spec(finder.find_spec("wrapt._wrappers", directories))
    # It asks the package above for its errors. Nobody else sees this one, because no Python code runs meanwhile.
    _modules["wrapt"] = module
    try:
        _modules["_imp"].exec_dynamic(module)
    finally:
        del _modules["wrapt"]
    _modules["wrapt._wrappers"] = module
    return True


cdef object wrapt_type():
    """The same, without recording its imports as the program's."""
    cdef c_thread *thread = recording()
    if _wrapt is None and thread != NULL:
        thread.quiet += 1
        try:
            return import_wrapt()
        finally:
            thread.quiet -= 1
    return import_wrapt()


cdef bint is_for_wrapper(object module, object found, str by) except -1:
    """Whether wrapt is the way for this object. Not for C functions, nor for the standard library."""
    if by:
        return by == "wrapt"
    if definition_of(found) != NULL or type(found).__name__ == "wrapper_descriptor":
        return False
    return module.__name__.partition(".")[0] not in stdlib_module_names


cdef class Wrapped(Installed):
    """A wrapper in the place of a name in a module or a class, and its undo."""

    cdef object owner  # a weak reference
    cdef str name
    cdef bint is_inherited
    cdef size_t put    # the address of the replacement, because the program may release it

    cdef const char *by(self) noexcept:
        return b"wrapt"

    cdef bint is_dead(self):
        return self.owner() is None

    cdef bint put_in(self, object owner, str name, object wrapper, object outer) except False:
        """Put `outer`, which is the wrapper or has it, in the place of the name."""
        names = names_of(owner)
        self.owner = ref(owner)
        self.name = name
        self.is_inherited = name not in names
        self.put = <size_t><void *>outer
        if not self.is_inherited:
            wrapper._self_replaced = names[name]
        set_name(owner, name, outer)
        return True

    def restore(self):
        """Put the original back; False if somebody else has replaced the wrapper since."""
        owner = self.owner()
        found = None if owner is None else names_of(owner).get(self.name)
        if found is None:
            return True  # it is gone, or no longer has that name
        if <size_t><void *>found != self.put:
            return False
        if self.is_inherited:
            type.__delattr__(owner, self.name)
        else:
            wrapper = found.__func__ if type(found) in (staticmethod, classmethod) else found
            set_name(owner, self.name, wrapper._self_replaced)
        return True


cdef object names_of(object owner):
    return type.__getattribute__(owner, "__dict__") if isinstance(owner, type) else module_names(owner)


cdef bint set_name(object owner, str name, object what) except False:
    """No code of the owner's is run."""
    if not isinstance(owner, type):
        module_names(owner)[name] = what
        return True
    try:
        type.__setattr__(owner, name, what)
    except TypeError:
        raise NotInterposed("its type cannot be changed") from None
    return True


cdef object wrapper_for(object function, Timed timed):
    """A wrapper of a Python function; wrapt's own wrapper for other callables, which may bind in their own way, and if
    wrapt is not compiled."""
    wrapt = wrapt_type()
    if not is_python_function(function) or not _wrapt_is_c:
        return wrapt(function, timed)
    made = wrapper_made_type()(function, timed)
    wrapper_fit(made, <vector_function_of_wrapper>time_wrapped, &timed.slot)
    return made


cdef Installed put_wrapper(object module, object owner, str name, object found, object intrinsic):
    """A wrapper in the place of a function, a method, a class method, a static method, or what others have put there."""
    cdef Wrapped wrapped = Wrapped()
    cdef Timed timed = Timed(intrinsic)
    bound = type(found) if type(found) in (staticmethod, classmethod) else None
    function = found if bound is None else found.__func__
    if is_wrapper(function):
        raise NotInterposed(ALREADY)
    if not callable(function):
        raise NotInterposed("it cannot be called")
    if isinstance(owner, type) and (bound is not staticmethod or name == "__new__"):
        timed.slot.shape = SHAPE_METHOD
    made = wrapper_for(function, timed)
    Py_INCREF(timed)  # a call may be in it at the end
    wrapped.put_in(owner, name, made, made if bound is None else bound(made))
    return wrapped


def bound_before():
    """References that the program bound before they were wrapped, and that still call the original: (module that has
    it, its name there, its name where it comes from)."""
    cdef Wrapped wrapped
    cdef dict found = {}
    for each in list(_installed):
        if type(each) is Wrapped:
            wrapped = each
            owner = wrapped.owner()
            if owner is not None and not isinstance(owner, type):
                wrapper = names_of(owner).get(wrapped.name)
                replaced = getattr(wrapper, "_self_replaced", None)
                if replaced is not None:
                    found[<size_t><void *>replaced] = f"{owner.__name__}.{wrapped.name}"
    if not found:
        return []
    return [
        (name, key, found[<size_t><void *>value])
        for name, module in list(_modules.items()) if PyModule_Check(module)
        for key, value in list(module_names(module).items()) if <size_t><void *>value in found
    ]
