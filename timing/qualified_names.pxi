# What stands under the qualified name of an intrinsic.

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
