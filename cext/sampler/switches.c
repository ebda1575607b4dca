#include "sampler/switches.h"

static const uint64_t CPU_NS = 50000000, FREQUENT = 200, RARE = 100; /* how many in so much CPU time */

bool switches_count(struct switches *switches, const struct schedule *now)
{
    bool is_new = !switches->since.slices || now->slices < switches->since.slices; /* another thread may have its number */
    uint64_t count = now->slices - switches->since.slices, cpu_ns = now->cpu_ns - switches->since.cpu_ns;
    bool is_enough = !is_new && (count >= FREQUENT || cpu_ns >= CPU_NS);
    if (is_enough)
        switches->are_frequent = count * CPU_NS >= (switches->are_frequent ? RARE : FREQUENT) * cpu_ns;
    if (is_enough || is_new)
        switches->since = *now;
    return is_enough;
}
