/* Probes in the bytecode of 3.11: each is told once that its place is come to, and then is no more.

   A chosen code object is replaced, before it is first executed, by one that is the same but for stubs behind its last
   instruction. Where a place begins there stands at first a jump to its stub, which calls us and jumps back; when called we put
   back what stood there, so that what has been executed runs as if nothing had been done. What Python shows of the code object
   (co_code, the tables of lines and of exceptions, the constants) knows nothing of this.

   A stub has no line, cannot raise and is never interrupted: nobody sees a frame that is in one. It calls us by ~AssertionError,
   the one value that an instruction has at hand whatever the program did, by a slot of `type` that is else empty. */
#pragma once

#include "coverage/coverage_trace.h"

enum { STUB_UNITS = 5, FAR_UNITS = 255, MOST_UNITS = 16000, MOST_AWAY = 65000 };

/* Where something is to be put in the place of what was compiled. */
struct probe {
    uint32_t unit;
    uint32_t place; /* from 1: the first that is noted */
    uint8_t places, units;
    bool is_armed, is_owed; /* it was come to while recording was paused */
};

struct probes {
    uint32_t count;
    uint32_t first_stub; /* unit */
    bool lacks_room;     /* on the stack, for a stub's entry */
    bool deeper;         /* that there is now */
    bool is_incomplete;  /* there are places for which there can be none */
    bool is_late;        /* and the first is one of them */
    struct probe probe[];
};

static struct {
    bool on, owed;
    bool is_traced; /* by the trace function as well: some code has places without probes */
    unaryfunc invert; /* what was in the slots before */
    richcmpfunc compare;
    PyNumberMethods *slots;
} probing;

/* --- where */

/* By instruction, what jumps there: nothing, what stands behind it alone, or others. */
enum arrival { NOT_REACHED, FROM_BEHIND, FROM_BEFORE };

static void note_arrival(uint8_t *arrivals, uint32_t target, uint32_t from)
{
    uint8_t how = from > target ? FROM_BEHIND : FROM_BEFORE;
    if (arrivals[target] < how)
        arrivals[target] = how;
}

static uint32_t exception_number(const uint8_t **at, const uint8_t *end)
{
    uint32_t number = 0;
    while (*at < end) {
        uint8_t piece = *(*at)++;
        number = number << 6 | (piece & 63);
        if (!(piece & 64))
            break;
    }
    return number;
}

/* Entries are: start, length, handler, and depth with a bit, as CPython's Objects/exception_handling_notes.txt says. */
static void note_handlers(uint8_t *arrivals, const struct bytecode *code, PyCodeObject *of)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(of->co_exceptiontable);
    const uint8_t *end = at + PyBytes_GET_SIZE(of->co_exceptiontable);
    while (at < end) {
        uint32_t start = exception_number(&at, end);
        exception_number(&at, end);
        uint32_t handler = exception_number(&at, end);
        exception_number(&at, end);
        if (handler < code->units)
            note_arrival(arrivals, handler, start);
    }
}

static uint8_t *arrivals_of(const struct bytecode *code, PyCodeObject *of)
{
    uint8_t *arrivals = calloc(code->units + 1, 1);
    if (!arrivals)
        return NULL;
    for (uint32_t unit = 0; unit < code->units; unit++)
        if (code->targets[unit] != NO_JUMP)
            note_arrival(arrivals, code->targets[unit], unit);
    /* awaiting goes in a circle by instructions that `bytecode` does not take for jumps */
    for (uint32_t unit = 0; unit < code->units; unit++)
        if (code->opcodes[unit] == SEND || code->opcodes[unit] == RESUME)
            arrivals[unit] = FROM_BEFORE;
    note_handlers(arrivals, code, of);
    return arrivals;
}

/* Others look at these in a frame that is suspended. */
static bool is_looked_at(uint8_t opcode)
{
    return opcode == RESUME || opcode == SEND || opcode == ASYNC_GEN_WRAP || opcode == JUMP_BACKWARD_NO_INTERRUPT ||
           opcode == RETURN_GENERATOR || opcode == CACHE;
}

