#define _GNU_SOURCE
#include "core/usage.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "core/exclusive.h"
#include "core/log.h"
#include "core/recorder.h"
#include "core/series.h"
#include "core/session.h"

enum {
    LOOK_AFTER_COUNTED = 256,
    SAMPLES_AT_ONE_RATE = 1 << 14, /* 4.5 hours of one a second; then half as often: a week has 86,000 in the place of 605,000 */
};
static const uint64_t GOVERN_EVERY_NS = 500000000, GOVERN_AGAIN_NS = 10000000;

static struct {
    struct series overview;
    uint64_t chosen_ns;           /* between samples, as the user chose */
    uint64_t every_ns, sample_ns; /* between them by now, and when the next is due */
    uint32_t samples;             /* since it was chosen or doubled */
    uint64_t govern_ns;           /* when the governor looks next */
    uint32_t counted; /* untimed calls since it began, so that it is checked even if nothing else is called */
} usage;

static uint64_t later(uint64_t now_ns, uint64_t by_ns)
{
    return by_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + by_ns;
}

static uint64_t due_ns(const uint64_t *time_ns)
{
    return __atomic_load_n(time_ns, __ATOMIC_RELAXED);
}

static void set_due(uint64_t *time_ns, uint64_t to_ns)
{
    __atomic_store_n(time_ns, to_ns, __ATOMIC_RELAXED);
}

/* --- samples */

void usage_choose(uint64_t every_ns)
{
    usage.chosen_ns = every_ns;
}

int usage_create(const char *directory)
{
    usage.every_ns = usage.chosen_ns;
    usage.samples = 0;
    return series_create(&usage.overview, directory, &data_types[DATA_OVERVIEW], 1);
}

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

void usage_sample(enum overview_kind kind, int status)
{
    struct rusage used;
    struct overview *sample = series_extend(&usage.overview, sizeof *sample);
    if (!sample || getrusage(RUSAGE_SELF, &used))
        return;
    *sample = (struct overview){
        .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        .user_ns = timeval_ns(used.ru_utime),
        .system_ns = timeval_ns(used.ru_stime),
        .max_rss_bytes = (uint64_t)used.ru_maxrss * 1024,
        .minor_faults = (uint64_t)used.ru_minflt,
        .major_faults = (uint64_t)used.ru_majflt,
        .in_blocks = (uint64_t)used.ru_inblock,
        .out_blocks = (uint64_t)used.ru_oublock,
        .voluntary_switches = (uint64_t)used.ru_nvcsw,
        .involuntary_switches = (uint64_t)used.ru_nivcsw,
        .kind = kind,
        .status = status,
        .run_delay_ns = threads_run_delay_ns(), /* that of the process is its first thread's alone */
        .every_ns = usage.every_ns == UINT64_MAX ? 0 : usage.every_ns,
    };
    __atomic_store_n(&sample->time_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
}

void usage_begin(void)
{
    set_due(&usage.sample_ns, later(clock_ns(CLOCK_MONOTONIC), usage.every_ns));
    usage_sample(OVERVIEW_BEGIN, 0);
}

void usage_want_sample(struct thread *thread)
{
    set_due(&usage.sample_ns, 0);
    thread->look_ns = 0; /* with the call that begins now */
}

/* A service that runs for weeks has a history that can be read and kept: the longer it is, the farther apart are new samples. */
static void space_samples(void)
{
    if (++usage.samples < SAMPLES_AT_ONE_RATE)
        return;
    usage.samples = 0;
    usage.every_ns = later(usage.every_ns, usage.every_ns);
}

static void sample_if_due(uint64_t now_ns)
{
    if (now_ns < due_ns(&usage.sample_ns) || !exclusive_begin())
        return;
    if (now_ns >= due_ns(&usage.sample_ns) && !session_stopped()) {
        space_samples();
        set_due(&usage.sample_ns, later(now_ns, usage.every_ns));
        usage_sample(OVERVIEW_SAMPLE, 0);
        session_stop_where_disk_is_low(); /* others may have filled it */
    }
    exclusive_end();
}

/* --- the governor */

static void tell_lowered(uint32_t number, enum level level, double share)
{
    static const char *const words[] = {LEVELS(WORD_OF_LEVEL)};
    char attributes[96];
    snprintf(attributes, sizeof attributes, "intrinsic=\"%u\" level=\"%s\" share=\"%.2f%%\"", number, words[level],
             share * 100);
    log_event("level", attributes);
}

static void govern(uint64_t now_ns)
{
    if (!exclusive_begin())
        return;
    set_due(&usage.govern_ns, later(now_ns, GOVERN_EVERY_NS));
    governor_look(clock_ns(CLOCK_PROCESS_CPUTIME_ID), tell_lowered);
    exclusive_end();
}

static bool is_within_transaction(const struct thread *thread)
{
    const struct thread_record *record = thread->record;
    for (uint32_t index = 0; index < record->fields.depth && index < OPEN_CALLS; index++)
        if (record->open[index].call && is_transaction(record->open[index].intrinsic))
            return true;
    return false;
}

static void govern_if_due(struct thread *thread, uint64_t now_ns)
{
    if (!recorder.governed || now_ns < due_ns(&usage.govern_ns) || session_stopped())
        return;
    if (is_within_transaction(thread))
        thread->look_ns = later(now_ns, GOVERN_AGAIN_NS);
    else
        govern(now_ns);
}

void recorder_govern(const struct governor_settings *settings)
{
    governor_begin(settings);
    recorder.governed = 1;
    if (current_thread)
        current_thread->look_ns = 0;
}

/* --- looking */

uint64_t usage_next_look_ns(uint64_t now_ns)
{
    uint64_t every_ns = recorder.governed && GOVERN_EVERY_NS < usage.chosen_ns ? GOVERN_EVERY_NS : usage.chosen_ns;
    return later(now_ns, every_ns);
}

void thread_look(struct thread *thread)
{
    int saved = errno;
    struct reading begin = own_begin(thread), now = clock_read(&thread->clock);
    thread->look_ns = usage_next_look_ns(now.wall_ns);
    thread_note_clock(thread, now);
    thread_note_run_delay(thread);
    sample_if_due(now.wall_ns);
    govern_if_due(thread, now.wall_ns);
    own_end(thread, begin);
    errno = saved;
}

void recorder_sample(const char *attributes)
{
    int saved = errno;
    struct thread *thread = recorder_directory() ? recording() : NULL;
    if (thread) {
        usage_want_sample(thread);
        thread_look(thread);
        log_event("sample", attributes);
    }
    errno = saved;
}

static bool counts_enough(void)
{
    uint32_t counted = __atomic_load_n(&usage.counted, __ATOMIC_RELAXED) + 1; /* one that is lost matters not */
    __atomic_store_n(&usage.counted, counted, __ATOMIC_RELAXED);
    return counted % LOOK_AFTER_COUNTED == 0;
}

void recorder_count_only(struct thread *thread, uint32_t intrinsic)
{
    int failed = intrinsic < COUNTED_NUMBERS ? level_count(session.directory, intrinsic) : ERANGE;
    if (UNLIKELY(failed)) {
        thread->record->fields.made++;
        thread->record->fields.dropped++;
    }
}

void recorder_count(struct thread *thread, uint32_t intrinsic)
{
    recorder_count_only(thread, intrinsic);
    if (recorder.governed && counts_enough() && clock_ns(CLOCK_MONOTONIC) >= thread->look_ns)
        thread_look(thread);
}
