#define _GNU_SOURCE
#include "core/transaction_sampling.h"

#include <string.h>

#include "core/trace_identities.h"

struct chosen chosen;

/* Descendants choose by another seed each, or those that begin alike would choose alike. */
static uint64_t seed_of(uint64_t seed, const char *lineage)
{
    for (const char *letter = lineage; *letter; letter++)
        seed = mixed(seed + (unsigned char)*letter);
    return seed;
}

static uint64_t first_seed; /* before the lineage is put in */

void chosen_begin(uint64_t seed, uint32_t one_in, const char *lineage, enum fate outside)
{
    memset(&chosen, 0, sizeof chosen);
    first_seed = seed;
    chosen.one_in = one_in;
    chosen.outside = one_in ? outside : FATE_none;
    chosen.seed = seed_of(seed, lineage);
}

void chosen_forked(const char *lineage, enum fate outside)
{
    chosen.outside = chosen.one_in ? outside : FATE_none;
    chosen.seed = seed_of(first_seed, lineage);
    chosen.begun = 0;
}

void chosen_know(uint32_t number, uint32_t further)
{
    if (!chosen.one_in || further >= IS_PASSED_OVER || number + further >= COUNTED_NUMBERS)
        return;
    chosen.further[number] = (uint8_t)further;
    chosen.further[number + further] = IS_PASSED_OVER;
}

/* Each by itself, so that those kept are a simple random sample of all. */
enum fate chosen_decide(void)
{
    uint64_t number = mixed(chosen.seed + __atomic_add_fetch(&chosen.begun, 1, __ATOMIC_RELAXED) * 0x9e3779b97f4a7c15u);
    return number < UINT64_MAX / chosen.one_in ? FATE_kept : FATE_passed_over;
}