/* Goes on to what follows, whatever happens. */
static bool goes_on(uint8_t opcode)
{
    return opcode == NOP || opcode == LOAD_FAST || opcode == LOAD_CONST || opcode == STORE_FAST || opcode == PUSH_NULL ||
           opcode == RESUME || opcode == EXTENDED_ARG;
}

/* Pushes before it takes anything away: there is room on the stack. */
static bool pushes(uint8_t opcode)
{
    return opcode == LOAD_FAST || opcode == LOAD_CONST || opcode == LOAD_GLOBAL || opcode == LOAD_NAME || opcode == PUSH_NULL ||
           opcode == LOAD_DEREF || opcode == LOAD_CLOSURE || opcode == LOAD_BUILD_CLASS || opcode == LOAD_ASSERTION_ERROR ||
           opcode == LOAD_CLASSDEREF || opcode == PUSH_EXC_INFO;
}

struct layout {
    const struct bytecode *code;
    const struct covered_plan *plan;
    const uint8_t *arrivals;
    struct probes *probes;
    bool lacks_room; /* on the stack */
};

/* How many units the jump to the stub takes. */
static uint32_t units_to_stub(const struct layout *layout, uint32_t unit)
{
    uint32_t stub = layout->probes->first_stub + layout->probes->count * STUB_UNITS;
    return stub - (unit + 1) <= FAR_UNITS ? 1 : 2;
}

static bool begins_place(const struct layout *layout, uint32_t unit)
{
    return layout->plan->place_of[unit] != layout->plan->place_of[unit - 1];
}

/* May `units` from here on be replaced? Nobody must come to the second otherwise than by the first. */
static bool is_free(const struct layout *layout, uint32_t unit, uint32_t units)
{
    if (is_looked_at(layout->code->opcodes[unit]))
        return false;
    if (units == 1)
        return true;
    uint32_t second = unit + 1;
    if (second >= layout->code->units || layout->arrivals[second] != NOT_REACHED)
        return false;
    return layout->code->opcodes[second] == CACHE ||
           (!begins_place(layout, second) && !is_looked_at(layout->code->opcodes[second]));
}

/* Put a probe for places here or, where that cannot be, at the next instruction that certainly follows and is come to from
   here first. */
static void put_probe(struct layout *layout, uint32_t unit, uint32_t place, uint32_t places)
{
    uint32_t units = units_to_stub(layout, unit);
    bool is_near = layout->probes->first_stub + layout->probes->count * STUB_UNITS < MOST_AWAY;
    while (!is_near || !is_free(layout, unit, units)) {
        uint32_t next = unit + 1;
        bool follows = is_near && next < layout->code->units && goes_on(layout->code->opcodes[unit]) &&
                       layout->arrivals[next] != FROM_BEFORE && layout->code->opcodes[next] != CACHE;
        if (!follows) {
            layout->probes->is_incomplete = true;
            layout->probes->is_late |= place == 1;
            return;
        }
        unit = next;
        units = units_to_stub(layout, unit);
        if (layout->plan->place_of[unit] == place + places && begins_place(layout, unit))
            places++;
    }
    layout->lacks_room |= !pushes(layout->code->opcodes[unit]);
    layout->probes->probe[layout->probes->count++] = (struct probe){
        .unit = unit,
        .place = place,
        .places = (uint8_t)places,
        .units = (uint8_t)units,
    };
}

static void lay_out(struct layout *layout)
{
    const struct covered_plan *plan = layout->plan;
    uint32_t last = 0; /* the last place that was seen to */
    for (uint32_t unit = 1; unit < plan->units; unit++) {
        uint32_t place = plan->place_of[unit];
        bool begins = place && begins_place(layout, unit) && place > last;
        bool jumped_into = place && !begins && !plan->has_parts && layout->arrivals[unit] == FROM_BEFORE &&
                           !is_looked_at(layout->code->opcodes[unit]);
        if (begins)
            put_probe(layout, unit, place, 1);
        else if (jumped_into && is_free(layout, unit, units_to_stub(layout, unit)))
            put_probe(layout, unit, place, 1);
        struct probes *probes = layout->probes;
        if (probes->count) {
            struct probe *probe = &probes->probe[probes->count - 1];
            uint32_t reach = probe->place + probe->places - 1;
            last = reach > last ? reach : last;
            unit = probe->unit > unit ? probe->unit : unit;
        }
    }
}

