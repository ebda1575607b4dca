#include "sampler/switches.h"

enum { CPU_NS = 50000000, FREQUENT = 200, RARE = FREQUENT / 2 }; /* how many in so much CPU time */

bool switches_count(struct switches *switches, const struct schedule *now)
{
    bool were_frequent = switches->are_frequent;
    uint64_t count = now->slices - switches->since.slices;
    if (count < FREQUENT && now->cpu_ns - switches->since.cpu_ns < CPU_NS)
        return false;
    switches->are_frequent = count >= (were_frequent ? RARE : FREQUENT);
    switches->since = *now;
    return switches->are_frequent != were_frequent;
}
