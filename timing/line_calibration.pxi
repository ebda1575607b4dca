# What the interpreter itself takes for the events of line trace. Functions of known shape run untraced, and traced with all
# costs at 0: what their lines are charged more is the interpreter's, and how many events that is for has been counted.

CALIBRATED = "<interpose>"
JUMPS = """
def jumps(passes):
%s    return [each for each in passes]
"""
SHORT = """
def short(passes):
%s    for each in passes:
        x = each * each %% 7
        y = x + each
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
# Lines as programs have them. Each kind is measured with few and with many of them, so that the loop around them does not matter.
# How much of an event's cost shows depends on what the line has to do.
LINES = {
    "plain": ("x = each * each % 7", "y = x + each", "l[x] = y", "o.a = x", "y = o.a"),
    "global": ("LIST", "len(l)"),
    "loop": ("for z in r:\n            x = z", "for z in m:\n            x = z"),
    "call": ("nothing()",),
    "resume": ("for z in numbers(r):\n            x = z",),
}
LINED = """
LIST = []

class Object:
    pass

def nothing():
    return 1

def numbers(passes):
    for each in passes:
        yield each

def lined(passes, x=1, y=2, l=[0] * 8, m=[0] * 4, r=range(4), o=Object()):
    for each in passes:
        %s
"""
IN_LOOP = 4
# The processor foresees the order of the lines above, and an event costs less then. What a line takes is measured here, where it
# cannot; what a call takes lies between both.
MIXED = """
LIST = []

class Object:
    pass

def less(x, y):
    if x < y:
        return x
    return y

def mixed(passes, l=[0] * 8, o=Object()):
    y = z = 0
    for each in passes:
        x = each * each %% 7
        %(first)s
        if x > 3:
            y = x + each
            %(second)s
        elif x > 1:
            y = -x
        elif each > 20:
            y = x
        o.a = l[x] = y
        %(third)s
        if y > each:
            y = o.a
        len(l)