static void fill_probes(struct probes *probes, const struct bytecode *code, struct covered_plan *plan, const uint8_t *arrivals)
{
    struct layout layout = {code, plan, arrivals, probes, false};
    probes->first_stub = code->units;
    lay_out(&layout);
    probes->lacks_room = layout.lacks_room;
}

static void trace_the_rest(void);

/* NULL where there is nothing to be put. */
static struct probes *probes_of(const struct bytecode *code, struct covered_plan *plan, PyCodeObject *of)
{
    uint8_t *arrivals = code->units < MOST_UNITS ? arrivals_of(code, of) : NULL;
    struct probes *probes = arrivals ? calloc(1, sizeof *probes + (code->units + 1) * sizeof *probes->probe) : NULL;
    if (probes)
        fill_probes(probes, code, plan, arrivals);
    free(arrivals);
    if (probes && !probes->count) {
        if (probes->is_incomplete && !probing.is_traced)
            trace_the_rest();
        free(probes);
        return NULL;
    }
    struct probes *fitted = probes ? realloc(probes, sizeof *probes + probes->count * sizeof *probes->probe) : NULL;
    return fitted ? fitted : probes;
}

/* --- there and away */

static inline _Py_CODEUNIT unit_with(uint8_t opcode, uint32_t argument)
{
    return _Py_MAKECODEUNIT(opcode, argument & 255);
}

static void arm(PyCodeObject *code, const struct probes *probes, struct probe *probe)
{
    _Py_CODEUNIT *at = _PyCode_CODE(code) + probe->unit;
    uint32_t stub = probes->first_stub + (uint32_t)(probe - probes->probe) * STUB_UNITS;
    uint32_t way = stub - (probe->unit + probe->units);
    if (probe->units == 2)
        *at++ = unit_with(EXTENDED_ARG, way >> 8);
    *at = unit_with(JUMP_FORWARD, way);
    probe->is_armed = true;
}

/* What stands in the place of an instruction in code that has run often enough. */
static uint8_t quick(uint8_t opcode)
{
    switch (opcode) {
    case BINARY_OP: return BINARY_OP_ADAPTIVE;
    case BINARY_SUBSCR: return BINARY_SUBSCR_ADAPTIVE;
    case CALL: return CALL_ADAPTIVE;
    case COMPARE_OP: return COMPARE_OP_ADAPTIVE;
    case LOAD_ATTR: return LOAD_ATTR_ADAPTIVE;
    case LOAD_GLOBAL: return LOAD_GLOBAL_ADAPTIVE;
    case LOAD_METHOD: return LOAD_METHOD_ADAPTIVE;
    case PRECALL: return PRECALL_ADAPTIVE;
    case STORE_ATTR: return STORE_ATTR_ADAPTIVE;
    case STORE_SUBSCR: return STORE_SUBSCR_ADAPTIVE;
    case UNPACK_SEQUENCE: return UNPACK_SEQUENCE_ADAPTIVE;
    case JUMP_BACKWARD: return JUMP_BACKWARD_QUICK;
    case EXTENDED_ARG: return EXTENDED_ARG_QUICK;
    default: return opcode;
    }
}

static uint8_t pair(uint8_t first, uint8_t second)
{
    if (first == LOAD_FAST && second == LOAD_FAST)
        return LOAD_FAST__LOAD_FAST;
    if (first == LOAD_FAST && second == LOAD_CONST)
        return LOAD_FAST__LOAD_CONST;
    if (first == LOAD_CONST && second == LOAD_FAST)
        return LOAD_CONST__LOAD_FAST;
    if (first == STORE_FAST && second == LOAD_FAST)
        return STORE_FAST__LOAD_FAST;
    if (first == STORE_FAST && second == STORE_FAST)
        return STORE_FAST__STORE_FAST;
    return 0;
}

