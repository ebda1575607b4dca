/* The instructions of a code object as it was compiled, whatever the interpreter, or another tool, has made of it since:
   opcodes, where jumps lead to, and the places in the source. */
#pragma once

#include <opcode.h>

#include "core/visible.h"
#include "cpython/version.h"

enum { NO_JUMP = UINT32_MAX, NO_COLUMN = -1 };

/* By instruction, in code units; caches are instructions of their own, with the opcode 0. */
struct bytecode {
    uint32_t units;
    uint8_t *opcodes;
    uint32_t *targets; /* of jumps, else NO_JUMP */
    int *lines;        /* -1: none */
    int *columns;      /* where it begins, in bytes from 0, or NO_COLUMN */
    int *ends;         /* where it ends in that line; INT_MAX where it ends in another */
};

/* False where memory is short; then too it is to be freed. An exception must not be set. */
VISIBLE bool bytecode_read(struct bytecode *code, PyCodeObject *of);
VISIBLE void bytecode_free(struct bytecode *code);

/* A jump that may not be taken. */
VISIBLE bool is_conditional(uint8_t opcode);

/* The instruction behind this one and its caches. */
static inline uint32_t next_instruction(const struct bytecode *code, uint32_t unit)
{
    for (unit++; unit < code->units && code->opcodes[unit] == CACHE;)
        unit++;
    return unit;
}
