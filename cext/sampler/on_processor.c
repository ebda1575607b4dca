#define _GNU_SOURCE
#include "sampler/on_processor.h"

#include <sched.h>

#include "sampler/progress.h"

enum {
    WAITS_AHEAD = 5, /* samples that may count as waiting before the kernel has counted the wait */
    SHORT_WAIT_NS = 200000, /* such as for the sampler's own round */
};

/* Of the samples of a thread, this share may count as waiting without being due: code that goes on is not always seen to. */
static const double TOO_MANY = 0.1;

static uint64_t rise(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* The kernel reports how long the thread had a processor, and how long it waited for one, since the last sample. The same share of its
   samples is due to be counted as waiting. If the kernel has counted neither yet, the sample is divided together with the next one. */
static void count_waits_due(struct sampled_thread *thread, const struct sample *sample)
{
    double on_ns = (double)rise(thread->last.cpu_ns, sample->cpu_ns);
    double off_ns = (double)rise(thread->last.run_delay_ns, sample->run_delay_ns);
    thread->uncounted++;
    if (on_ns + off_ns > 0) {
        thread->waits_due += thread->uncounted * off_ns / (on_ns + off_ns);
        thread->uncounted = 0;
    }
    if (thread->waits_due < 0)
        thread->waits_due += TOO_MANY;
}

/* Whether its code goes on, on a processor that it had before we looked. */
static bool is_seen_to_go_on(const struct sampled_process *process, const struct sampled_thread *thread)
{
    struct schedule after;
    return progress_is_seen(process, thread) && schedule_read(thread->files, process->pid, thread->tid, &after) &&
           after.slices == thread->schedule.slices;
}

/* Whether the thread may have slept since its last sample. Then it is not known how long it has waited for a processor: if it waits now,
   that is not counted yet. A turn that follows a sleep mostly begins after a short wait. */
static bool may_have_slept(const struct sampled_thread *thread, const struct sample *sample)
{
    uint64_t turns = rise(thread->turns_before, thread->schedule.slices);
    uint64_t delay_ns = rise(thread->last.run_delay_ns, sample->run_delay_ns);
    return !thread->last.time_ns || thread->has_waited || delay_ns < turns * SHORT_WAIT_NS;
}

/* One whose code goes on has a processor. One that waits for ours has none, so the kernel's figures of it are exact: if it lost the
   processor just now, it lost it to us. Any other has none, or is in C code that works in registers. */
enum on_processor on_processor(const struct sampled_process *process, struct sampled_thread *thread, const struct sample *sample,
                               bool ran_just_now, bool has_frames, int processor)
{
    count_waits_due(thread, sample);
    bool has_ours = processor >= 0 && processor == sched_getcpu();
    bool is_on = (has_frames && is_seen_to_go_on(process, thread)) || (has_ours && ran_just_now);
    thread->doubt.may_have_slept = may_have_slept(thread, sample);
    if (!is_on && (!has_ours || thread->doubt.may_have_slept))
        return IN_DOUBT;
    thread->waits_due -= is_on ? 0 : 1;
    return is_on ? ON_PROCESSOR : OFF_PROCESSOR;
}

/* If it has got no processor since, it had one if it has used it. If it has got one, the wait before is counted: if that is shorter
   than it would have waited at the sample, or if it only waited for us, it did not wait then. Otherwise it most likely waited, unless by
   far more of its samples count as waiting already than are due. */
bool on_processor_settle(struct sampled_thread *thread, const struct schedule *now)
{
    const struct schedule *then = &thread->schedule;
    uint64_t waited_ns = rise(thread->doubt.off_since_ns, thread->doubt.taken.sample.time_ns);
    if (thread->doubt.may_have_slept)
        waited_ns = SHORT_WAIT_NS;
    bool is_same_turn = now->slices == then->slices;
    bool had_one = is_same_turn ? now->cpu_ns > then->cpu_ns : rise(then->run_delay_ns, now->run_delay_ns) < waited_ns;
    had_one = had_one || thread->waits_due <= -WAITS_AHEAD;
    thread->waits_due -= had_one ? 0 : 1;
    return had_one;
}
