#include "cpython/bytecode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool leads_back(uint8_t opcode)
{
    switch (opcode) {
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    CONDITIONAL_JUMPS_BACK(CASE)
        return true;
    default:
        return false;
    }
}

static bool leads_forward(uint8_t opcode)
{
    switch (opcode) {
    case JUMP_FORWARD:
    case FOR_ITER:
    CONDITIONAL_JUMPS(CASE)
        return true;
    default:
        return false;
    }
}

bool is_conditional(uint8_t opcode)
{
    bool always_back = opcode == JUMP_BACKWARD || opcode == JUMP_BACKWARD_NO_INTERRUPT;
    return (leads_back(opcode) && !always_back) || (leads_forward(opcode) && opcode != JUMP_FORWARD);
}

static uint32_t behind_caches(const struct bytecode *code, uint32_t unit)
{
    for (unit++; unit < code->units && code->opcodes[unit] == CACHE;)
        unit++;
    return unit;
}

/* Awaiting goes in a circle until what is awaited has ended: as in `await`, what follows it comes next. */
static bool awaits(const struct bytecode *code, uint32_t target)
{
    return code->opcodes[target] == SEND;
}

/* Jumps count from behind their caches. */
static void find_targets(struct bytecode *code, const uint8_t *bytes)
{
    uint32_t argument = 0;
    for (uint32_t unit = 0; unit < code->units; unit++) {
        argument = argument << 8 | bytes[2 * unit + 1];
        code->targets[unit] = NO_JUMP;
        if (code->opcodes[unit] == EXTENDED_ARG)
            continue;
        uint32_t next = behind_caches(code, unit);
        if (leads_back(code->opcodes[unit]) && argument <= next)
            code->targets[unit] = next - argument;
        else if ((leads_forward(code->opcodes[unit]) || code->opcodes[unit] == SEND) && argument < code->units - next)
            code->targets[unit] = next + argument;
        if (code->opcodes[unit] == JUMP_BACKWARD_NO_INTERRUPT && code->targets[unit] != NO_JUMP &&
            awaits(code, code->targets[unit]))
            code->targets[unit] = NO_JUMP;
        argument = 0;
    }
}

static bool is_jumped_to(const struct bytecode *code, uint32_t unit)
{
    for (uint32_t from = 0; from < code->units; from++)
        if (code->targets[from] == unit)
            return true;
    return false;
}

static bool ends_loop(uint8_t opcode)
{
    switch (opcode) {
    LOOP_ENDS(CASE)
        return true;
    default:
        return false;
    }
}

bool is_line_untold(const struct bytecode *code, uint32_t unit)
{
    uint32_t end = unit;
    while (end && ends_loop(code->opcodes[end - 1]))
        end--;
    return end && end < unit && code->lines[end - 1] == code->lines[unit] && !is_jumped_to(code, unit);
}

static void find_instructions(struct bytecode *code, const uint8_t *bytes)
{
    for (uint32_t unit = 0; unit < code->units; unit++)
        code->opcodes[unit] = bytes[2 * unit];
    find_targets(code, bytes);
}

/* --- the table of exceptions, as CPython's Objects/exception_handling_notes.txt says it is written */

/* The first byte of an entry has another bit set, which is above what is kept of it. */
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

static void find_handlers(struct bytecode *code, PyCodeObject *of)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(of->co_exceptiontable);
    const uint8_t *end = at + PyBytes_GET_SIZE(of->co_exceptiontable);
    for (uint32_t unit = 0; unit < code->units; unit++)
        code->handlers[unit] = NO_JUMP;
    while (at < end) {
        uint32_t unit = exception_number(&at, end), length = exception_number(&at, end);
        uint32_t target = exception_number(&at, end), depth = exception_number(&at, end);
        for (; length && unit < code->units && target < code->units; length--, unit++) {
            code->handlers[unit] = target;
            code->depths[unit] = (depth >> 1) + (depth & 1); /* where the lowest bit is set, so is one more value */
        }
    }
}

