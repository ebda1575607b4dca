# How records are packed, for the experiment's log.

def layout():
    """How each type of data is packed, as elements of log.xml."""
    cdef xml_text text
    memset(&text, 0, sizeof(text))
    layout_write(&text)
    return taken(&text)


def interpreter_layout():
    """Where another process finds what each thread runs, by name (cext/core/interpreter_layout.h); empty if this version
    of Python cannot be sampled."""
    cdef interpreter_places found = sampled_layout()
    cdef const uint64_t *places = <const uint64_t *>&found
    cdef int number = 0
    cdef dict named = {}
    while interpreter_layout_names[number] != NULL:
        if places[number]:
            named[interpreter_layout_names[number].decode()] = places[number]
        number += 1
    return named


def format_version():
    """The version of the format that is written."""
    return FORMAT_VERSION
