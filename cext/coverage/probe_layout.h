/* Where probes are put: where a place begins, or at an instruction that certainly follows (3.11). */
#pragma once

#include "coverage/covered_plan.h"

enum { STUB_UNITS = 5, FAR_UNITS = 255, MOST_UNITS = 16000, MOST_AWAY = 65000 };

/* Where compiled code is replaced. */
struct probe {
    uint32_t unit;
    uint32_t place; /* from 1: the first that is noted */
    uint8_t places, units;
    bool is_armed, is_owed; /* it was reached while recording was paused */
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

/* The probes of a code object, none of them armed; NULL if there is no room. */
struct probes *probes_laid_out(const struct bytecode *code, const struct covered_plan *plan);