/* --- the table of locations, as CPython's Objects/locations.md says it is written */

static unsigned location_number(const uint8_t **at, const uint8_t *end)
{
    unsigned number = 0;
    for (int shift = 0; *at < end && shift < 32; shift += 6) {
        uint8_t piece = *(*at)++;
        number |= (unsigned)(piece & 63) << shift;
        if (!(piece & 64))
            break;
    }
    return number;
}

static int location_difference(const uint8_t **at, const uint8_t *end)
{
    unsigned number = location_number(at, end);
    return number & 1 ? -(int)(number >> 1) : (int)(number >> 1);
}

struct location {
    int line, column, end; /* `line` goes on from one to the next */
    bool is_known;
};

static uint8_t location_byte(const uint8_t **at, const uint8_t *end)
{
    return *at < end ? *(*at)++ : 0;
}

static void next_location(struct location *here, unsigned kind, const uint8_t **at, const uint8_t *end)
{
    enum { SHORT_LAST = 9, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    here->is_known = kind != NONE;
    here->column = here->end = NO_COLUMN;
    if (kind <= SHORT_LAST) {
        uint8_t second = location_byte(at, end);
        here->column = (int)(kind << 3 | second >> 4);
        here->end = here->column + (second & 15);
    } else if (kind <= ONE_LINE_LAST) {
        here->line += (int)kind - (SHORT_LAST + 1);
        here->column = location_byte(at, end);
        here->end = location_byte(at, end);
    } else if (kind == NO_COLUMNS) {
        here->line += location_difference(at, end);
    } else if (kind == LONG) {
        here->line += location_difference(at, end);
        bool elsewhere = location_number(at, end) != 0;
        here->column = (int)location_number(at, end) - 1;
        int last = (int)location_number(at, end) - 1;
        here->end = elsewhere ? INT_MAX : last;
    }
}

static void find_locations(struct bytecode *code, PyCodeObject *of)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(of->co_linetable);
    const uint8_t *end = at + PyBytes_GET_SIZE(of->co_linetable);
    struct location here = {.line = of->co_firstlineno};
    uint32_t unit = 0;
    while (at < end) {
        uint8_t first = *at++;
        next_location(&here, first >> 3 & 15, &at, end);
        for (unsigned count = (first & 7) + 1; count && unit < code->units; count--, unit++) {
            code->lines[unit] = here.is_known ? here.line : -1;
            code->columns[unit] = here.column;
            code->ends[unit] = here.end;
        }
    }
    for (; unit < code->units; unit++)
        code->lines[unit] = -1;
}

void bytecode_free(struct bytecode *code)
{
    free(code->opcodes);
    free(code->targets);
    free(code->handlers);
    free(code->depths);
    free(code->lines);
    free(code->columns);
    free(code->ends);
}

bool bytecode_read(struct bytecode *code, PyCodeObject *of)
{
    memset(code, 0, sizeof *code);
    PyObject *bytes = PyCode_GetCode(of);
    if (!bytes) {
        PyErr_Clear();
        return false;
    }
    code->units = (uint32_t)(PyBytes_GET_SIZE(bytes) / 2);
    code->opcodes = malloc(code->units + 1);
    code->targets = malloc((code->units + 1) * sizeof *code->targets);
    code->handlers = malloc((code->units + 1) * sizeof *code->handlers);
    code->depths = malloc((code->units + 1) * sizeof *code->depths);
    code->lines = malloc((code->units + 1) * sizeof *code->lines);
    code->columns = malloc((code->units + 1) * sizeof *code->columns);
    code->ends = malloc((code->units + 1) * sizeof *code->ends);
    bool room = code->opcodes && code->targets && code->handlers && code->depths && code->lines && code->columns && code->ends;
    if (room) {
        find_instructions(code, (const uint8_t *)PyBytes_AS_STRING(bytes));
        find_handlers(code, of);
        find_locations(code, of);
    }
    Py_DECREF(bytes);
    return room;
}
