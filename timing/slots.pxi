# The slots of stubs: taking one, and telling it what its intrinsic is like.

cdef slot *new_slot(c_signature signature, void *body, void *real) except NULL:
    """A slot for a stub in the place of `real`, which lets all calls pass until it is fit."""
    cdef slot *slot = slot_take(signature, real)
    if slot == NULL:
        free_dead_slots()
        slot = slot_take(signature, real)
    if slot == NULL:
        raise NotInterposed("the pool of stubs for its signature is full")
    return empty_slot(slot, body)


cdef Py_ssize_t _many_installed = 0  # from so many on it is looked again which are dead


cdef slot *new_function_slot(object function, void *body) except NULL:
    """The same for the vectorcall of a Python function, of which there may be any number."""
    global _many_installed
    cdef slot *slot = slot_take(SIGNATURE_vector, function_vectorcall(function))
    if slot == NULL and (IS_FREE_THREADED or len(_installed) >= _many_installed):
        free_dead_slots()
        _many_installed = 2 * len(_installed)
        slot = slot_take(SIGNATURE_vector, function_vectorcall(function))
    if slot == NULL:
        slot = slot_take_further(<PyObject *>function)
    if slot == NULL:
        raise NotInterposed("the pool of stubs for its signature is full")
    return empty_slot(slot, body)


cdef slot *empty_slot(slot *slot, void *body) noexcept:
    slot_is_unfit(slot)
    slot.body = body
    slot.ask = NULL
    slot.link = NULL
    slot.keyword = slot.attributes = slot.headers = slot.route = NULL
    slot.caller = CALLER_NOT
    slot.intrinsic = slot.numbers = slot.lowered = slot.through = slot.sampled = 0
    slot.detail = slot.subject = slot.late = slot.request = slot.moves = slot.choice = slot.effect = slot.lock = slot.passes = slot.waits = slot.traffic = slot.asks = slot.shape = 0
    return slot


cdef bint free_dead_slots() except False:
    """Free slots in the pools whose functions are gone."""
    cdef Installed installed
    for installed in list(_installed):
        if installed.is_dead() and _installed.pop(installed, False):
            installed.restore()
    return True


cdef uint8_t number_of(const char *const *words, str word) except 255:
    """The place of a word in one of the lists of words."""
    cdef uint8_t number = 0
    cdef const char *encoded
    if not word and words[0][0] == 0:
        return 0
    encoded = PyUnicode_AsUTF8(word)
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


cdef PyObject *paths_for_ever(str paths) except? NULL:
    """The paths of attributes, with spaces between them, as tuples of names."""
    return kept_for_ever(tuple([tuple(each.split(".")) for each in paths.split()])) if paths else NULL


cdef str RESULT = "result"
cdef tuple OF_CALLS = ("served", "holder", "tls")  # details that a call alone has


cdef uint8_t subject_number(Declared intrinsic) except? 0:
    """Which argument the detail is taken from; the object itself, or the result."""
    argument = intrinsic.argument
    if argument is None:
        return SUBJECT_OWNER
    if argument == RESULT and intrinsic.detail not in OF_CALLS:
        return SUBJECT_RESULT
    if type(argument) is not int or not 0 <= argument < SUBJECT_RESULT:
        raise NotInterposed(f"{argument!r} is no argument that {intrinsic.detail or 'nothing'} could be of")
    return argument


cdef bint find_headers(slot *slot, str text) except False:
    """Where the headers of a request are that its calls serve: `self`, or an argument's number, and a path."""
    cdef object first, way
    slot.caller, slot.headers = CALLER_NOT, NULL
    if not text:
        return True
    first, _, way = text.partition(".")
    if first and first != "self" and not (first.isdecimal() and len(first) < 3):
        raise NotInterposed(f"{text!r} is not where headers could be")
    slot.caller = SUBJECT_OWNER if first == "self" else int(first) if first else CALLER_NOT
    slot.headers = kept_for_ever((tuple(way.split(".")),) if way else ())
    return True


cdef bint fit(slot *slot, Declared intrinsic) except False:
    """Tell a slot what its intrinsic is like."""
    cdef int kind, offset, own_kinds
    cdef uint32_t number = intrinsic.number
    cdef list kinds = intrinsic.kinds
    if not kinds:
        raise NotInterposed("it is of no kind")
    slot.detail = number_of(detail_words, intrinsic.detail)
    slot.keyword = kept_for_ever(intrinsic.keyword)
    slot.attributes = paths_for_ever(intrinsic.attribute)
    slot.route = paths_for_ever(intrinsic.route)
    slot.subject = subject_number(intrinsic)
    find_headers(slot, intrinsic.headers)
    slot.request = REQUEST_named if intrinsic.detail == "served" or slot.route != NULL else 0
    slot.request |= REQUEST_traced if intrinsic.headers or intrinsic.is_transaction else 0
    slot.late = is_detail_late(slot)
    slot.moves = number_of(moves_words, intrinsic.bytes)
    slot.choice = number_of(choice_words, intrinsic.choice)
    slot.effect = number_of(effect_words, intrinsic.effect)
    if slot.effect == EFFECT_span:
        expect_active_spans()
    slot.passes = number_of(passes_words, intrinsic.passes)
    slot.waits = WAITS_wall if intrinsic.waits else WAITS_not
    if intrinsic.bytes in ("row", "rows") and recorder_state.rows != ROWS_each:
        slot.waits = WAITS_rows
    for kind in range(KIND_COUNT):
        slot.kinds[kind] = 0
    own_kinds = len(kinds) - intrinsic.sampled
    for offset, word in enumerate(kinds):
        kind = number_of(kind_words, word)
        if offset < own_kinds:
            slot.kinds[kind] = offset
            if intrinsic.sampled:
                chosen_know(number + offset, own_kinds - offset)
        number_is_of(number + offset, kind)
        if intrinsic.is_transaction:
            transaction_add(number + offset)
        note_boundary(number + offset, intrinsic, word == "screen")
    know_for_filter(intrinsic)
    slot.intrinsic = number
    slot.numbers = len(kinds)
    slot.sampled = intrinsic.sampled and chosen_state.one_in > 0
    slot.lowered = slot.request & REQUEST_traced != 0
    for offset, word in enumerate(intrinsic.levels):
        slot.levels[offset] = number_of(level_words, word)
        slot.lowered |= slot.levels[offset] != LEVEL_time
    slot.traffic = is_traffic(slot)
    slot.asks = intrinsic.terminal != ""
    return True


cdef bint is_plain_body(c_signature signature, slot *slot) noexcept:
    """Does it nothing but time its calls?"""
    return not slot.passes and (slot.body == bodies[signature] or (takers[signature] != NULL and slot.body == takers[signature]))


cdef bint let_pass(Installed installed, object owner, Declared intrinsic) except False:
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
