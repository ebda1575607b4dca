# What the interpreter itself takes for the events of line trace. Functions like those of programs run untraced, then traced with all
# costs at 0; the difference is the interpreter's. Line trace counts how often it subtracts each cost in them. The costs are those
# that explain all functions best (weighted least squares): no single function would do, because the cost of an event varies by
# 2 to 3 ns with the code around it.

CALIBRATED = "<interpose>"
AT_HIGH_LINES = 14  # so many of the functions are measured there as well
HIGH_LINE = SMALL_NUMBERS + 100  # the number of a line behind it is an object that is made for the event
if ASKS_AT_INSTRUCTIONS:
    COSTS = (
        *("line", "call", "resume", "exception", "stop", "instruction", "LOAD_GLOBAL", "LOAD_ATTR", "STORE_ATTR"),
        *("LOAD_METHOD", "BINARY_SUBSCR", "STORE_SUBSCR", "CALL", "FOR_ITER", "BINARY_OP", "COMPARE_OP", "BEFORE_WITH"),
        *("JUMP_BACKWARD", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE"),
    )
else:
    COSTS = (
        *("line", "high_line", "far", "branch", "jump", "high_jump", "call", "resume", "coroutine"),
        *("LOAD_GLOBAL", "FOR_ITER", "BINARY_OP", "CALL", "LOAD_ATTR"),
    )
UNIT = 256  # ticks, of a cost while it is counted how often it is taken off
PASSES = range(1, 81)
# The least of several times counts, because other programs only make them longer. Turns spread the times, in case that lasts.
TURNS, TIMES = 6, 2


cdef uint64_t bare_ticks(object function, object passes):
    """What a call of it takes, untraced."""
    cdef uint64_t begin = ticks_now()
    function(passes)
    return ticks_now() - begin


cdef tuple charged_by(object function, PyObject *code=NULL):
    """What a call makes all lines, or those of a code object, be charged, and what is taken off for events."""
    cdef int64_t ticks, before, events, events_before
    count_ticks(code, &before, &events_before)
    function(PASSES)
    count_ticks(code, &ticks, &events)
    return ticks - before, events - events_before


cdef bint add_bare(dict taken) except False:
    """Add what each of the functions takes untraced, without what a call of it does."""
    for function, times in taken.items():
        times += [bare_ticks(function, PASSES) - bare_ticks(function, ()) for _ in range(TIMES)]
    return True


cdef bint add_charged(dict taken) except -1:
    """Add what all lines are charged for a call of each function, before what is taken off; False where none can be traced."""
    lines_on(0)
    traced = line_events_begin() == NULL
    if traced:
        for function, times in taken.items():
            times += [sum(charged_by(function)) for _ in range(TIMES)]
        line_events_end()
    lines_off(0)
    return traced


cdef tuple measure_events(list functions):
    """What each function is charged, and what events make it take more; None where none can be traced."""
    bare, charged = {each: [] for each in functions}, {each: [] for each in functions}
    for function in functions:
        bare_ticks(function, PASSES)
    for _ in range(TURNS):
        if not add_charged(charged):
            return None
        add_bare(bare)
        speed_calibrate()
    taken = [min(times) for times in charged.values()]
    return taken, [all - min(times) for all, times in zip(taken, bare.values())]


cdef list count_cost(list functions, cost):
    """How often a cost is taken off in a call of each function."""
    forget_plans()
    line_cost_set(cost.encode(), UNIT)
    lines_on(0)
    line_events_begin()
    counts = [charged_by(function)[1] / UNIT for function in functions]
    line_events_end()
    lines_off(0)
    line_cost_set(cost.encode(), 0)
    return counts


cdef list least_squares(list rows, list wanted):
    """The factors with which the columns of `rows` come nearest to what is wanted (normal equations, Gauss)."""
    cdef Py_ssize_t size = len(rows[0]), each, other
    table = [
        [sum(row[each] * row[other] for row in rows) for other in range(size)]
        + [sum(row[each] * value for row, value in zip(rows, wanted))]
        for each in range(size)
    ]
    for each in range(size):
        best = max(range(each, size), key=lambda row: abs(table[row][each]))
        table[each], table[best] = table[best], table[each]
        pivot = table[each][each] or 1.0
        for other in range(size):
            if other != each:
                factor = table[other][each] / pivot
                table[other] = [value - factor * above for value, above in zip(table[other], table[each])]
    return [row[size] / (row[each] or 1.0) for each, row in enumerate(table)]


cdef list functions_of(str source):
    """The functions that a source defines, but for those that others call."""
    names = {"__name__": CALIBRATED}
    exec(compile(source, CALIBRATED, "exec"), names)
    return [each for name, each in names.items() if hasattr(each, "__code__") and name not in CALLED]


cdef list calibrating():
    """The functions to be measured."""
    if ASKS_AT_INSTRUCTIONS:
        return functions_of(FUNCTIONS)
    return functions_of(FUNCTIONS) + functions_of("\n" * HIGH_LINE + FUNCTIONS)[:AT_HIGH_LINES]


cdef bint find_end(list functions) except False:
    """Of what a call takes, what is the callee's: all that a function is charged that does nothing."""
    calls = next(function for function in functions if function.__name__ == "calls_nothing")
    callee = calls.__globals__["nothing"].__code__
    lines_on(0)
    line_events_begin()
    line_state.costs.end = min(charged_by(calls, <PyObject *>callee)[0] for _ in range(TIMES)) // len(PASSES)
    line_events_end()
    lines_off(0)
    return True


cdef bint find_costs(list functions) except False:
    """Set each cost to what explains best what the functions take more."""
    found = measure_events(functions)
    if not found:
        return True
    taken, more = found
    counts = [count_cost(functions, cost) for cost in COSTS]
    rows = [[count / all for count in counted] for all, counted in zip(taken, zip(*counts))]
    wanted = [ticks / all for ticks, all in zip(more, taken)]
    forget_plans()
    find_end(functions)
    for cost, ticks in zip(COSTS, least_squares(rows, wanted)):
        line_cost_set(cost.encode(), ticks)
    return True


cdef bint calibrate() except False:
    """What the interpreter takes for each event, in ticks."""
    cdef line_teller teller = recorder_state.tell_line
    memset(&line_state.costs, 0, sizeof(line_state.costs))
    recorder_state.tell_line = NULL
    line_state.speed_ticks = 0
    choose_own_code(&traced_codes.choice)
    choose(&traced_codes.choice, CALIBRATED.encode(), b"*")
    lines_rehearse(True)
    find_costs(calibrating())
    recorder_state.tell_line = teller
    forget_plans()
    lines_rehearse(False)
    return True
