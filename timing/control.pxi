# What the program says of its own recording: interpose.pause and its neighbours, while something is recorded.

cdef Timed _events = None  # the definition of user events; None if they are not recorded
cdef Timed _statements = None  # the same of lines
cdef int LABEL_LETTERS = 64
cdef int WARNING_LETTERS = 160


cdef bint know_events(object intrinsic) except False:
    """From now on what the program tells of is recorded as events of that intrinsic."""
    global _events
    _events = Timed(intrinsic)
    told_by_program(intrinsic.number)
    return True


cdef bint know_statements(object intrinsic) except False:
    """Record, from now on, each line that line trace reaches as an event of that intrinsic."""
    global _statements
    _statements = Timed(intrinsic)
    tell_lines_as(&_statements.slot)
    return True


cdef void forget_events():
    """Before another recording, like marks."""
    global _events, _statements
    _events = _statements = None


cdef bint know_for_filter(Declared intrinsic) except False:
    """Its calls are known to the filter, by kind; waiting for work is of the first of its kinds."""
    cdef uint32_t number = intrinsic.number
    cdef list kinds = intrinsic.kinds
    cdef str name = intrinsic.name + intrinsic.suffix
    cdef str kind
    if not name.isascii():
        name = name.encode("utf-8", "replace").decode()
    for kind in kinds:
        filter_know(number, PyUnicode_AsUTF8(name), PyUnicode_AsUTF8(kinds[0] if kind == "idle" else kind))
        number += 1
    return True


def filter_calls(bytes compiled):
    """Record only calls that match the experiment's filter: `compiled`, of interpose.config.filters, if this process is
    the founder; nothing without a filter. Raises OSError."""
    cdef int failed = recorder_filter(compiled, len(compiled))
    if failed:
        raise OSError(failed, os.strerror(failed), "filter")


def sample_calls(uint64_t interval_ns):
    """Record, from now on, only calls that run when an interval of this many nanoseconds of their thread's CPU time
    ends."""
    recorder_state.interval_ns = interval_ns


def choose_transactions(seed, one_in, bytes lineage, str within):
    """Keep, from now on, one transaction in `one_in`, if that is above 1. `within` is the fate of the transaction in
    which this process was started: `kept`, `passed over`, or empty."""
    cdef fate outside = <fate>{"kept": FATE_kept, "passed over": FATE_passed_over}.get(within, FATE_none)
    chosen_begin(seed, one_in, lineage, outside)


def tell_fate():
    """Have the log say what became of the transaction that this process was started in."""
    recorder_tell_fate()


cdef bytes said_text(str text):
    """The attribute of an event in the log that says `text`."""
    return f'text="{for_log(text, WARNING_LETTERS)}"'.encode("utf-8", "replace")


def warn(str text):
    """Have the log say what could not be done as asked."""
    recorder_say("warning", said_text(text))


def note_filter(str text):
    """Have the log say which filter holds from now on."""
    recorder_say("filter", said_text(text))


def pause():
    """Record nothing from now on, in the whole experiment, until it is to go on."""
    recorder_turn(True)


def resume():
    """Go on recording."""
    recorder_turn(False)


def sample(str label):
    """Sample what the process has used, under a label, of which the first 64 letters are kept."""
    attributes = f'text="{for_log(label, LABEL_LETTERS)}"'.encode("utf-8", "replace")
    recorder_sample(attributes)


def user_event(str text):
    """Record that something happened, as `text` says."""
    cdef bytes encoded
    if _events is not None and recording() != NULL:
        encoded = text.encode("utf-8", "replace")
        mark_event(&_events.slot, detail_intern(encoded, len(encoded)))
