"""Line trace as Python sees it: prepared, calibrated, switched on and off. What happens at each line is in cext/lines/lines.h and
cext/lines/line_events.c; nothing here runs then."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from interpose.timing.recorder cimport line_teller, recorder_say, recorder_state, string_intern

cdef extern from "cpython/known_code.h":
    struct code_choice:
        pass
    struct known_codes:
        code_choice choice
    void choose_own_code(code_choice *)
    int known_codes_begin(known_codes *)
    bint choose(code_choice *, const char *, const char *)

cdef extern from "lines/line_events.h":
    known_codes traced_codes
    struct line_costs:
        int64_t end
    struct c_lines "lines":
        uint32_t on
        line_costs costs
        uint64_t speed_ticks
    c_lines line_state "lines"
    struct thread_state "_ts":
        pass
    thread_state *running_state()
    uint64_t ticks_now()
    void lines_prepare(uint32_t, bint)
    int lines_on(uint32_t)
    void lines_off(uint32_t)
    void lines_rehearse(bint)
    void forget_plans()
    void speed_calibrate()
    void count_ticks(PyObject *, int64_t *, int64_t *)
    void uncount_line(thread_state *)
    enum:
        EVENTS_BY_THREAD
        ASKS_AT_INSTRUCTIONS
        SMALL_NUMBERS
    const char *line_events_begin()
    const char *line_events_end()
    void line_cost_set(const char *, double)

cdef extern from "<string.h>":
    void *memset(void *, int, size_t)
    const char *strerror(int)

cdef bint _prepared = False
cdef bytes _target = b""  # of the stretch that is on


def is_prepared():
    """Has line trace been prepared for this recording?"""
    return _prepared


def begin(choices, uint32_t depth, bint system):
    """Prepare line trace for the recording that has begun.

    `choices` are the chosen functions, (module, qualified name), each a pattern in bytes; where there are none, the
    program's own code is. Calls up to `depth` inside each other are recorded. `system`: the time in the kernel is asked for at each line.
    """
    global _prepared
    if known_codes_begin(&traced_codes) < 0:
        raise MemoryError("no room for what is known of code objects")
    forget_plans()
    lines_prepare(depth, system)
    calibrate()
    choose_own_code(&traced_codes.choice)
    for module, function in choices:
        choose(&traced_codes.choice, module, function)
    _prepared = True


def on(bytes target=b""):
    """Switch on; gives whether it was off until now, and could be switched on. `target` is the global that what is recorded is
    meant for."""
    global _target
    cdef const char *why
    cdef int failed
    if line_state.on or not _prepared:
        return False
    _target = target
    failed = lines_on(string_intern(target, len(target)))
    why = strerror(failed) if failed else line_events_begin()
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
    why = line_events_end()
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
    """What switching on gives: a context at whose end line trace is off again, if it was off before; or it goes on for the
    target that it had before."""

    cdef bint switched
    cdef bytes target, before

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.switched:
            off(self.target)
        elif self.before is not None:
            go_on_for(self.before)


cdef void go_on_for(bytes target):
    """End the stretch that is on, and begin one with this target."""
    if line_state.on:
        off()
        on(target)


def trace(bint wanted, bytes target):
    """Switch on or off; what is given ends what was begun."""
    cdef Tracing tracing = Tracing()
    tracing.target = b""
    if wanted and line_state.on and target and target != _target:
        tracing.before = _target
        go_on_for(target)
    elif wanted:
        tracing.switched = on(target)
    else:
        off(target)
    return tracing


include "calibrated_functions.pxi"
include "line_calibration.pxi"