/* Two instructions become one, as the interpreter makes them when it has run code often enough. */
static void put_together(_Py_CODEUNIT *code, const _Py_CODEUNIT *compiled, uint32_t unit, uint32_t units)
{
    if (unit + 1 >= units || code[unit] != compiled[unit] ||
        _Py_OPARG(code[unit + 1]) != _Py_OPARG(compiled[unit + 1]))
        return;
    uint8_t live = _Py_OPCODE(code[unit + 1]), second = _Py_OPCODE(compiled[unit + 1]);
    uint8_t both = pair(_Py_OPCODE(compiled[unit]), second);
    if (both && (live == second || pair(second, LOAD_FAST) == live || pair(second, LOAD_CONST) == live ||
                 pair(second, STORE_FAST) == live))
        code[unit] = unit_with(both, _Py_OPARG(code[unit]));
}

static void disarm(PyCodeObject *code, struct probe *probe)
{
    _Py_CODEUNIT *units = _PyCode_CODE(code);
    const _Py_CODEUNIT *compiled = (const _Py_CODEUNIT *)PyBytes_AS_STRING(code->_co_code);
    uint32_t count = (uint32_t)(PyBytes_GET_SIZE(code->_co_code) / 2), end = probe->unit + probe->units;
    if (!probe->is_armed)
        return;
    probe->is_armed = false;
    for (uint32_t unit = probe->unit; unit < end; unit++) {
        uint8_t opcode = _Py_OPCODE(compiled[unit]);
        units[unit] = unit_with(code->co_warmup ? opcode : quick(opcode), _Py_OPARG(compiled[unit]));
    }
    if (!code->co_warmup)
        for (uint32_t unit = probe->unit ? probe->unit - 1 : 0; unit < end; unit++)
            put_together(units, compiled, unit, count);
}

/* What the instruction before does as well must not pass over the probe. */
static void arm_again(PyCodeObject *code, const struct probes *probes, struct probe *probe)
{
    _Py_CODEUNIT *units = _PyCode_CODE(code);
    const _Py_CODEUNIT *compiled = (const _Py_CODEUNIT *)PyBytes_AS_STRING(code->_co_code);
    uint32_t before = probe->unit ? probe->unit - 1 : 0;
    uint8_t opcode = _Py_OPCODE(compiled[probe->unit]), first = _Py_OPCODE(compiled[before]);
    bool is_passed_over = (opcode >= POP_JUMP_FORWARD_IF_FALSE && opcode <= POP_JUMP_FORWARD_IF_TRUE) ||
                          opcode == STORE_FAST || opcode == CALL || probe->units > 1;
    if (is_passed_over) /* by what was specialised on it; it is not come to a second time */
        return;
    if (pair(first, opcode))
        units[before] = compiled[before];
    arm(code, probes, probe);
}

static void put_stub(_Py_CODEUNIT *at, uint32_t unit, uint32_t back)
{
    uint32_t way = unit + STUB_UNITS - back;
    at[0] = unit_with(LOAD_ASSERTION_ERROR, 0);
    at[1] = unit_with(UNARY_INVERT, 0);
    at[2] = unit_with(POP_TOP, 0);
    at[3] = unit_with(EXTENDED_ARG, way >> 8);
    at[4] = unit_with(JUMP_BACKWARD_NO_INTERRUPT, way);
}

/* --- code objects with room for stubs */

/* Instructions as they are shown, with unseen room behind them: CPython takes its length from the code object. */
static PyObject *shown_code(PyObject *compiled, Py_ssize_t bytes)
{
    PyObject *shown = PyBytes_FromStringAndSize(NULL, bytes);
    if (!shown)
        return NULL;
    Py_ssize_t used = PyBytes_GET_SIZE(compiled);
    memset(PyBytes_AS_STRING(shown), 0, (size_t)bytes);
    memcpy(PyBytes_AS_STRING(shown), PyBytes_AS_STRING(compiled), (size_t)used);
    Py_SET_SIZE(shown, used);
    return shown;
}

/* The lines by instruction that tracing looks at: none in stubs. */
static bool put_lines(PyCodeObject *code, const struct bytecode *of)
{
    int *lines = PyMem_Malloc((size_t)Py_SIZE(code) * sizeof *lines);
    if (!lines)
        return false;
    for (Py_ssize_t unit = 0; unit < Py_SIZE(code); unit++)
        lines[unit] = unit < (Py_ssize_t)of->units ? of->lines[unit] : -1;
    code->_co_linearray = (char *)lines;
    code->_co_linearray_entry_size = sizeof *lines;
    return true;
}

