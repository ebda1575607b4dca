# What is declared: names with patterns, which stand for what a module has, and all of it for commands.

cdef bint declare(Declared intrinsic) except False:
    """Note it under its module."""
    if intrinsic.module in _declared:
        declared_of(intrinsic.module).append(intrinsic)
    else:
        _declared[intrinsic.module] = [intrinsic]
    return True


cdef bint declare_packed(tuple packed) except False:
    """Note what interpose/bundle.py packed (see Packed there). Raises ValueError if it is of another version."""
    global _next_number, _shared
    fields, _next_number, _shared, modules = packed
    if fields != PACKED:
        raise ValueError("the declarations are of another version")
    _declared.update(modules)
    return True


cdef list declared_of(str module):
    """The declarations of a module; unpacks them at the first use."""
    found = _declared[module]
    if type(found) is tuple:
        found = _declared[module] = unpacked(found[0], found[1])
    return found


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
    cdef Declared each
    global _next_number
    patterns = [each for each in declared_of(name) if each.is_pattern]
    if not patterns:
        return True
    known = {(each.module, each.qualified) for module_name in _declared for each in declared_of(module_name)}
    public = {each.name for module_name in _declared for each in declared_of(module_name)}
    names = dict.fromkeys([found for each in patterns for found in names_under(module, each.qualified)])
    sources = [each.source for each in patterns]
    new = [found for found in names if (name, found) not in known and f"{name}.{found}" not in public]
    for each in declarations((<Declared>patterns[0]).source.expand(sources, name, new, _next_number)):
        declared_of(name).append(each)
        _next_number = number_after(each)
    return True


cdef uint32_t number_after(Declared intrinsic) except 0:
    cdef Declared last = intrinsic.others[-1] if intrinsic.others else intrinsic
    cdef list kinds = last.kinds
    return <uint32_t>last.number + max(1, <uint32_t>len(kinds))


def called_by_wrapt(intrinsic, function=None):
    """What wrapt is to call instead of the function."""
    intrinsic = as_declared(intrinsic)
    return Linked(new_link(None, function, intrinsic)) if is_linked(intrinsic) else Timed(intrinsic)


def declared():
    """All declarations, as (module, qualified name, name, kind, library, the library that a wrapper calls, place of the
    declaration); also for packages that are not imported."""
    for package in list(_to_come):
        declare_package(package)
    return [
        (first.module, first.qualified, each.name + each.suffix, "".join(each.kinds[:1]), each.library, each.passes_on, each.place)
        for module in _declared for first in declared_of(module) for each in (first, *first.others)
    ]
