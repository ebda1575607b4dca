# Data collectors in C, from shared libraries.

def native_collector(str path, make):
    """The data collector in C of a shared library, as a list for `make`: function, programs, pseudo-sections, when it
    is called and its address; and what is wrong with it."""
    cdef const interpose_collector *found = NULL
    if why := why_not_native(try_collector(os.fsencode(path))):
        return [], f"it was tried in a child, {why}"
    cdef void *library = dlopen(os.fsencode(path), RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        return [], dlerror().decode("utf-8", "replace")
    found = <const interpose_collector *>dlsym(library, INTERPOSE_COLLECTOR_SYMBOL)
    if found == NULL:
        return [], f"it has no {INTERPOSE_COLLECTOR_SYMBOL.decode()}"
    if strncmp(found.eye_catcher, INTERPOSE_COLLECTOR_EYE_CATCHER, EYE_CATCHER_BYTES) or found.collect == NULL:
        return [], f"its {INTERPOSE_COLLECTOR_SYMBOL.decode()} is none: the eye-catcher is not there"
    if not 0 < found.version <= INTERPOSE_COLLECTOR_VERSION or found.area_bytes > sizeof(interpose_area):
        return [], f"it is of version {found.version}; this interpose knows up to {INTERPOSE_COLLECTOR_VERSION}"
    try:
        return [make(None, native_programs(found), native_sections(found), native_per(found), <size_t>found)], ""
    except ValueError as error:
        return [], f"ValueError: {error}"


cdef str why_not_native(int outcome):
    if outcome == TRIAL_LEFT:
        return "which it ended"
    if outcome == TRIAL_HANGS:
        return "where it did not return"
    return f"which was ended by signal {outcome}" if outcome != TRIAL_WELL else ""


cdef str native_per(const interpose_collector *found):
    for name, number in PER.items():
        if number == found.per:
            return name
    return f"{found.per}"


cdef str native_text(const char *text):
    """A name, cut where one must end."""
    return text[:strnlen(text, INTERPOSE_NAME_BYTES - 1)].decode("utf-8", "replace") if text != NULL else ""


cdef tuple native_programs(const interpose_collector *found):
    cdef int place = 0
    names = []
    while found.programs != NULL and found.programs[place] != NULL:
        names.append(native_text(found.programs[place]))
        place += 1
    return tuple(names) if found.programs != NULL else ("*",)


cdef dict native_sections(const interpose_collector *found):
    cdef int place = 0
    prefixes = {}
    while found.sections != NULL and found.sections[place].name != NULL and place <= INTERPOSE_SECTIONS:
        prefix = found.sections[place].prefix
        prefixes.setdefault(native_text(found.sections[place].name), []).append(native_text(prefix))
        place += 1
    return prefixes
