#include "core/levels.h"

#include <errno.h>
#include <string.h>

#include "core/exclusive.h"
#include "core/series.h"

/* A share that is too high is acted on when it was so at two looks, each of some CPU time. */
enum { LOOKS_OVER = 2, LEAST_LOOK_NS = 10 * 1000 * 1000 };

static struct {
    struct series series;
    struct count *counts; /* NULL until the first is counted */
} counting;

static struct {
    struct governor_settings settings;
    uint32_t timed[COUNTED_NUMBERS]; /* since the last look, as the next */
    uint32_t counted[COUNTED_NUMBERS];
    uint8_t levels[COUNTED_NUMBERS];
    uint64_t cpu_ns; /* at the last look */
    unsigned over;   /* looks in a row at which it was too much */
} governor;

static void forget_all_noted(void)
{
    memset(governor.timed, 0, sizeof governor.timed);
    memset(governor.counted, 0, sizeof governor.counted);
    governor.cpu_ns = governor.over = 0;
}

void levels_begin(void)
{
    counting.counts = NULL;
    if (governor.settings.lower) /* else nobody looks at it: leave the memory of a forked child untouched */
        forget_all_noted();
}

static int begin_counts(const char *directory)
{
    int failed = series_create(&counting.series, directory, &data_types[DATA_COUNTS], 1);
    if (failed)
        return failed;
    counting.series.keep_windows = true;
    struct count *counts = series_extend(&counting.series, (COUNTED_NUMBERS - 1) * sizeof *counts);
    if (!counts)
        return errno;
    __atomic_store_n(&counting.counts, counts - 1, __ATOMIC_RELEASE); /* the first number is 1 */
    return 0;
}

static int begin_counts_alone(const char *directory)
{
    if (!exclusive_begin())
        return EBUSY;
    int failed = counting.counts ? 0 : begin_counts(directory);
    exclusive_end();
    return failed;
}

/* One that is lost among threads matters not: the governor estimates. */
static void note(uint32_t *count)
{
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

static uint64_t noted(const uint32_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static void forget(uint32_t *count)
{
    __atomic_store_n(count, 0, __ATOMIC_RELAXED);
}

int level_count(const char *directory, uint32_t number)
{
    struct count *counts = __atomic_load_n(&counting.counts, __ATOMIC_ACQUIRE);
    int failed = counts ? 0 : begin_counts_alone(directory);
    if (failed)
        return failed;
    __atomic_add_fetch(&counting.counts[number].counted, 1, __ATOMIC_RELAXED);
    note(&governor.counted[number]);
    return 0;
}

static uint8_t transactions[COUNTED_NUMBERS];

void transactions_forget(void)
{
    memset(transactions, 0, sizeof transactions);
}

void transaction_add(uint32_t number)
{
    if (number < COUNTED_NUMBERS)
        transactions[number] = 1;
}

bool is_transaction(uint32_t number)
{
    return number < COUNTED_NUMBERS && transactions[number];
}

static uint32_t told_number; /* of what the program tells of */

void told_by_program(uint32_t number)
{
    told_number = number;
}

bool is_told_by_program(uint32_t number)
{
    return number == told_number || is_transaction(number);
}

/* --- the governor */

void governor_begin(const struct governor_settings *settings)
{
    governor.settings = *settings;
    forget_all_noted();
    memset(governor.levels, LEVEL_time, sizeof governor.levels);
}

void governor_note(uint32_t number)
{
    if (number < COUNTED_NUMBERS)
        note(&governor.timed[number]);
}

static uint64_t cost_ns(uint32_t number)
{
    return noted(&governor.timed[number]) * governor.settings.timed_ns +
           noted(&governor.counted[number]) * governor.settings.counted_ns;
}

static uint64_t all_costs_ns(void)
{
    uint64_t sum_ns = 0;
    for (uint32_t number = 1; number < COUNTED_NUMBERS; number++)
        sum_ns += cost_ns(number);
    return sum_ns;
}

/* The number with the most expensive calls among those that can still be throttled; 0 if there is none. */
static uint32_t dearest(void)
{
    uint32_t found = 0;
    uint64_t most_ns = 0;
    for (uint32_t number = 1; number < COUNTED_NUMBERS; number++)
        if (governor.levels[number] < LEVEL_off && cost_ns(number) > most_ns) {
            found = number;
            most_ns = cost_ns(number);
        }
    return found;
}

static void forget_noted(uint32_t number)
{
    forget(&governor.timed[number]);
    forget(&governor.counted[number]);
}

/* One level at a time, because the cost of the next is measured first. Returns the probable saving. */
static uint64_t lower(uint32_t number)
{
    uint64_t before_ns = cost_ns(number), calls = noted(&governor.timed[number]) + noted(&governor.counted[number]);
    enum level level = governor.levels[number] + 1;
    bool done = governor.settings.lower(number, level);
    uint64_t after_ns = level == LEVEL_count ? calls * governor.settings.counted_ns : 0;
    governor.levels[number] = done ? level : LEVEL_off; /* or it is not tried again */
    forget_noted(number);
    return done && after_ns < before_ns ? before_ns - after_ns : 0;
}

void governor_look(uint64_t cpu_ns, void (*tell)(uint32_t number, enum level level, double share))
{
    uint64_t used_ns = cpu_ns - governor.cpu_ns, own_ns = all_costs_ns();
    uint64_t allowed_ns = (uint64_t)((double)used_ns * (double)governor.settings.budget_ppm / 1e6);
    if (used_ns < LEAST_LOOK_NS)
        return;
    governor.over = own_ns > allowed_ns ? governor.over + 1 : 0;
    if (governor.over == LOOKS_OVER) {
        governor.over = 0;
        for (uint32_t number; own_ns > allowed_ns && (number = dearest());) {
            double share = (double)cost_ns(number) / (double)used_ns;
            uint64_t saved_ns = lower(number);
            own_ns -= saved_ns;
            if (saved_ns)
                tell(number, governor.levels[number], share);
        }
    }
    for (uint32_t number = 0; number < COUNTED_NUMBERS; number++)
        forget_noted(number);
    governor.cpu_ns = cpu_ns;
}
