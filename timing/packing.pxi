# How records are packed, for the experiment to say it.

cdef list fields_of(const c_field *fields):
    cdef list found = []
    while fields != NULL and fields.name != NULL:
        found.append((fields.name.decode(), fields.type.decode(), fields.offset, fields.title.decode()))
        fields += 1
    return found


def layout():
    """How each type of data is packed: [(name, record bytes, head bytes, block bytes, [field])], the fields of a file's
    head, of the control page, of a block's head by the type of data, and of an entry in the table of calls in progress;
    a field is (name, type, offset, title)."""
    cdef const c_data_type *described = data_types
    types = []
    while described.name != NULL:
        types.append((described.name.decode(), described.record_bytes, described.head_bytes, described.block_bytes,
                      fields_of(described.fields)))
        described += 1
    heads = {"events": fields_of(block_head_fields), "events.zst": fields_of(compressed_fields)}
    return types, fields_of(file_head_fields), fields_of(control_fields), heads, fields_of(open_call_fields)


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
