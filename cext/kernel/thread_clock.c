#include "kernel/thread_clock.h"

#include "core/clock.h"
#include "sampler/schedule.h"

enum {
    SWITCH_AT_MOST_NS = 200 * 1000, /* the most that a switch can cost */
    PAYMENTS = 4,                   /* each switch pays the owed time divided by this */
    FEW_SWITCHES = 16,              /* so few switches teach little */
    LEARNS_SLOWLY = 8,              /* divisor: how much a reading changes what new threads start with */
};

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static int64_t between(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* --- what the kernel counts */

static bool read_counts(const struct watched_thread *thread, struct kernel_counts *counts)
{
    static const struct schedule_files none = {.schedule = -1, .state = -1, .clock = -1};
    struct schedule found = {0};
    uint64_t from_ns = clock_ns(CLOCK_MONOTONIC);
    bool is_there = schedule_read(none, (pid_t)thread->process->pid, thread->tid, &found);
    *counts = (struct kernel_counts){from_ns, clock_ns(CLOCK_MONOTONIC), found.cpu_ns, found.run_delay_ns, found.slices};
    return is_there;
}

void watched_thread_was_there(struct watched_thread *thread)
{
    read_counts(thread, &thread->before);
    thread->is_before_estimated = true;
}

/* False if the thread has ended. Counts without slices are not used: the kernel does not count, or the thread has not run yet. */
static bool ask(struct watched_thread *thread)
{
    bool is_there = read_counts(thread, &thread->asked);
    thread->is_asked = is_there && thread->asked.slices;
    return is_there;
}

bool thread_ask_kernel_after_loss(struct watched_thread *thread)
{
    bool is_there = ask(thread);
    thread->has_lost = true;
    thread->asked_after_loss = thread->is_asked;
    return is_there;
}

void thread_ask_kernel(struct watched_thread *thread, uint64_t not_since_ns)
{
    if (thread->switches && !thread->gone_ns && !thread->is_asked && thread->asked.from_ns <= not_since_ns)
        ask(thread);
}

/* --- the clocks */

static void add_cpu(struct watched_thread *thread, uint64_t cpu_ns)
{
    thread->cpu_ns += cpu_ns;
    thread->process->cpu_ns += cpu_ns;
}

static void set_run_delay(struct watched_thread *thread, uint64_t delay_ns)
{
    thread->process->delay_ns += delay_ns - thread->record.fields.run_delay_ns;
    thread->record.fields.run_delay_ns = delay_ns;
}

/* CPU time of a thread that ran for so long. Counts less if more was counted before than the kernel has. */
static uint64_t ran(struct watched_thread *thread, uint64_t passed_ns)
{
    uint64_t paid_ns = thread->owed_ns < 0 ? least((uint64_t)-thread->owed_ns, passed_ns / 2) : 0;
    thread->owed_ns += (int64_t)paid_ns;
    return passed_ns - paid_ns;
}

/* CPU time of a switch to the thread, taken from the time before it: the kernel charges the thread for the switch, but notes it
   only at its end. */
static uint64_t switched(const struct watched *watched, struct watched_thread *thread, uint64_t away_ns)
{
    int64_t cost_ns = (int64_t)least((uint64_t)thread->switch_ns, away_ns);
    int64_t paid_ns = between(thread->owed_ns / PAYMENTS, -cost_ns, (int64_t)away_ns - cost_ns);
    uint64_t cpu_ns = (uint64_t)(cost_ns + paid_ns);
    uint64_t own_ns = least(watched->costs.switch_own_ns, cpu_ns);
    thread->owed_ns -= paid_ns;
    thread->switches++;
    thread->slices++;
    thread->own_in_call_ns += own_ns;
    thread->record.fields.own_wall_ns += own_ns;
    thread->record.fields.own_cpu_ns += own_ns;
    return cpu_ns;
}

/* --- comparing the kernel's figures with ours */

/* CPU time that the kernel had counted, less what we had. */
static int64_t missing_ns(const struct watched_thread *thread)
{
    return (int64_t)(thread->asked.cpu_ns - thread->before.cpu_ns - thread->cpu_ns);
}

/* Missing time that was not owed already is what switches cost more than assumed. */
static void learn(struct watched *watched, struct watched_thread *thread)
{
    int64_t switches = thread->switches > FEW_SWITCHES ? thread->switches : FEW_SWITCHES;
    int64_t cost_ns = thread->switch_ns + (missing_ns(thread) - thread->owed_ns) / switches;
    thread->switch_ns = between(cost_ns, 0, SWITCH_AT_MOST_NS);
    watched->costs.switch_ns += (thread->switch_ns - watched->costs.switch_ns) / LEARNS_SLOWLY;
}

static void take_over(struct watched_thread *thread)
{
    thread->owed_ns = missing_ns(thread);
    thread->switches = 0;
}

static void take_run_delay(struct watched_thread *thread)
{
    set_run_delay(thread, thread->asked.run_delay_ns - least(thread->asked.run_delay_ns, thread->before.run_delay_ns));
}

/* Take our figures so far as right. */
static void begin_counting(struct watched_thread *thread)
{
    thread->before.cpu_ns = thread->asked.cpu_ns - least(thread->asked.cpu_ns, thread->cpu_ns);
    thread->before.run_delay_ns =
        thread->asked.run_delay_ns - least(thread->asked.run_delay_ns, thread->record.fields.run_delay_ns);
    thread->is_before_estimated = false;
}

/* The thread had no processor while the kernel's figures were read, so they are exact. */
static void compare(struct watched *watched, struct watched_thread *thread)
{
    if (thread->is_before_estimated)
        begin_counting(thread);
    if (!thread->has_lost)
        learn(watched, thread);
    take_over(thread);
    take_run_delay(thread);
    thread->before.slices = thread->asked.slices - thread->slices;
    thread->has_lost = thread->is_asked = false;
}

/* The thread may have been on a processor, in its slice `asked.slices`: the figures lie between those before and after it. */
static void compare_roughly(struct watched *watched, struct watched_thread *thread, bool is_before)
{
    int64_t beyond_ns = missing_ns(thread) - thread->owed_ns;
    if (is_before ? beyond_ns < 0 : beyond_ns > 0) {
        learn(watched, thread);
        take_over(thread);
    }
    if (!is_before)
        take_run_delay(thread);
    thread->is_asked = is_before;
}

/* After notes were lost, the kernel has counted more than we. `ran_ns`: how long the thread has run since the reading. */
static void correct(struct watched_thread *thread, uint64_t ran_ns)
{
    uint64_t counted_ns = thread->asked.cpu_ns - least(thread->asked.cpu_ns, thread->before.cpu_ns) + ran_ns;
    if (counted_ns > thread->cpu_ns)
        add_cpu(thread, counted_ns - thread->cpu_ns);
    thread->owed_ns = 0;
    thread->switches++; /* so that the kernel is asked again */
    thread->is_asked = thread->asked_after_loss = false;
}

/* --- notes */

/* Use a reading before the note is accounted for. */
static void use_before(struct watched *watched, struct watched_thread *thread, uint64_t time_ns, enum note_kind kind)
{
    bool is_off = thread->state == WAITS || thread->state == READY;
    bool is_numbered = !thread->is_before_estimated && !thread->has_lost;
    uint64_t begins = thread->before.slices + thread->slices + (kind == NOTE_IN);
    if (is_off && time_ns >= thread->asked.until_ns)
        compare(watched, thread);
    else if (!is_numbered || begins > thread->asked.slices)
        thread->is_asked = false;
    else if (kind == NOTE_IN && begins == thread->asked.slices)
        compare_roughly(watched, thread, true);
}

/* Use a reading after the note was accounted for. */
static void use_after(struct watched *watched, struct watched_thread *thread, uint64_t time_ns, enum note_kind kind, bool was_on)
{
    if (thread->asked_after_loss)
        correct(thread, was_on && time_ns > thread->asked.until_ns ? time_ns - thread->asked.until_ns : 0);
    else if ((kind == NOTE_OUT || kind == NOTE_TAKEN) && thread->before.slices + thread->slices == thread->asked.slices)
        compare_roughly(watched, thread, false);
}

void thread_advance(struct watched *watched, struct watched_thread *thread, uint64_t time_ns, enum note_kind kind)
{
    uint64_t passed_ns = time_ns > thread->last_ns ? time_ns - thread->last_ns : 0;
    bool was_on = thread->state == RUNS || (thread->state == UNSURE && kind && kind != NOTE_IN);
    bool is_after_reading = time_ns > thread->asked.from_ns;
    if (thread->is_asked && is_after_reading && !thread->asked_after_loss)
        use_before(watched, thread, time_ns, kind);
    uint64_t cpu_ns = was_on ? ran(thread, passed_ns) : kind == NOTE_IN ? switched(watched, thread, passed_ns) : 0;
    thread->last_ns += passed_ns;
    add_cpu(thread, cpu_ns);
    if (thread->state == READY)
        set_run_delay(thread, thread->record.fields.run_delay_ns + passed_ns - cpu_ns);
    if (thread->is_asked && is_after_reading)
        use_after(watched, thread, time_ns, kind, was_on);
    thread->record.fields.seen_ns = thread->last_ns;
    thread->record.fields.end_cpu_ns = thread->cpu_ns;
    thread->process->end_ns = thread->last_ns > thread->process->end_ns ? thread->last_ns : thread->process->end_ns;
}

void thread_pay_all(struct watched_thread *thread)
{
    uint64_t lived_ns = thread->last_ns - thread->record.fields.start_ns;
    if (thread->owed_ns > 0)
        add_cpu(thread, least((uint64_t)thread->owed_ns, lived_ns - least(thread->cpu_ns, lived_ns)));
    thread->owed_ns = 0;
    thread->record.fields.end_cpu_ns = thread->cpu_ns;
}
