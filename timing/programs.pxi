# What programs that are not Python need to know to be recorded (cext/program/program_plan.h reads it).

cdef list _natives = []  # the native intrinsics that are recorded here, and their entries in the map
cdef list _settings = []  # lines about the recorder's settings


cdef bytes setting_line(const recorder_settings *settings, const setting_field *field):
    cdef const char *place = <const char *>settings + field.offset
    if field.type == SETTING_text:
        value = (<const char **>place)[0]
    elif field.type == SETTING_number:
        value = b"%d" % (<uint64_t *>place)[0]
    else:
        value = b"%d" % (<uint32_t *>place)[0]
    return b"setting %s %s\n" % (field.name, value)


cdef bint tell_programs_of_settings(const recorder_settings *settings) except False:
    cdef const setting_field *field = recorder_settings_fields
    _natives.clear()
    _settings.clear()
    while field.name != NULL:
        _settings.append(setting_line(settings, field))
        field += 1
    return True


def follow_programs(bint followed):
    """Whether programs that are not Python are followed from now on."""
    preload_choose_programs(followed)


def plan_of_programs(bytes head, arguments, bytes compiled, notes):
    """The text of the file `programs`. `head` is what their logs begin with; `arguments` is how much is kept of what calls
    were about, as choose_arguments has it. A founder has the filter `compiled`, and its log says the `notes`: a kind and a
    text each."""
    rows = [f"native {name} {number} {' '.join(kept)}\n".encode() for name, number, kept, _ in _natives]
    kept = [f"argument {kind} {how_much}\n".encode() for kind, how_much in arguments.items()]
    entries = "".join([entry for *_, entry in _natives]).encode("utf-8", "replace") + b"</map>\n"
    texts = [b"%s %d\n%s" % (name, len(text), text) for name, text in ((b"map", entries), (b"head", head), (b"filter", compiled))]
    noted = [b"note %s %s\n" % (kind, said_text(text)) for kind, text in notes]
    return b"".join([b"format %d\n" % FORMAT_VERSION, *_settings, *kept, *rows, *texts, *noted])
