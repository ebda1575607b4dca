#include "core/child_usage.h"

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

struct child_usage usage_of(const struct rusage *used)
{
    uint64_t user_ns = timeval_ns(used->ru_utime), system_ns = timeval_ns(used->ru_stime);
    return (struct child_usage){
        .figures = {[USED_CPU_NS] = user_ns + system_ns,
                    [USED_SYSTEM_NS] = system_ns,
                    [USED_MINOR_FAULTS] = (uint64_t)used->ru_minflt,
                    [USED_MAJOR_FAULTS] = (uint64_t)used->ru_majflt,
                    [USED_IN_BLOCKS] = (uint64_t)used->ru_inblock,
                    [USED_OUT_BLOCKS] = (uint64_t)used->ru_oublock,
                    [USED_VOLUNTARY_SWITCHES] = (uint64_t)used->ru_nvcsw,
                    [USED_INVOLUNTARY_SWITCHES] = (uint64_t)used->ru_nivcsw},
        .memory_kib = (uint32_t)used->ru_maxrss,
    };
}

struct child_usage usage_of_all(void)
{
    struct rusage used;
    return getrusage(RUSAGE_CHILDREN, &used) ? (struct child_usage){.memory_kib = 0} : usage_of(&used);
}

static uint64_t growth(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

struct child_usage usage_since(const struct child_waits *waits, const struct child_usage *noted)
{
    struct child_usage now = usage_of_all(), used;
    for (int each = 0; each < USAGE_FIGURES; each++) {
        uint64_t others = growth(noted->figures[each], waits->noted.figures[each]);
        used.figures[each] = growth(growth(now.figures[each], waits->all.figures[each]), others);
    }
    used.memory_kib = now.memory_kib > noted->memory_kib ? now.memory_kib : 0;
    return used;
}

void usage_add(struct child_usage *sum, const struct child_usage *used)
{
    for (int each = 0; each < USAGE_FIGURES; each++)
        sum->figures[each] += used->figures[each];
    if (used->memory_kib > sum->memory_kib)
        sum->memory_kib = used->memory_kib;
}
