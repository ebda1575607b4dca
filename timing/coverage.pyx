"""Statement coverage as Python sees it: switched on and off. What happens when a place is reached is in cext/coverage;
nothing here runs then."""

from libc.stdint cimport uint32_t

from interpose.timing.recorder cimport recorder_say

cdef extern from "cpython/known_code.h":
    struct code_choice:
        pass
    struct known_codes:
        code_choice choice
    int known_codes_begin(known_codes *)
    void choose_own_code(code_choice *)
    bint choose(code_choice *, const char *, const char *)

cdef extern from "coverage/coverage_events.h":
    struct c_coverage "coverage":
        uint32_t on
    c_coverage state "coverage"
    int coverage_on(bint, bint, bint)
    void coverage_off()
    known_codes covered_codes
    const char *coverage_events_begin()
    const char *coverage_events_end()

cdef extern from "<string.h>":
    const char *strerror(int)


def begin(choices, bint branches, bint contexts, bint probes):
    """Record, from now on, which places of the chosen functions are reached.

    `choices` are the chosen functions, (module, qualified name), each a pattern in bytes; without any, the program's
    own code. Returns whether it could begin; the reason for a failure is in the experiment.
    """
    cdef int failed
    cdef const char *why
    if known_codes_begin(&covered_codes) < 0:
        raise MemoryError("no room for what is known of code objects")
    choose_own_code(&covered_codes.choice)
    for module, function in choices:
        choose(&covered_codes.choice, module, function)
    failed = coverage_on(branches, contexts, probes)
    why = strerror(failed) if failed else coverage_events_begin()
    if why != NULL:
        say_missed(why)
        coverage_off()
    return bool(state.on)


def end():
    """Record no longer."""
    cdef const char *why
    if state.on:
        why = coverage_events_end()
        coverage_off()
        if why != NULL:
            say_missed(why)


cdef void say_missed(const char *why):
    text = b'what="coverage" why="%s" ' % why
    recorder_say(b"missed", text)