static PyCodeObject *code_like(PyCodeObject *of, PyObject *instructions, PyObject *consts, int deeper)
{
    struct _PyCodeConstructor like = {
        .filename = of->co_filename,
        .name = of->co_name,
        .qualname = of->co_qualname,
        .flags = of->co_flags,
        .code = instructions,
        .firstlineno = of->co_firstlineno,
        .linetable = of->co_linetable,
        .consts = consts,
        .names = of->co_names,
        .localsplusnames = of->co_localsplusnames,
        .localspluskinds = of->co_localspluskinds,
        .argcount = of->co_argcount,
        .posonlyargcount = of->co_posonlyargcount,
        .kwonlyargcount = of->co_kwonlyargcount,
        .stacksize = of->co_stacksize + deeper,
        .exceptiontable = of->co_exceptiontable,
    };
    return _PyCode_New(&like);
}

static PyObject *instructions_with_stubs(PyObject *compiled, const struct probes *probes)
{
    Py_ssize_t used = PyBytes_GET_SIZE(compiled);
    PyObject *all = PyBytes_FromStringAndSize(NULL, used + (Py_ssize_t)(probes->count * STUB_UNITS * 2));
    if (!all)
        return NULL;
    _Py_CODEUNIT *units = (_Py_CODEUNIT *)PyBytes_AS_STRING(all);
    memcpy(units, PyBytes_AS_STRING(compiled), (size_t)used);
    for (uint32_t index = 0; index < probes->count; index++) {
        uint32_t unit = probes->first_stub + index * STUB_UNITS;
        put_stub(units + unit, unit, probes->probe[index].unit);
    }
    return all;
}

/* A stack on the heap has exactly the room that it needs; in the thread's there is always some behind. */
static bool has_own_stack(const PyCodeObject *code)
{
    return code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

/* The same code with stubs, not armed yet. */
static PyCodeObject *code_with_stubs(PyCodeObject *of, PyObject *consts, const struct bytecode *code,
                                     struct probes *probes)
{
    probes->deeper = probes->lacks_room && has_own_stack(of);
    PyObject *compiled = PyCode_GetCode(of);
    PyObject *all = compiled ? instructions_with_stubs(compiled, probes) : NULL;
    PyCodeObject *made = all ? code_like(of, all, consts, probes->deeper) : NULL;
    PyObject *shown = made ? shown_code(compiled, PyBytes_GET_SIZE(all)) : NULL;
    Py_XDECREF(compiled);
    Py_XDECREF(all);
    if (!shown || !put_lines(made, code)) {
        Py_XDECREF(shown);
        Py_CLEAR(made);
    } else {
        made->_co_code = shown;
    }
    return made;
}

/* What has places without probes is told by the trace function from now on, and so is all else that runs. */
static void trace_the_rest(void)
{
    probing.is_traced = true;
    if (coverage_trace_begin())
        recorder_say("missed", "what=\"coverage\" why=\"code without place for probes: another trace function is there\" ");
}

/* Have what is known of the code object hold its plan and probes, and arm these. */
static bool begin_probes(PyCodeObject *made, struct covered_plan *plan, struct probes *probes, frame *here)
{
    struct covered_code *known = covered_code_of(made, here);
    if (!known)
        return false;
    known->plan = plan;
    known->probes = probes;
    for (uint32_t index = 0; index < probes->count; index++)
        arm(made, probes, &probes->probe[index]);
    if (probes->is_late && !probing.is_traced)
        trace_the_rest();
    return true;
}

/* The same code with other constants. */
static PyCodeObject *unprobed(PyCodeObject *of, PyObject *consts)
{
    PyObject *compiled = PyCode_GetCode(of);
    PyCodeObject *made = compiled ? code_like(of, compiled, consts, 0) : NULL;
    Py_XDECREF(compiled);
    return made;
}

static PyCodeObject *probed(PyCodeObject *of, PyObject *consts, frame *here)
{
    struct bytecode code;
    struct covered_plan *plan = bytecode_read(&code, of) ? covered_plan_of(&code) : NULL;
    struct probes *probes = plan && plan->places ? probes_of(&code, plan, of) : NULL;
    PyCodeObject *made = probes ? code_with_stubs(of, consts, &code, probes) : NULL;
    bytecode_free(&code);
    if (made && begin_probes(made, plan, probes, here))
        return made;
    covered_plan_free(plan);
    free(probes);
    Py_CLEAR(made);
    return consts != of->co_consts ? unprobed(of, consts) : NULL;
}

static PyCodeObject *with_probes(PyCodeObject *of, frame *here);

static PyObject *copied(PyObject *consts)
{
    Py_ssize_t count = PyTuple_GET_SIZE(consts);
    PyObject *copy = PyTuple_New(count);
    for (Py_ssize_t index = 0; copy && index < count; index++)
        PyTuple_SET_ITEM(copy, index, Py_NewRef(PyTuple_GET_ITEM(consts, index)));
    return copy;
}

/* The constants with probes in what is chosen of the code objects among them; the same where there is none. */
static PyObject *consts_with_probes(PyCodeObject *of, frame *here)
{
    PyObject *consts = of->co_consts, *changed = NULL;
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(consts); index++) {
        PyObject *each = PyTuple_GET_ITEM(consts, index);
        PyCodeObject *made = PyCode_Check(each) ? with_probes((PyCodeObject *)each, here) : NULL;
        if (!made)
            continue;
        changed = changed ? changed : copied(consts);
        if (!changed) {
            Py_DECREF(made);
            break;
        }
        PyTuple_SET_ITEM(changed, index, (PyObject *)made);
        Py_DECREF(each);
    }
    return changed ? changed : Py_NewRef(consts);
}

