#include "collectors/collectors.h"

#include "core/fields.h"
#include "core/thread_notes.h"
#include "cpython/raised.h"

static const uint64_t SLOW_CALL_NS = 250000000, SLOW_MEAN_NS = 50000;

struct collectors collectors;

void note_wrong(const struct collector *collector, const char *why, bool is_off)
{
    struct raised raised = raised_keep();
    collectors.note(collector, why, is_off);
    raised_restore(raised);
}

void collector_switch_off(struct collector *collector, const char *why)
{
    uint32_t bit = 1u << collector->place;
    if (!(collectors.on & bit))
        return;
    collectors.on &= ~bit;
    collectors.in_python &= ~bit;
    note_wrong(collector, why, true);
}

/* --- its cost */

void look_at_cost(struct collector *collector, uint64_t cpu_ns)
{
    collector->cpu_ns += cpu_ns;
    if (cpu_ns > SLOW_CALL_NS)
        collector_switch_off(collector, "a call took more than 250 ms of CPU time");
    if (++collector->timed % COLLECTOR_LOOK)
        return;
    collectors.sampled = COLLECTOR_KNOWN;
    if (collector->cpu_ns / COLLECTOR_LOOK > SLOW_MEAN_NS)
        collector_switch_off(collector, "256 calls took more than 50 us of CPU time each");
    collector->cpu_ns = 0;
}

void look_at_memory(struct collector *collector, int64_t kept_blocks)
{
    collector->kept_in_a_row = kept_blocks > 0 ? collector->kept_in_a_row + 1 : 0;
    if (kept_blocks > BLOCKS_AT_MOST)
        collector_switch_off(collector, "a call kept more than 1,000,000 blocks of memory");
    else if (collector->kept_in_a_row >= MEMORY_LOOKS)
        collector_switch_off(collector, "each call keeps more memory");
}

void charge_collectors(struct thread *thread, uint32_t index, struct reading begin, struct reading end, uint64_t times)
{
    uint64_t wall_ns = times * (end.wall_ns - begin.wall_ns), cpu_ns = times * (end.cpu_ns - begin.cpu_ns);
    thread_charge_apart(thread, times == 1 ? index : 0, wall_ns, cpu_ns);
}
