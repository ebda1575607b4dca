# Stubs and wrappers whose calls go through the libraries, put in their places.

cdef bint is_linked(Declared intrinsic) except -1:
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
    forget_specialised(owner)
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
    cdef Declared first, each
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
