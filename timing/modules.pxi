# Which intrinsics are declared of which module, and what becomes of them when it is imported.

cdef bint is_always_recorded(Declared intrinsic) except? True:
    """Whether its calls are recorded even within transactions that are not sampled. Calls that start processes are."""
    cdef int effect
    try:
        effect = number_of(effect_words, intrinsic.effect)
    except NotInterposed:  # as its entry says
        return False
    return EFFECT_fork <= effect < EFFECT_serve


cdef bint map_entry(xml_text *entries, Declared intrinsic, const char *by, str why) except False:
    """Put what the map says of an intrinsic."""
    cdef list kinds = intrinsic.kinds
    xml_put_number(entries, b'  <intrinsic number="', intrinsic.number)
    xml_put(entries, b'"')
    add_attribute(entries, b' name="', intrinsic.name + intrinsic.suffix if intrinsic.suffix else intrinsic.name)
    xml_put(entries, b' kind="')
    if kinds:
        add_escaped(entries, kinds[0])
    xml_put(entries, b'"')
    if len(kinds) > 1:
        add_attribute(entries, b' kinds="', " ".join(kinds))
    if intrinsic.bytes in ("row", "rows"):
        xml_put(entries, b' moves="rows"')
    add_attribute(entries, b' library="', intrinsic.library)
    xml_put(entries, b' by="')
    xml_put(entries, by)
    xml_put(entries, b'" installed="0"' if why else b'" installed="1"')
    add_attribute(entries, b' why="', why)
    add_attribute(entries, b' passes_on="', intrinsic.passes_on)
    add_attribute(entries, b' place="', intrinsic.place)
    if intrinsic.place:
        add_attribute(entries, b' target="', intrinsic.target)
    add_attribute(entries, b' transaction="', intrinsic.transaction)
    add_attribute(entries, b' terminal="', intrinsic.terminal)
    if intrinsic.sampled:
        xml_put(entries, b' sampled="1"')
    if is_always_recorded(intrinsic):
        xml_put(entries, b' always="1"')
    xml_put(entries, b"/>\n")
    return True


cdef const char *put_in_place(object module, Declared intrinsic) except NULL:
    """Interpose the intrinsic; returns in which way, for the map. Raises NotInterposed and others."""
    cdef Installed installed
    cdef str way = intrinsic.by
    if not is_wanted(intrinsic):
        raise NotInterposed(NOT_ASKED_FOR)
    if not way:
        pass
    elif way == "mark":
        know_marks(intrinsic)
        return b"itself"
    elif way == "event":
        know_events(intrinsic)
        return b"itself"
    elif way == "line":
        know_statements(intrinsic)
        return b"itself"
    elif way == "collector":
        return b"itself"
    elif way == "import":
        know_gil_waits(intrinsic)
        return b"import table"
    elif way == "loop":
        know_loop_waits(module, intrinsic)
        return b"import table"
    elif way == "native":
        know_native(intrinsic)
        return b"import table"
    elif way == "program":
        know_of_programs(intrinsic)
        return b""
    if _wrappers is not None:
        _wrappers.wrap(intrinsic)
        return b"wrapt"
    installed = put_known(module, intrinsic)
    _installed[installed] = True
    return installed.by()


cdef bint interpose_intrinsic(object module, Declared intrinsic, xml_text *entries) except False:
    """Interpose it, and put its entry for the map, if that has none yet."""
    cdef const char *by = b""
    cdef str why = ""
    try:
        by = put_in_place(module, intrinsic)
    except NotInterposed as reason:
        why = reason.args[0]
    except Exception as error:
        why = type(error).__name__
    if why == ABSENT and intrinsic.place:
        why = UNKNOWN
    known = _mapped.get(intrinsic.number)
    if why == known or (why == ALREADY and known is not None):
        return True
    _mapped[intrinsic.number] = why
    if (why == NOT_ASKED_FOR and intrinsic.is_on_request) or (not why and intrinsic.by == "program"):
        return True
    map_entry(entries, intrinsic, by, why)
    for each in intrinsic.others:
        map_entry(entries, each, by, why)
    return True


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


cdef bint interpose_all(str name, object module, xml_text *entries) except False:
    """Interpose the declared intrinsics of a module, and put the entries for the map. A module that has none of them
    may still be loading, so it is examined again."""
    cdef Declared intrinsic
    cdef bint has_some = False
    expand(name, module)
    wanted = [each for each in declared_of(name) if not (<Declared>each).is_pattern]
    for intrinsic in wanted:
        interpose_intrinsic(module, intrinsic, entries)
        has_some |= _mapped[intrinsic.number] == ""
    if has_some or not wanted:
        _seen[name] = ref(module)
    return True


# Types of objects that stand for a descriptor, with a `fileno` method.
DESCRIPTOR_OWNERS = {"_io": (0, "FileIO"), "_socket": (1, "socket"), "psycopg2._psycopg": (2, "connection")}


cdef bint know_descriptor_owners() except False:
    cdef PyMethodDef *definition
    cdef unsigned place
    for name, (place, type_name) in DESCRIPTOR_OWNERS.items():
        module = _modules.get(name)
        owner = module_names(module).get(type_name) if PyModule_Check(module) else None
        if isinstance(owner, type) and _kept.get(name) is not owner:
            _kept[name] = owner
            definition = definition_of(type.__getattribute__(owner, "__dict__").get("fileno"))
            if definition != NULL:
                descriptor_owner_add(place, <PyTypeObject *>owner, definition.ml_meth)
    return True


cdef bint know_loops() except False:
    """See on which threads event loops run."""
    module = _modules.get("_asyncio")
    if PyModule_Check(module) and _kept.get("loops") is not module:
        _kept["loops"] = module
        put_hook(module, "_set_running_loop", <void *>see_loop, SIGNATURE_pair)
    module = _modules.get("sys")
    if PyModule_Check(module) and _kept.get("hooks of loops") is not module:
        _kept["hooks of loops"] = module
        put_hook(module, "set_asyncgen_hooks", <void *>see_loop_hooks, SIGNATURE_triple)
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
    cdef xml_text entries
    if len(_modules) == read_first(&_modules_seen):
        return True
    thread = recording()
    if thread == NULL or not installing_begin():
        return True
    begin = own_begin(thread)
    memset(&entries, 0, sizeof(entries))
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
        for name in new:
            if is_whole(name):
                interpose_all(name, _modules[name], &entries)
        append_to_map(&entries)
        look_at_objects()
    except Exception:
        pass
    finally:
        xml_free(&entries)
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
