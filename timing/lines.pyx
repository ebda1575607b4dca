"""Line trace as Python sees it: prepared, calibrated, switched on and off. What happens at each line is in cext/lines/lines.h and
cext/lines/line_events.h; nothing here runs then."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "cpython/known_code.h":
    struct code_choice:
        pass
    struct known_codes:
        code_choice choice
    void choose_own_code(code_choice *)
    bint choose(code_choice *, const char *, const char *)

cdef extern from "lines/line_events.h":
    known_codes traced_codes
    struct c_lines "lines":
        uint32_t on
        uint64_t event_ticks
        uint64_t call_ticks
        uint64_t first_ticks
    c_lines line_state "lines"
    struct thread_state "_ts":
        pass
    thread_state *running_state()
    uint64_t ticks_now()
    void lines_prepare(uint32_t, bint)
    int lines_on(uint32_t)
    void lines_off(uint32_t)
    void lines_rehearse(bint)
    int traced_begin()
    void forget_tables()
    void uncount_line(thread_state *)
    enum:
        EVENTS_BY_THREAD
    const char *events_begin()
    const char *events_end()

ctypedef void (*line_teller)(void *) noexcept

cdef extern from "core/recorder.h":
    uint32_t string_intern(const char *, size_t)
    void recorder_say(const char *, const char *)
    struct c_recorder "recorder":
        line_teller tell_line
    c_recorder recorder_state "recorder"

cdef extern from "<string.h>":
    const char *strerror(int)

CALIBRATED = "<interpose>"
# Short lines in loops, as programs have them; the second has as many, and calls in between.
CALIBRATING = """
def lines(passes=range(100)):
    x = y = 1
    for each in passes:
        if x:
            y = each
        x = y + 1

def nothing():
    return 1

def calls(passes=range(100)):
    for each in passes:
        nothing()
"""
PASSES = 100
TIMES = 12
cdef bint _prepared = False


def is_prepared():
    """Has line trace been prepared for this recording?"""
    return _prepared


def begin(choices, uint32_t depth, bint system):
    """Prepare line trace for the recording that has begun.

    `choices` are the chosen functions, (module, qualified name), each a pattern in bytes; where there are none, the
    program's own code is. Calls up to `depth` inside each other are recorded. `system`: the time in the kernel is asked for at each line.
    """
    global _prepared
    if traced_begin() < 0:
        raise MemoryError("no room for what is known of code objects")
    forget_tables()
    lines_prepare(depth, system)
    calibrate()
    choose_own_code(&traced_codes.choice)
    for module, function in choices:
        choose(&traced_codes.choice, module, function)
    _prepared = True


def on(bytes target=b""):
    """Switch on; gives whether it was off until now, and could be switched on. `target` is the global that what is recorded is
    meant for."""
    cdef const char *why
    cdef int failed
    if line_state.on or not _prepared:
        return False
    failed = lines_on(string_intern(target, len(target)))
    why = strerror(failed) if failed else events_begin()
    if why != NULL:
        say_why_not(why)
        if not EVENTS_BY_THREAD:
            lines_off(0)
    return bool(line_state.on)


def off(bytes target=b""):
    """Switch off. A `target` goes before that which was given when it was switched on."""
    cdef const char *why
    if not line_state.on:
        return
    uncount_line(running_state())
    why = events_end()
    lines_off(string_intern(target, len(target)))
    if why != NULL:
        say_why_not(why)


def end():
    """Switch off for good; the recording ends."""
    global _prepared
    off()
    _prepared = False


cdef void say_why_not(const char *why):
    text = b'what="lines" why="%s" ' % why
    recorder_say(b"missed", text)


cdef class Tracing:
    """What switching on gives: a context at whose end line trace is off again, if it was off before."""

    cdef bint switched
    cdef bytes target

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.switched:
            off(self.target)


def trace(bint wanted, bytes target):
    """Switch on or off; what is given ends what was begun."""
    cdef Tracing tracing = Tracing()
    tracing.target = b""
    if wanted:
        tracing.switched = on(target)
    else:
        off(target)
    return tracing


cdef uint64_t least_ticks(object function):
    """What a call of it takes, the least of several."""
    cdef uint64_t begun, least = 1 << 62
    for _ in range(TIMES):
        begun = ticks_now()
        function()
        least = min(least, ticks_now() - begun)
    return least


cdef uint64_t least_ticks_of_reading():
    """What reading the time takes, the least of several."""
    cdef uint64_t begun, least = 1 << 62
    for _ in range(TIMES):
        begun = ticks_now()
        for _ in range(PASSES):
            ticks_now()
        least = min(least, ticks_now() - begun)
    return least // PASSES


cdef void tell_nobody(void *frame) noexcept:
    pass


cdef bint calibrate() except False:
    """What recording takes at each line and at each call, in ticks. What it takes to tell of a line is timed each time, with what
    reading the time once takes."""
    cdef line_teller teller = recorder_state.tell_line
    cdef uint64_t reading = least_ticks_of_reading(), timed = reading if teller != NULL else 0
    names = {"__name__": CALIBRATED}
    exec(compile(CALIBRATING, CALIBRATED, "exec"), names)
    functions = [names["lines"], names["calls"]]
    line_state.event_ticks = line_state.call_ticks = line_state.first_ticks = 0
    bare = [least_ticks(function) for function in functions]
    choose_own_code(&traced_codes.choice)
    choose(&traced_codes.choice, CALIBRATED.encode(), b"*")
    lines_rehearse(True)
    if teller != NULL:
        recorder_state.tell_line = tell_nobody
    lines_on(0)
    if events_begin() == NULL:
        traced = [least_ticks(function) for function in functions]
        events_end()
        at_line = max(traced[0] - bare[0], 0) // (4 * PASSES)
        at_first = at_line - min(at_line, reading)
        line_state.event_ticks = at_line - min(at_line, timed)
        line_state.first_ticks = at_first - min(at_first, timed)
        line_state.call_ticks = max((traced[1] - bare[1]) // PASSES - 2 * at_line - at_first, 0)
    lines_off(0)
    recorder_state.tell_line = teller
    forget_tables()
    lines_rehearse(False)
    return True
