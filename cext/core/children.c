#include "core/children.h"

#include <errno.h>
#include <string.h>

#include "core/child_usage.h"
#include "core/exclusive.h"
#include "core/threads.h"

/* Of more than ALIVE children at once the older half is given up: their ends stay unknown. */
enum { ALIVE = 4096, EARLY = 64, LOOKED_BACK = 256 };

struct end {
    uint64_t end_ns;
    uint32_t pid;
    int32_t status;
    uint32_t source; /* enum usage_source */
    struct child_usage used;
};

static struct {
    struct series series;
    bool begun;
    struct child *alive[ALIVE]; /* children that nobody has waited for, in the order of their beginnings */
    unsigned count;
    struct end early[EARLY]; /* waited for by another thread before they were recorded, or not started by us */
    unsigned next_early;
    struct child_usage noted; /* the sum over all with a recorded end; of memory the largest */
} children;

void children_forget(void)
{
    children.begun = false;
    children.count = 0;
    children.noted = (struct child_usage){.memory_kib = 0};
    if (children.next_early) /* else there is none: leave the memory of a forked child untouched */
        memset(children.early, 0, sizeof children.early);
    children.next_early = 0;
}

static bool begin(const char *directory)
{
    int failed = children.begun ? 0 : series_create(&children.series, directory, &data_types[DATA_CHILDREN], 1);
    children.begun = !failed;
    children.series.keep_windows = true; /* ends are written into records of long ago */
    errno = failed ? failed : errno;
    return !failed;
}

/* --- what they used */

void children_waited_for(void)
{
    struct thread *thread = current_thread;
    if (!thread)
        return;
    thread->waits.begun = thread->waits.pid = 0;
    if (!exclusive_begin())
        return;
    thread->waits.all = usage_of_all();
    thread->waits.noted = children.noted;
    thread->waits.begun = 1;
    exclusive_end();
}

void children_reaped(uint32_t pid, const struct rusage *used)
{
    struct thread *thread = current_thread;
    if (thread) {
        thread->waits.reaped = usage_of(used);
        thread->waits.pid = pid;
    }
}

static struct end end_now(uint32_t pid, int32_t status, uint64_t end_ns)
{
    struct end end = {.end_ns = end_ns, .pid = pid, .status = status};
    struct child_waits *waits = current_thread ? &current_thread->waits : NULL;
    if (waits && pid && waits->pid == pid) {
        end.source = USAGE_OF_CHILD;
        end.used = waits->reaped;
    } else if (waits && waits->begun) {
        end.source = USAGE_DIFFERENCE;
        end.used = usage_since(waits, &children.noted);
    }
    if (waits)
        waits->begun = waits->pid = 0;
    usage_add(&children.noted, &end.used);
    return end;
}

/* --- their ends */

static void note(struct child *child, const struct end *end)
{
    child->status = end->status;
    child->usage = end->source;
    child->memory_kib = end->used.memory_kib;
    child->cpu_ns = end->used.figures[USED_CPU_NS];
    child->system_ns = end->used.figures[USED_SYSTEM_NS];
    child->minor_faults = end->used.figures[USED_MINOR_FAULTS];
    child->major_faults = end->used.figures[USED_MAJOR_FAULTS];
    child->in_blocks = end->used.figures[USED_IN_BLOCKS];
    child->out_blocks = end->used.figures[USED_OUT_BLOCKS];
    child->voluntary_switches = end->used.figures[USED_VOLUNTARY_SWITCHES];
    child->involuntary_switches = end->used.figures[USED_INVOLUNTARY_SWITCHES];
    __atomic_store_n(&child->end_ns, end->end_ns, __ATOMIC_RELEASE);
}

void child_ended(struct child *child, int32_t status, uint64_t end_ns)
{
    if (exclusive_begin()) {
        struct end end = end_now(child->pid, status, end_ns);
        note(child, &end);
        exclusive_end();
    }
}

static bool ended_early(struct child *child)
{
    for (unsigned index = 0; index < EARLY; index++)
        if (children.early[index].pid == child->pid && children.early[index].end_ns >= child->start_ns) {
            children.early[index].pid = 0;
            note(child, &children.early[index]);
            return true;
        }
    return false;
}

static void remember(struct child *child)
{
    if (children.count == ALIVE) {
        children.count = ALIVE / 2;
        memmove(children.alive, children.alive + ALIVE / 2, sizeof children.alive / 2);
    }
    children.alive[children.count++] = child;
}

struct child *children_add(const char *directory, const struct child *attempt)
{
    struct child *child = begin(directory) ? series_extend(&children.series, sizeof *child) : NULL;
    if (!child)
        return NULL;
    memcpy((char *)child + sizeof child->start_ns, (const char *)attempt + sizeof child->start_ns,
           sizeof *child - sizeof child->start_ns);
    __atomic_store_n(&child->start_ns, attempt->start_ns, __ATOMIC_RELEASE);
    bool lives = child->pid && !child->error && child->how != CHILD_EXEC;
    if (lives && !ended_early(child))
        remember(child);
    return child;
}

static void note_end(const struct end *end)
{
    for (unsigned index = children.count; index-- > 0;)
        if (children.alive[index]->pid == end->pid) {
            note(children.alive[index], end);
            children.count--;
            memmove(children.alive + index, children.alive + index + 1,
                    (children.count - index) * sizeof *children.alive);
            return;
        }
    children.early[children.next_early++ % EARLY] = *end;
}

void children_ended(uint32_t pid, int32_t status, uint64_t end_ns)
{
    if (exclusive_begin()) {
        struct end end = end_now(pid, status, end_ns);
        note_end(&end);
        exclusive_end();
    }
}

static void note_failure(uint32_t thread, uint64_t since_ns, uint32_t error)
{
    const struct series *series = &children.series;
    size_t first = series->window_at ? 0 : data_types[DATA_CHILDREN].head_bytes;
    size_t place = children.begun ? series->end - series->window_at : 0;
    for (int looked = 0; looked < LOOKED_BACK && place > first; looked++) {
        struct child *child = (void *)(series->window + (place -= sizeof *child));
        if (child->thread == thread && child->start_ns >= since_ns && child->how == CHILD_SPAWN) {
            child->error = error;
            return;
        }
    }
}

void children_failed(uint32_t thread, uint64_t since_ns, uint32_t error)
{
    if (exclusive_begin()) {
        note_failure(thread, since_ns, error);
        exclusive_end();
    }
}
