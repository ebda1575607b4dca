#include "hooks/unmarked.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/exclusive.h"
#include "core/recorder.h"
#include "core/wiped.h"

static struct unmarked {
    uint64_t count, told;
    char why[128];
} *unmarked; /* in memory that a forked child finds zeroed: its parent tells of those before it */

static void tell(void)
{
    char attributes[256];
    uint64_t count = __atomic_load_n(&unmarked->count, __ATOMIC_RELAXED);
    uint64_t told = __atomic_exchange_n(&unmarked->told, count, __ATOMIC_RELAXED);
    if (count <= told)
        return;
    snprintf(attributes, sizeof attributes, "what=\"transactions\" why=\"%s\" count=\"%" PRIu64 "\"", unmarked->why,
             count - told);
    recorder_say("missed", attributes);
}

static bool begin(const char *why)
{
    if (!exclusive_begin())
        return false;
    unmarked = unmarked ? unmarked : wiped_take(sizeof *unmarked);
    if (unmarked && !unmarked->why[0])
        snprintf(unmarked->why, sizeof unmarked->why, "%s", why);
    exclusive_end();
    return unmarked;
}

/* The log says it when there are twice as many, and at the end. */
void unmarked_add(const char *why)
{
    if (!begin(why))
        return;
    recorder.before_end[END_MARKS] = tell;
    if (__atomic_add_fetch(&unmarked->count, 1, __ATOMIC_RELAXED) > 2 * __atomic_load_n(&unmarked->told, __ATOMIC_RELAXED))
        tell();
}