"""
PLAIN = {"first": "z = -x", "second": "y = -y", "third": "z = x"}
CALLING = {"first": "z = less(x, y)", "second": "y = less(z, 3)", "third": "z = less(y, x)"}
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
# Of calls in programs, as the functions of tests/lines/shapes.py have them.
UNFORESEEN_SHARE = 0.25
PASSES = range(1, 41)
# The least of several is taken: what else runs on the machine only ever takes more. In turns, for that may last a while: until
# some have found hardly anything less.
LEAST_TURNS, MOST_TURNS, TURNS_ALIKE = 4, 20, 2
HARDLY = 0.03
TIMES = 2


cdef object bare_ticks(object function, object passes):
    """What a call of it takes, untraced."""
    cdef uint64_t begin
    taken = []
    for _ in range(TIMES):
        begin = ticks_now()
        function(passes)
        taken.append(ticks_now() - begin)
    return min(taken)


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
    return min(sum(each) for each in taken), min(each[-1] for each in taken), executed


cdef class Cost:
    """What the lines of a function are charged more than it takes untraced, for each of its passes; the same of the inner function
    alone; and how many lines are executed in each."""

    cdef double more, inner, executed


cdef dict measure_bare(dict shapes):
    """What each of the functions takes untraced, without what a call of it does."""
    return {name: (bare_ticks(function, PASSES) - bare_ticks(function, ()),) for name, (function, _) in shapes.items()}


cdef bint take_less(dict least, dict found) except -1:
    """Keep the lesser of each figure; was the first of some much less than before?"""
    changed = False
    for name, figures in found.items():
        changed = changed or figures[0] < (1 - HARDLY) * least[name][0]
        least[name] = tuple(map(min, least[name], figures))
    return changed


cdef dict measure_charged(dict shapes):
    """What the lines of each of the functions are charged; empty where none can be traced."""
    taken = {}
    lines_on(0)
    if line_events_begin() == NULL:
        taken = {name: charged_ticks(function, inner) for name, (function, inner) in shapes.items()}
        line_events_end()
    lines_off(0)
    return taken


cdef dict measure(dict shapes):
    """The costs of functions, each given with one that it calls or None; empty where none can be traced."""
    cdef Cost cost
    for function, _ in shapes.values():
        bare_ticks(function, PASSES)
    bare, charged = measure_bare(shapes), measure_charged(shapes)
    turns = alike = 1
    while charged and turns < MOST_TURNS and (turns < LEAST_TURNS or alike < TURNS_ALIKE):
        changed = take_less(bare, measure_bare(shapes)) | take_less(charged, measure_charged(shapes))
        alike = 0 if changed else alike + 1
        turns += 1
    costs = {}
    for name, (ticks, inner, executed) in charged.items():
        cost = costs[name] = Cost()
        cost.more = (ticks - bare[name][0]) / len(PASSES)
        cost.inner = inner / len(PASSES)
        cost.executed = (executed - 1) / len(PASSES)
    return costs


cdef tuple one_more(dict found, name):
    """What one more of the lines takes more than untraced, and how many are executed then."""
    cdef Cost few = found[name, FEW], many = found[name, MANY]
    return (many.more - few.more) / (MANY - FEW), (many.executed - few.executed) / (MANY - FEW)


cdef class Taken:
    """What the interpreter takes, in ticks: for a line whose order is foreseen, and for one that is not; more for one that begins with a
    global name, or with the step of a loop; for a call, between those whose order is foreseen and those of
    which it is not."""

    cdef double line, high_line, mixed_line, of_global, of_loop, call

    def __init__(self, dict found):
        cdef Cost mixed = found["mixed"], calling = found["calling"]
        more, executed = one_more(found, "plain")
        self.line = more / executed
        more, executed = one_more(found, "high")
        self.high_line = more / executed
        more, executed = one_more(found, "global")
        self.of_global = 0 if ASKS_AT_INSTRUCTIONS else more / executed - self.line
        more, executed = one_more(found, "loop")
        self.of_loop = (more - executed * self.line) / (2 * (IN_LOOP + 1))
        self.mixed_line = (mixed.more - self.of_global - self.of_loop) / mixed.executed
        more, executed = one_more(found, "call")
        calls = 2 + sum(each * each % 7 > 3 for each in PASSES) / len(PASSES)
        lines = (calling.executed - mixed.executed - calls) * self.mixed_line
        foreseen, unforeseen = more - self.line - self.of_global, (calling.more - mixed.more - lines) / calls
        self.call = foreseen + UNFORESEEN_SHARE * (unforeseen - foreseen)


cdef double resume_ticks(Taken taken, dict found):
    """What follows when a generator has gone on: it begins, goes on and ends as often as the loop over it has passes."""
    more, executed = one_more(found, "resume")
    lines = (executed - 1) * taken.line + taken.of_global + 2 * (IN_LOOP + 1) * taken.of_loop
    return (more - lines - (IN_LOOP + 1) * taken.call) / IN_LOOP


cdef void set_costs(dict found):
    cdef line_costs *costs = &line_state.costs
    cdef Taken taken = Taken(found)
    cdef Cost far = found["far"], near = found["near"], jumps = found["jumps"], high_jumps = found["high_jumps"]
    cdef Cost few = found["call", FEW], many = found["call", MANY], raises = found["raises"], awaits = found["awaits"]
    coroutine = awaits.more - (awaits.executed - 1) * taken.line - taken.call - taken.of_loop
    costs.line = round(taken.mixed_line)
    costs.high_line = round(taken.mixed_line + taken.high_line - taken.line)
    costs.jump = round(jumps.more)
    costs.high_jump = round(high_jumps.more)
    costs.end = round((many.inner - few.inner) / (MANY - FEW))
    costs.after = round(taken.call) - costs.end
    costs.resume = round(resume_ticks(taken, found))
    costs.far = max(far.more / far.executed - near.more / near.executed, 0) / FAR_INSTRUCTIONS
    costs.instruction[opcode_named(b"LOAD_GLOBAL")] += taken.of_global
    costs.instruction[opcode_named(b"FOR_ITER")] += taken.of_loop
    if ASKS_AT_INSTRUCTIONS:
        costs.exception = raises.more - raises.executed * taken.line - taken.of_loop
        costs.stop = coroutine
    else:
        costs.coroutine = round(coroutine)


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


cdef object lined(statements, int times, int first_line=0):
    functions = functions_of("\n" * first_line + LINED % "\n        ".join(statements * times))
    return functions["lined"], (functions["numbers"], functions["nothing"])


cdef dict calibrating():
    """The functions to be measured, each with those that it calls or None, by what they tell."""
    found = {(name, times): lined(each, times) for name, each in LINES.items() for times in (FEW, MANY)}
    found |= {("high", times): lined(LINES["plain"], times, HIGH_LINE) for times in (FEW, MANY)}
    for name, statements in ("mixed", PLAIN), ("calling", CALLING):
        shapes = functions_of(MIXED % statements)
        found[name] = shapes["mixed"], shapes["less"]
    for name, before in ("near", ""), ("far", FAR):
        found[name] = functions_of("\n" * HIGH_LINE + SHORT % before)["short"], None
    for name, before in ("jumps", ""), ("high_jumps", MUCH):
        found[name] = functions_of(JUMPS % before)["jumps"], None
    shapes = functions_of(RAISING)
    found["raises"] = shapes["raises"], None
    found["awaits"] = shapes["awaits"], (shapes["await_each"], shapes["one"])
    return found


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
    found = measure(calibrating())
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
