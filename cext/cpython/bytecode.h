/* The instructions of a code object as compiled, whatever the interpreter or another tool has made of them since:
   opcodes, targets of jumps, and positions in the source. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <opcode.h>

#include "core/visible.h"
#include "cpython/version.h"

#define CASE(opcode) case opcode:

enum { NO_JUMP = UINT32_MAX, NO_COLUMN = -1 };

/* By instruction, in code units; caches are instructions of their own, with the opcode 0. */
struct bytecode {
    uint32_t units;
    uint8_t *opcodes;
    uint32_t *targets; /* of jumps, and of SEND when what it sends to has ended; else NO_JUMP */
    uint32_t *handlers; /* where an exception leads to, or NO_JUMP */
    uint32_t *depths;   /* how many values are below the exception there */
    int *lines;        /* -1: none */
    int *columns;      /* where it begins, in bytes from 0, or NO_COLUMN */
    int *ends;         /* where it ends in that line; INT_MAX where it ends in another */
};

/* False if memory is short; it must be freed then, too. No exception may be set. */
VISIBLE bool bytecode_read(struct bytecode *code, PyCodeObject *of);
VISIBLE void bytecode_free(struct bytecode *code);

/* Does what follows it in the code never follow it when it is executed? */
VISIBLE bool never_goes_on(const struct bytecode *code, uint32_t unit);

/* Can the instruction be reached from the beginning without coming through another? Where memory is short: no. */
VISIBLE bool bytecode_reaches(const struct bytecode *code, uint32_t unit, uint32_t without);

/* Whether CPython forgets the line event of this instruction. From 3.14 on it does so after a loop's end, if the
   code before that end is on the same line (`return` after a `break`), because it ignores the end between them. */
VISIBLE bool is_line_untold(const struct bytecode *code, uint32_t unit);

/* A jump that may not be taken. */
VISIBLE bool is_conditional(uint8_t opcode);

/* Is it nothing that the program wrote: a cache of the instruction before, or what marks that a jump was not taken? */
static inline bool is_behind(uint8_t opcode)
{
    switch (opcode) {
    case CACHE:
    BEHIND_JUMPS(CASE)
        return true;
    default:
        return false;
    }
}

/* The instruction that is executed after this one, unless it jumps. */
static inline uint32_t next_instruction(const struct bytecode *code, uint32_t unit)
{
    for (unit++; unit < code->units && is_behind(code->opcodes[unit]);)
        unit++;
    return unit;
}