/* The same code with probes where it, or what it has inside, is chosen; NULL where nothing is. */
static PyCodeObject *with_probes(PyCodeObject *of, frame *here)
{
    PyObject *consts = consts_with_probes(of, here);
    bool own = is_own_code(of, here);
    bool chosen = is_chosen(utf8(module_of(here)), utf8(of->co_qualname), own);
    PyCodeObject *made = chosen ? probed(of, consts, here) : consts != of->co_consts ? unprobed(of, consts) : NULL;
    PyErr_Clear();
    Py_DECREF(consts);
    return made;
}

/* The same, once for each code object. Borrowed. */
static PyCodeObject *once_with_probes(PyCodeObject *of, frame *here)
{
    struct covered_code *known = covered_code_of(of, here);
    if (!known || known->probes)
        return NULL;
    if (known->looked_at != known_codes.serial) {
        known->looked_at = known_codes.serial;
        Py_XSETREF(known->with_probes, with_probes(of, here));
    }
    return known->with_probes;
}

/* --- when one is come to */

/* The jump back from a stub looks to a trace function as if the line began a second time. Each has it once. */
static __thread struct {
    Py_tracefunc real;
    frame *frame;
    uint32_t unit, units;
} not_to_tell;

static int tell_all_but_that(PyObject *argument, PyFrameObject *object, int what, PyObject *given)
{
    PyThreadState *state = running_state();
    bool is_here = object->f_frame == not_to_tell.frame;
    uint32_t unit = (uint32_t)frame_instruction(object->f_frame);
    if (is_here && what == PyTrace_OPCODE && unit >= not_to_tell.units)
        return 0;
    if (state->c_tracefunc == tell_all_but_that)
        state->c_tracefunc = not_to_tell.real;
    if (is_here && what == PyTrace_LINE && unit == not_to_tell.unit)
        return 0;
    return not_to_tell.real(argument, object, what, given);
}

static void tell_not_twice(frame *here, uint32_t unit, uint32_t units)
{
    PyThreadState *state = running_state();
    if (LIKELY(!state->c_tracefunc) || !state->cframe->use_tracing || state->tracing)
        return;
    if (state->c_tracefunc != tell_all_but_that)
        not_to_tell.real = state->c_tracefunc;
    not_to_tell.frame = here;
    not_to_tell.unit = unit;
    not_to_tell.units = units;
    state->c_tracefunc = tell_all_but_that;
}

/* What was come to while recording was paused is waited for again. */
static void arm_owed(void)
{
    probing.owed = false;
    for (struct known_code *each = known_codes.first; each; each = each->next) {
        struct probes *probes = ((struct covered_code *)each)->probes;
        for (uint32_t index = 0; probes && index < probes->count; index++)
            if (probes->probe[index].is_owed) {
                probes->probe[index].is_owed = false;
                arm_again(each->code, probes, &probes->probe[index]);
            }
    }
}

