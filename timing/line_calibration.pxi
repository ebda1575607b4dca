# What the interpreter itself takes for the events of line trace. Functions of known shape run untraced, and traced with all
# costs at 0: what their lines are charged more is the interpreter's, and how many events that is for has been counted.

CALIBRATED = "<interpose>"
# Short lines, as programs have them: how much of an event's cost shows depends on what the line has to do.
CALIBRATING = """
def lines(passes, kept=[0] * 8, size=8):
    for each in passes:
        x = each * each % 7
        if size > x:
            y = x + each
        kept[x] = y
        size = len(kept)
        len(kept)

def nothing():
    return 1

def calls(passes):
    for each in passes:
        nothing()

def numbers(passes):
    for each in passes:
        x = each * each % 7
        yield x

def resumes(passes, kept=[0] * 8):
    for each in numbers(passes):
        kept[each] = each

def jumps(passes):
    return [each for each in passes]
"""
HIGH_LINE = 1000  # its number is an object that is made for the event
AHEAD = 200
# What does not run, before a function's first line or the one that is measured.
MUCH = "    if passes is None:\n        " + "x = passes; " * AHEAD + "\n"
FAR = "    if passes is None:\n" + "        x = passes\n" * AHEAD
FAR_INSTRUCTIONS = 2 * AHEAD
# Where the interpreter asks at each instruction: statements for those that are slower than others then, for they are not specialised.
# Of each, its instructions; those without a name take what a plain one does.
STATEMENTS = {
    "": ("x = y", {"": 2}),
    "LOAD_GLOBAL": ("LIST", {"LOAD_GLOBAL": 1, "": 1}),
    "LOAD_ATTR": ("o.a", {"LOAD_ATTR": 1, "": 2}),
    "STORE_ATTR": ("o.a = x", {"STORE_ATTR": 1, "": 2}),
    "BINARY_SUBSCR": ("l[x]", {"BINARY_SUBSCR": 1, "": 3}),
    "STORE_SUBSCR": ("l[x] = y", {"STORE_SUBSCR": 1, "": 3}),
    "CALL": ("len(l); str(x); abs(x)", {"CALL": 3, "LOAD_GLOBAL": 3, "": 9}),
    "LOAD_METHOD": ("l.append(x); l.pop()", {"LOAD_METHOD": 2, "CALL": 2, "": 7}),
}
STATED = """
LIST = []

class Object:
    pass

def stated(passes, x=1, y=2, l=[], o=Object()):
    o.a = 1
    l[:] = 0, 1, 2
    for each in passes:
        %s
"""
RAISING = """
def raises(passes, kept={}):
    for each in passes:
        try:
            kept[each]
        except KeyError:
            x = each

async def one(each):
    return each

async def await_each(passes):
    for each in passes:
        x = await one(each)

def awaits(passes):
    try:
        await_each(passes).send(None)
    except StopIteration:
        pass
"""
FEW, MANY = 3, 9
PASSES = range(1, 41)
TIMES = 16


