#define _GNU_SOURCE
#include "sampler/on_processor.h"

#include <sched.h>
#include <stdlib.h>

#include "sampler/progress.h"

enum {
    WAITS_AHEAD = 5, /* samples that may count as waiting before the kernel has counted the wait */
    KNOWN_AFTER = 4, /* samples */
    LOOKED_AT_NS = 40000, /* Python code mostly changes its frame within a microsecond */
    GLANCED_AT_NS = 5000,
    SHORT_WAIT_NS = 200000, /* such as for the sampler's own round */
    TICK_NS = 4200000, /* most kernels count a thread's CPU time every 4 ms or more often, while it runs */
};

/* This share of a thread's samples may count as waiting without being due, because we do not always see that code goes on. */
static const double TOO_MANY = 0.1;

static uint64_t rise(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* The kernel reports how long the thread had a processor, and how long it waited for one, since it was asked last. The same share of the
   samples since then is due to be counted as waiting. If it has counted neither yet, they are divided together with the next sample. */
static void count_waits_due(struct sampled_thread *thread, const struct schedule *now, uint64_t now_ns)
{
    double on_ns = (double)rise(thread->counted.cpu_ns, now->cpu_ns);
    double off_ns = (double)rise(thread->counted.run_delay_ns, now->run_delay_ns);
    if (on_ns + off_ns > 0) {
        thread->waits_due += thread->uncounted * off_ns / (on_ns + off_ns);
        thread->uncounted = 0;
        thread->counted = *now;
        thread->counted_ns = now_ns;
    }
}

/* What is known of threads that were in doubt in this stack. Another with the same place in the table is forgotten. */
static struct unmoved *unmoved_of(struct doubt *doubt, uint32_t stack)
{
    struct unmoved *known = &doubt->unmoved[stack % UNMOVED_AT_MOST];
    if (known->stack != stack)
        *known = (struct unmoved){.stack = stack};
    return known;
}

/* Whether its code goes on, on a processor that it had before we looked. Where it is known that mostly nothing changes, we only glance. */
static bool is_seen_to_go_on(const struct sampled_process *process, struct sampled_thread *thread, uint32_t stack)
{
    struct schedule after;
    bool is_known = abs(unmoved_of(&thread->doubt, stack)->ran) >= KNOWN_AFTER;
    return progress_is_seen(process, thread, is_known ? GLANCED_AT_NS : LOOKED_AT_NS) &&
           schedule_read(thread->files, process->pid, thread->tid, &after) && after.slices == thread->schedule.slices;
}

/* One whose code goes on has a processor. One that waits for ours has none, and perhaps lost it just now, to us. Any other has none, or is
   in C code that works in registers. */
bool on_processor(const struct sampled_process *process, struct sampled_thread *thread, const struct sample *sample, bool ran_just_now,
                  bool has_frames, int processor)
{
    count_waits_due(thread, &thread->schedule, sample->time_ns);
    thread->uncounted++;
    if (thread->waits_due < 0)
        thread->waits_due += TOO_MANY;
    bool has_ours = processor >= 0 && processor == sched_getcpu();
    return has_ours ? ran_just_now : has_frames && is_seen_to_go_on(process, thread, sample->stack);
}

/* Whether the thread surely had a processor. It had one if it has used CPU time without being given a processor again since then, or if it
   was given one again after a wait that was only for us. */
static bool surely_ran(const struct schedule *then, const struct schedule *now)
{
    if (now->slices == then->slices)
        return now->cpu_ns > then->cpu_ns;
    return rise(then->run_delay_ns, now->run_delay_ns) < SHORT_WAIT_NS;
}

/* Unless the figures prove that it ran, it most likely waited; certainly so if the kernel has counted nothing for a tick. The exception is
   code known to work in registers: it ran if far more of its samples already count as waiting than are due. */
bool on_processor_settle(struct sampled_thread *thread, const struct schedule *now, uint64_t now_ns)
{
    const struct schedule *then = &thread->schedule;
    struct unmoved *unmoved = unmoved_of(&thread->doubt, thread->doubt.taken.sample.stack);
    bool is_same_turn = now->slices == then->slices, ran = surely_ran(then, now);
    count_waits_due(thread, now, now_ns);
    bool waits = is_same_turn && !ran && now_ns > thread->counted_ns + TICK_NS;
    unmoved->ran += ran && is_same_turn ? 1 : waits ? -1 : 0;
    ran = ran || (!waits && unmoved->ran >= KNOWN_AFTER && thread->waits_due <= -WAITS_AHEAD);
    thread->waits_due -= ran ? 0 : 1;
    return ran;
}
