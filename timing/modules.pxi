# Which intrinsics are declared of which module, and what becomes of them when it is imported.

cdef bint is_plain(str text) except -1:
    """Is it of letters, all of ASCII, that stand for themselves in XML?"""
    cdef Py_ssize_t length = 0, place
    cdef const char *letters = PyUnicode_AsUTF8AndSize(text, &length)
    for place in range(length):
        if not 32 <= letters[place] < 127 or letters[place] in b'&<>"':
            return False
    return True


cdef str escape(str text):
    if text.isascii() and is_plain(text):
        return text
    text = "".join([character if character.isprintable() else "?" for character in text])
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


cdef bint is_always_recorded(Declared intrinsic) except? True:
    """Whether its calls are recorded even within transactions that are not sampled. Calls that start processes are."""
    cdef int effect
    try:
        effect = number_of(effect_words, intrinsic.effect)
    except NotInterposed:  # as its entry says
        return False
    return EFFECT_fork <= effect < EFFECT_serve


cdef str digits_of(uint32_t number):
    # Formatting a number in Python runs the handlers of pending signals; this does not.
    cdef char digits[12]
    cdef int first = sizeof(digits)
    while first == sizeof(digits) or number > 0:
        first -= 1
        digits[first] = ord('0') + number % 10
        number //= 10
    return PyUnicode_FromStringAndSize(digits + first, sizeof(digits) - first)


cdef str map_entry(Declared intrinsic, str by, str why):
    cdef list kinds = intrinsic.kinds
    cdef str place = intrinsic.place
    cdef list entry = ['  <intrinsic number="', digits_of(intrinsic.number), '"']
    add_attribute(entry, ' name="', intrinsic.name + intrinsic.suffix)
    entry += [' kind="', escape(kinds[0]) if kinds else "", '"']
    if len(kinds) > 1:
        add_attribute(entry, ' kinds="', " ".join(kinds))
    if intrinsic.bytes in ("row", "rows"):
        entry.append(' moves="rows"')
    add_attribute(entry, ' library="', intrinsic.library)
    entry += [' by="', by, '" installed="', "0" if why else "1", '"']
    add_attribute(entry, ' why="', why)
    add_attribute(entry, ' passes_on="', intrinsic.passes_on)
    add_attribute(entry, ' place="', place)
    if place:
        add_attribute(entry, ' target="', intrinsic.target)
    add_attribute(entry, ' transaction="', intrinsic.transaction)
    add_attribute(entry, ' terminal="', intrinsic.terminal)
    if intrinsic.sampled:
        entry.append(' sampled="1"')
    if is_always_recorded(intrinsic):
        entry.append(' always="1"')
    entry.append("/>\n")
    return "".join(entry)


cdef bint add_attribute(list entry, str begin, str text) except False:
    """Add an attribute to the pieces of an element, unless its text is empty."""
    if text:
        entry += [begin, escape(text), '"']
    return True


cdef str interpose_intrinsic(object module, Declared intrinsic):
    """Interpose it, and give its entry for the map, if that has none yet."""
    cdef Installed installed
    cdef str way = intrinsic.by
    by, why = "", ""
    try:
        if not is_wanted(intrinsic):
            raise NotInterposed(NOT_ASKED_FOR)
        if way == "mark":
            know_marks(intrinsic)
            by = "itself"
        elif way == "event":
            know_events(intrinsic)
            by = "itself"
        elif way == "line":
            know_statements(intrinsic)
            by = "itself"
        elif way == "collector":
            by = "itself"
        elif way == "import":
            know_gil_waits(intrinsic)
            by = "import table"
        elif way == "native":
            know_native(intrinsic)
            by = "import table"
        elif way == "program":
            know_of_programs(intrinsic)
            _mapped[intrinsic.number] = ""
            return ""
        elif _wrappers is None:
            installed = put_known(module, intrinsic)
            _installed.append(installed)
            by = installed.by()
        else:
            _wrappers.wrap(intrinsic)
            by = "wrapt"
    except NotInterposed as reason:
        why = reason.args[0]
    except Exception as error:
        why = type(error).__name__
    if why == ABSENT and intrinsic.place:
        why = UNKNOWN
    known = _mapped.get(intrinsic.number)
    if why == known or (why == ALREADY and known is not None):
        return ""
    _mapped[intrinsic.number] = why
    if why == NOT_ASKED_FOR and intrinsic.is_on_request:
        return ""
    return "".join([map_entry(each, by, why) for each in (intrinsic, *intrinsic.others)])