cdef object low(list numbers):
    return sorted(numbers)[len(numbers) // 4]


cdef object bare_ticks(object function, object passes):
    """What a call of it takes, untraced."""
    cdef uint64_t begin
    taken = []
    for _ in range(TIMES):
        begin = ticks_now()
        function(passes)
        taken.append(ticks_now() - begin)
    return low(taken)


cdef object charged(object function):
    """What its lines were charged so far, and how often they were executed."""
    cdef int64_t ticks
    cdef uint64_t executed
    count_code(function.__code__, &ticks, &executed)
    return ticks, executed


cdef object charged_ticks(object function, object inner):
    """What a call's lines are charged, with those of the inner function and of that alone; and how many are executed."""
    codes = [function, *(inner if isinstance(inner, tuple) else [inner] if inner else [])]
    taken = []
    for _ in range(TIMES):
        before = [charged(each) for each in codes]
        function(PASSES)
        after = [charged(each) for each in codes]
        taken.append([late[0] - early[0] for early, late in zip(before, after)])
    executed = sum(late[1] - early[1] for early, late in zip(before, after))
    return low([sum(each) for each in taken]), low([each[-1] for each in taken]), executed


cdef class Cost:
    """What the lines of a function are charged more than it takes untraced, for each of its passes; the same of the inner function
    alone; and how many lines are executed in each."""

    cdef double more, inner, executed


cdef dict measure(dict shapes):
    """The costs of functions, each given with one that it calls or None; empty where none can be traced."""
    cdef Cost cost
    for function, _ in shapes.values():
        bare_ticks(function, PASSES)
    bare = {name: bare_ticks(function, PASSES) - bare_ticks(function, ()) for name, (function, _) in shapes.items()}
    costs = {}
    lines_on(0)
    if events_begin() == NULL:
        for name, (function, inner) in shapes.items():
            ticks, of_inner, executed = charged_ticks(function, inner)
            cost = costs[name] = Cost()
            cost.more = (ticks - bare[name]) / len(PASSES)
            cost.inner = of_inner / len(PASSES)
            cost.executed = (executed - 1) / len(PASSES)
        events_end()
    lines_off(0)
    return costs


cdef void set_costs(dict found):
    cdef line_costs *costs = &line_state.costs
    cdef Cost lines = found["lines"], high = found["high_lines"], far = found["far_lines"], calls = found["calls"]
    cdef Cost resumes = found["resumes"], jumps = found["jumps"], high_jumps = found["high_jumps"]
    cdef Cost raises, awaits
    line = lines.more / lines.executed
    call = calls.more - (calls.executed - 1) * line
    costs.line = round(line)
    costs.high_line = round(high.more / high.executed)
    costs.jump = round(jumps.more)
    costs.high_jump = round(high_jumps.more)
    costs.end = round(calls.inner)
    costs.after = round(call - calls.inner)
    resume = resumes.more - resumes.executed * line - call
    costs.resume = round(resume)
    costs.far = max(far.more / far.executed - high.more / high.executed, 0) / FAR_INSTRUCTIONS
    if ASKS_AT_INSTRUCTIONS:
        raises, awaits = found["raises"], found["awaits"]
        costs.exception = raises.more - raises.executed * line
        costs.stop = awaits.more - (awaits.executed - 1) * line - call


cdef object stated(str statement, int times):
    return functions_of(STATED % "; ".join([statement] * times))["stated"], None


cdef bint measure_instructions() except False:
    """Set the costs of instructions: what one more statement takes, less what its other instructions do."""
    cdef Cost few, many
    cdef line_costs *costs = &line_state.costs
    shapes = {(name, times): stated(statement, times) for name, (statement, _) in STATEMENTS.items() for times in (FEW, MANY)}
    found = measure(shapes)
    if not found:
        return True
    taken = {}
    for name, (_, instructions) in STATEMENTS.items():
        few, many = found[name, FEW], found[name, MANY]
        others = sum(count * taken[other] for other, count in instructions.items() if other != name)
        taken[name] = ((many.more - few.more) / (MANY - FEW) - others) / instructions[name]
    for opcode in range(1, 256):
        costs.instruction[opcode] = taken[""]
    for name, cost in taken.items():
        costs.instruction[opcode_named(name.encode())] = cost
    costs.instruction[0] = 0
    return True


cdef bint calibrate() except False:
    """What the interpreter takes for each event, in ticks."""
    cdef line_teller teller = recorder_state.tell_line
    memset(&line_state.costs, 0, sizeof(line_state.costs))
    recorder_state.tell_line = NULL
    choose_own_code(&traced_codes.choice)
    choose(&traced_codes.choice, CALIBRATED.encode(), b"*")
    lines_rehearse(True)
    if ASKS_AT_INSTRUCTIONS:
        measure_instructions()
    shapes = functions_of(CALIBRATING)
    names = {name: (shapes[name], None) for name in ("lines", "jumps")}
    names["calls"] = shapes["calls"], shapes["nothing"]
    names["resumes"] = shapes["resumes"], shapes["numbers"]
    if ASKS_AT_INSTRUCTIONS:
        names["lines"] = functions_of(CALIBRATING.replace("len(kept)", "x"))["lines"], None
        shapes = functions_of(RAISING)
        names["raises"] = shapes["raises"], None
        names["awaits"] = shapes["awaits"], (shapes["await_each"], shapes["one"])
    names["high_lines"] = functions_of("\n" * HIGH_LINE + CALIBRATING)["lines"], None
    names["high_jumps"] = functions_of(CALIBRATING.replace("    return [", MUCH + "    return ["))["jumps"], None
    far = CALIBRATING.replace("    for each", FAR + "    for each", 1)
    names["far_lines"] = functions_of("\n" * HIGH_LINE + far)["lines"], None
    found = measure(names)
    if found:
        set_costs(found)
    recorder_state.tell_line = teller
    forget_tables()
    lines_rehearse(False)
    return True


cdef dict functions_of(str source):
    names = {"__name__": CALIBRATED}
    exec(compile(source, CALIBRATED, "exec"), names)
    return names
