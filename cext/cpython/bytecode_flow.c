/* Which instructions follow which: the next one, where a jump leads to, and where an exception does. */
#include "cpython/bytecode.h"

#include <stdlib.h>

#define CASE(opcode) case opcode:

bool never_goes_on(const struct bytecode *code, uint32_t unit)
{
    switch (code->opcodes[unit]) {
    case JUMP_BACKWARD_NO_INTERRUPT:
        return code->targets[unit] != NO_JUMP;
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case RAISE_VARARGS:
    case RERAISE:
    RETURNS(CASE)
        return true;
    default:
        return false;
    }
}

struct walk {
    const struct bytecode *code;
    uint32_t waiting; /* of those seen, which are still to be followed */
    uint32_t *unit;
    bool *seen;
};

static void see(struct walk *walk, uint32_t unit)
{
    if (unit >= walk->code->units || walk->seen[unit])
        return;
    walk->seen[unit] = true;
    walk->unit[walk->waiting++] = unit;
}

static void follow(struct walk *walk, uint32_t unit)
{
    if (!never_goes_on(walk->code, unit))
        see(walk, next_instruction(walk->code, unit));
    see(walk, walk->code->targets[unit]);
    see(walk, walk->code->handlers[unit]);
}

bool bytecode_reaches(const struct bytecode *code, uint32_t unit, uint32_t without)
{
    struct walk walk = {.code = code, .unit = malloc(code->units * sizeof *walk.unit), .seen = calloc(code->units, 1)};
    bool room = walk.unit && walk.seen;
    if (room) {
        walk.seen[without] = true;
        see(&walk, 0);
        while (walk.waiting && !walk.seen[unit])
            follow(&walk, walk.unit[--walk.waiting]);
    }
    bool reached = room && unit != without && walk.seen[unit];
    free(walk.unit);
    free(walk.seen);
    return reached;
}
