/* The claim of a data collector about a call: whether it is valid, and the stack under which the call is recorded.
   An identified call has a site like any other, whose file is the module, whose function the section, and whose line
   the statement; the call's real stack is its caller. So every report shows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"
#include "interpose_collector.h"

struct claim {
    const char *module, *section;
    uint64_t line;
    uint32_t collector; /* its name, a number in strings */
    bool is_forced;
};

/* The stack of a call from `stack`, with this module, section and line. */
uint32_t claim_stack(uint32_t stack, struct claim claim);

/* Whether the call's real address, whatever the area says, is in the claimed module. */
static inline bool is_within(const struct interpose_area *area, uint64_t address)
{
    return address >= area->base && address - area->base < area->size;
}

static inline bool is_forced(const struct interpose_area *area)
{
    return area->base == 0 && area->size == INTERPOSE_FORCED_SIZE;
}

const char *wrong_with_forced(const struct interpose_area *area, uint32_t collector);

/* What is wrong with a collector's claim of a module, in words; NULL if it is valid. */
static inline const char *wrong_with_claim(const struct interpose_area *area, uint64_t address, uint32_t collector)
{
    if (!area->module || !*area->module)
        return NULL;
    if (UNLIKELY(is_forced(area) || *area->module == '.'))
        return wrong_with_forced(area, collector);
    return LIKELY(is_within(area, address)) ? NULL : "named a module that does not contain the place of the call";
}