cdef Installed put_known(object module, Declared intrinsic):
    """Interpose it; a name that the module has not may be one for the catch-all."""
    try:
        return put(module, intrinsic)
    except NotInterposed as reason:
        if reason.args[0] != ABSENT or not intrinsic.place or _catch_all is None:
            raise
    target = _catch_all(intrinsic.library, intrinsic.target)
    if type(target) is not str or not target.startswith(f"{intrinsic.module}:"):
        raise NotInterposed(ABSENT)
    intrinsic.qualified = target.rpartition(":")[2]
    return put(module, intrinsic)


cdef bint is_wanted(Declared intrinsic):
    """Is any of its calls to be timed or counted, or changed, or is what they change to be known, or kept of the
    dialogue?"""
    cdef Declared each
    if intrinsic.library == PROPAGATION:
        return True
    if recorder_state.dialogue and intrinsic.bytes in ("result", "frame") and "screen" in intrinsic.kinds:
        return True
    if intrinsic.effect or intrinsic.passes:
        return True
    for each in (intrinsic, *intrinsic.others):
        for level in each.levels:
            if level != "off":
                return True
    return False


cdef str interpose_all(str name, object module):
    """Interpose the declared intrinsics of a module; returns the entries for the map. A module without any may not be
    filled yet, and is examined again."""
    cdef Declared intrinsic
    expand(name, module)
    intrinsics = [intrinsic for intrinsic in declared_of(name) if not intrinsic.is_pattern]
    entries = "".join([interpose_intrinsic(module, intrinsic) for intrinsic in intrinsics])
    if not intrinsics or not all([_mapped[intrinsic.number] for intrinsic in intrinsics]):
        _seen[name] = ref(module)
    return entries


# Types of objects that stand for a descriptor, with a `fileno` method.
DESCRIPTOR_OWNERS = {"_io": (0, "FileIO"), "_socket": (1, "socket"), "psycopg2._psycopg": (2, "connection")}


cdef bint know_descriptor_owners() except False:
    cdef PyMethodDef *definition
    cdef unsigned place
    for name, (place, type_name) in DESCRIPTOR_OWNERS.items():
        module = _modules.get(name)
        owner = module_names(module).get(type_name) if PyModule_Check(module) else None
        if isinstance(owner, type) and _kept.get(name) is not owner:
            definition = definition_of(type.__getattribute__(owner, "__dict__")["fileno"])
            _kept[name] = owner
            descriptor_owner_add(place, <PyTypeObject *>owner, definition.ml_meth)
    return True


cdef bint know_loops() except False:
    """See on which threads event loops run."""
    module = _modules.get("_asyncio")
    if PyModule_Check(module) and _kept.get("loops") is not module:
        _kept["loops"] = module
        put_hook(module, "_set_running_loop", <void *>see_loop, SIGNATURE_pair)
    return True


cdef bint know_greenlets() except False:
    """Notice which greenlet runs, however it is switched to: by its methods, or by its C functions."""
    module = _modules.get("greenlet._greenlet")
    if not PyModule_Check(module) or _kept.get("greenlet") is module:
        return True
    names = module_names(module)
    if not isinstance(names.get("greenlet"), type) or "_C_API" not in names:
        return True
    _kept["greenlet"] = module
    methods = type.__getattribute__(names["greenlet"], "__dict__")
    put_hook_in(methods, "switch", <void *>see_switch, SIGNATURE_triple)
    put_hook_in(methods, "throw", <void *>see_throw, SIGNATURE_pair)
    greenlets_begin(names["_C_API"])
    return True