/* The same, in the innermost frame in the middle of its line. */
static void trace_from(const struct covered_code *known)
{
    trace_the_rest();
    PyFrameObject *object = needs_instructions(known->plan) ? PyEval_GetFrame() : NULL;
    if (object)
        object->f_trace_opcodes = 1;
    PyErr_Clear();
}

static void note_probe(struct covered_code *known, struct probe *probe, frame *here)
{
    if (UNLIKELY(recorder_paused())) {
        probe->is_owed = probing.owed = true;
        return;
    }
    if (UNLIKELY(probing.owed))
        arm_owed();
    for (uint32_t place = probe->place; place < probe->place + probe->places; place++)
        come_to(known, place, here);
    if (UNLIKELY(known->probes->is_incomplete && !probing.is_traced))
        trace_from(known);
}

/* The probe that this frame is in, or NULL. */
static struct probe *probe_of(struct covered_code *known, frame *here)
{
    struct probes *probes = known ? known->probes : NULL;
    uint32_t unit = (uint32_t)frame_instruction(here);
    if (!probes || unit < probes->first_stub)
        return NULL;
    uint32_t index = (unit - probes->first_stub) / STUB_UNITS;
    return index < probes->count ? &probes->probe[index] : NULL;
}

/* ~ of a class: a stub's, or a program's, which is an error as ever. */
static PyObject *invert(PyObject *operand)
{
    frame *here = frame_running(running_state());
    struct covered_code *known = here && known_codes.index >= 0 ? code_extra(here->f_code, known_codes.index) : NULL;
    struct probe *probe = operand == PyExc_AssertionError && here ? probe_of(known, here) : NULL;
    if (probe) {
        disarm(here->f_code, probe);
        if (LIKELY(coverage.on))
            note_probe(known, probe, here);
        tell_not_twice(here, probe->unit, known->probes->first_stub);
        return Py_NewRef(Py_None);
    }
    if (probing.invert)
        return probing.invert(operand);
    PyErr_Format(PyExc_TypeError, "bad operand type for unary ~: '%.200s'", Py_TYPE(operand)->tp_name);
    return NULL;
}

/* --- equality: of code objects, that with probes is equal to that without */

/* The same code without probes where it has some. */
static PyObject *as_compiled(PyObject *object)
{
    PyCodeObject *code = (PyCodeObject *)object;
    struct covered_code *known = PyCode_Check(object) ? code_extra(code, known_codes.index) : NULL;
    if (!known || !known->probes)
        return Py_NewRef(object);
    return (PyObject *)code_like(code, code->_co_code, code->co_consts, -known->probes->deeper);
}

static PyObject *compare_codes(PyObject *first, PyObject *second, int operation)
{
    if (first == second || !PyCode_Check(second))
        return probing.compare(first, second, operation);
    PyObject *one = as_compiled(first), *other = as_compiled(second);
    PyObject *result = one && other ? probing.compare(one, other, operation) : NULL;
    Py_XDECREF(one);
    Py_XDECREF(other);
    return result;
}

static bool probes_begin(void)
{
    PyNumberMethods *slots = PyType_Type.tp_as_number;
    if (!slots || probing.on)
        return probing.on;
    probing.slots = slots;
    probing.invert = slots->nb_invert;
    probing.compare = PyCode_Type.tp_richcompare;
    slots->nb_invert = invert;
    PyCode_Type.tp_richcompare = compare_codes;
    probing.on = true;
    probing.is_traced = false;
    return true;
}

static void probes_end(void)
{
    for (struct known_code *each = known_codes.first; each; each = each->next) {
        struct probes *probes = ((struct covered_code *)each)->probes;
        for (uint32_t index = 0; probes && index < probes->count; index++)
            disarm(each->code, &probes->probe[index]);
    }
    if (probing.on && probing.slots->nb_invert == invert)
        probing.slots->nb_invert = probing.invert;
    if (probing.on && PyCode_Type.tp_richcompare == compare_codes)
        PyCode_Type.tp_richcompare = probing.compare;
    probing.on = false;
}
