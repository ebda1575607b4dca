/* How fast the processor is. The costs of events were calibrated at the beginning; other programs, or its clock, may make it slower or
   faster later. */
#include "lines/line_parts.h"

enum { WORDS = 32, STEPS = 768, LOOK_EVERY_NS = 10 * 1000 * 1000, TIMES = 4, CALIBRATED_TIMES = 8, INTERRUPTED = 4 };

/* Like an interpreter, it reads both operations and operands from memory. */
__attribute__((noinline)) static void compute(uint32_t seed)
{
    static const uint8_t program[] = {0, 3, 1, 0, 2, 3, 0, 1, 1, 3, 0, 2, 0, 1, 3, 2};
    volatile uint32_t words[WORDS] = {seed};
    uint32_t value = seed;
    for (uint32_t step = 0; step < STEPS; step++) {
        volatile uint32_t *word = &words[(step + value % 2) % WORDS];
        switch (program[step % sizeof program]) {
        case 0: value += *word; break;
        case 1: *word = value ^ step; break;
        case 2: value = *word > step ? value - step : value + 3; break;
        default: *word += value >> 3; break;
        }
    }
    words[0] = value;
}

/* The least of several times: at first, the caches may be cold. */
static uint64_t least_ticks(unsigned times)
{
    uint64_t least = UINT64_MAX;
    for (unsigned count = 0; count < times; count++) {
        uint64_t begin = ticks_now();
        compute(count);
        uint64_t ticks = ticks_now() - begin;
        least = ticks < least ? ticks : least;
    }
    return least;
}

void speed_calibrate(void)
{
    uint64_t ticks = least_ticks(CALIBRATED_TIMES);
    lines.speed_ticks = lines.speed_ticks && lines.speed_ticks < ticks ? lines.speed_ticks : ticks;
}

void speed_look(struct line_trace *record, uint64_t now_ns)
{
    if (now_ns - lines.speed_ns < LOOK_EVERY_NS)
        return;
    lines.speed_ns = now_ns;
    uint64_t ticks = least_ticks(TIMES);
    if (ticks > INTERRUPTED * lines.speed_ticks) /* the thread had lost its processor */
        return;
    record->speeds_ticks += ticks;
    record->speeds++;
}