# The program's import continues whatever happens here. Only exceptions of the program's own handlers are passed on.
cdef bint interpose_new_modules() except False:
    cdef c_thread *thread
    cdef reading begin
    if len(_modules) == read_first(&_modules_seen):
        return True
    thread = recording()
    if thread == NULL or not installing_begin():
        return True
    begin = own_begin(thread)
    try:
        if recording() == NULL:  # another thread has ended it meanwhile
            return True
        write_last(&_modules_seen, <uint32_t>len(_modules))
        know_descriptor_owners()
        know_greenlets()
        know_loops()
        for package in [name for name in _to_come if name in _modules]:
            declare_package(package)
        new = [name for name in _declared if is_new(name)]
        entries = "".join([interpose_all(name, _modules[name]) for name in new if is_whole(name)])
        if entries:
            encoded = entries.encode("utf-8", "replace") + b"</map>\n"
            recorder_map(encoded, len(encoded))
        look_at_objects()
    except Exception:
        pass
    finally:
        installing_end()
        own_end(thread, begin)
    return True


cdef bint declare_package(str package) except False:
    """Declare the intrinsics of a package. The reading for that is not recorded as the program's."""
    cdef c_thread *thread = recording()
    global _next_number
    if thread == NULL:
        return True
    _to_come.discard(package)
    thread.quiet += 1
    try:
        for intrinsic in declarations(_packages.declare(package, _next_number)):
            declare(intrinsic)
            _next_number = number_after(intrinsic)
    except Exception:
        pass  # nothing of it is recorded
    finally:
        thread.quiet -= 1
    return True


cdef bint is_new(str name):
    """Is there a module of that name, and not the one that was seen last?"""
    module = _modules.get(name)
    if module is None or not PyModule_Check(module):
        return False
    return name not in _seen or _seen[name]() is not module


cdef bint is_whole(str name):
    """Has the module run to its end, and is it none that is loaded when it is used? If not, it is looked for again."""
    module = _modules[name]
    spec = module_names(module).get("__spec__")
    lazy = type(module).__name__ == "_LazyModule"
    if lazy or (type(spec).__name__ == "ModuleSpec" and getattr(spec, "_initializing", False)):
        write_last(&_modules_seen, 0)
        return False
    return True


cdef void put_hook(object module, str name, void *body, c_signature signature):
    put_hook_in(module.__dict__, name, body, signature)


cdef void put_hook_in(object names, str name, void *body, c_signature signature):
    cdef Installed hook
    try:
        hook = put_method(names[name], body, signature)
        slot_is_fit(hook.slot)
        _hooks.append(hook)
    except (KeyError, NotInterposed):
        pass  # what it would have reported is learned later: a thread at its first call, an end by the reader


cdef bint look_at_locks(object modules) except False:
    thread = modules.get("_thread")
    _locks_seen.clear()
    if thread is not None and plain_lock_is_known(thread.allocate_lock()):
        _locks_seen["plain"] = type(thread.allocate_lock())
    if thread is not None and recursive_lock_is_known(thread.RLock()):
        _locks_seen["recursive"] = type(thread.RLock())
    return True


cdef bint rehash(list replaced) except False:
    """A built-in function's hash depends on the address that a stub replaces or gives back. Rebuild, in place, sets and
    dictionaries with such functions, of the definitions `replaced`."""
    if not replaced:
        return True
    cdef set definitions = {<size_t>(<Installed>each).definition for each in replaced} - {0}
    if not definitions:
        return True
    cdef list holders = []
    cdef tuple wanted = (definitions, holders)
    visit_tracked(keep_holder, <void *>wanted)
    for holder in holders:
        entries = list(holder) if type(holder) is set else list(holder.items())
        holder.clear()
        holder.update(entries)
    return True


cdef int keep_holder(PyObject *object, void *wanted) noexcept:
    """Put it into the second of `wanted`, a list, where it holds a function of the first, definitions."""
    if has_other_than_texts(object):
        keep_if_holder(<object>object, <tuple>wanted)
    return True


cdef void keep_if_holder(object holder, tuple wanted) noexcept:
    try:
        if has_function(holder, <set>wanted[0]):
            (<list>wanted[1]).append(holder)
    except Exception:
        pass


cdef bint has_function(object holder, set definitions) except -1:
    if type(next(iter(holder))) is str:
        return False  # names, as nearly everywhere
    for key in holder:
        if type(key) is builtin_function and <size_t>definition_of(key) in definitions:
            return True
    return False
