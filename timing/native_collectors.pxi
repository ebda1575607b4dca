# Data collectors in C, from shared libraries.

def native_collector(str path, make):
    """The data collector in C of a shared library, as a list for `make`: function, programs, pseudo-sections, when it
    is called and its address; and what is wrong with it."""
    cdef const interpose_collector *found = NULL
    cdef int signal_number = try_collector(os.fsencode(path))
    if signal_number:
        return [], f"it was tried in a child, which was ended by signal {signal_number}"
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


cdef str native_per(const interpose_collector *found):
    for name, number in PER.items():
        if number == found.per:
            return name
    return f"{found.per}"


cdef tuple native_programs(const interpose_collector *found):
    cdef int place = 0
    names = []
    while found.programs != NULL and found.programs[place] != NULL:
        names.append(found.programs[place].decode("utf-8", "replace"))
        place += 1
    return tuple(names) if found.programs != NULL else ("*",)


cdef dict native_sections(const interpose_collector *found):
    cdef int place = 0
    prefixes = {}
    while found.sections != NULL and found.sections[place].name != NULL and place <= INTERPOSE_SECTIONS:
        name = found.sections[place].name.decode("utf-8", "replace")
        prefix = found.sections[place].prefix
        prefixes.setdefault(name, []).append(prefix.decode("utf-8", "replace") if prefix != NULL else "")
        place += 1
    return prefixes
