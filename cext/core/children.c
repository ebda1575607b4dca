#include "core/children.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "core/exclusive.h"

/* Of more than ALIVE children at once the older half is given up: their ends stay unknown. */
enum { ALIVE = 4096, EARLY = 64, LOOKED_BACK = 256 };

static struct {
    struct series series;
    bool begun;
    struct child *alive[ALIVE]; /* those that nobody has waited for, in the order of their beginnings */
    unsigned count;
    struct end {
        uint64_t end_ns, cpu_ns;
        uint32_t pid, memory_kib;
        int32_t status;
    } early[EARLY]; /* waited for by another thread before they were noted, or none of ours */
    unsigned next_early;
    uint64_t noted_cpu_ns; /* of all that were noted to have ended */
    uint32_t most_kib;
} children;

/* What the kernel has counted of children that were waited for, and what was noted of them: as a call begins to wait. */
static __thread uint64_t begun_cpu_ns, begun_noted_ns;

void children_forget(void)
{
    children.begun = false;
    children.count = 0;
    children.noted_cpu_ns = 0;
    children.most_kib = 0;
    memset(children.early, 0, sizeof children.early);
}

static bool begin(const char *directory)
{
    int failed = children.begun ? 0 : series_create(&children.series, directory, &data_types[DATA_CHILDREN], 1);
    children.begun = !failed;
    children.series.keep_windows = true; /* ends are written into records of long ago */
    errno = failed ? failed : errno;
    return !failed;
}

static uint64_t cpu_of_children(uint32_t *most_kib)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0)
        return 0;
    *most_kib = (uint32_t)used.ru_maxrss;
    uint64_t us = (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 + us * 1000;
}

/* A child begins as its parent: until it executes its program it has, for the kernel, all that the parent has. So this
   process's own figure may be that of whoever started it: then less is known of its children, and nothing wrong. */
static uint32_t own_most_kib(void)
{
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? (uint32_t)used.ru_maxrss : 0;
}

void children_waited_for(void)
{
    uint32_t most_kib;
    begun_cpu_ns = cpu_of_children(&most_kib);
    begun_noted_ns = __atomic_load_n(&children.noted_cpu_ns, __ATOMIC_RELAXED);
}

/* The end of one of which the kernel has just added what it used; what other threads waited for meanwhile is noted
   already, and is not this one's. */
static struct end end_now(uint32_t pid, int32_t status, uint64_t end_ns)
{
    uint32_t most_kib = 0;
    uint64_t used_ns = cpu_of_children(&most_kib) - begun_cpu_ns, others_ns = children.noted_cpu_ns - begun_noted_ns;
    struct end end = {.end_ns = end_ns, .pid = pid, .status = status};
    end.cpu_ns = used_ns > others_ns ? used_ns - others_ns : 0;
    end.memory_kib = most_kib > children.most_kib && most_kib > own_most_kib() ? most_kib : 0;
    children.most_kib = most_kib;
    __atomic_store_n(&children.noted_cpu_ns, children.noted_cpu_ns + end.cpu_ns, __ATOMIC_RELAXED);
    return end;
}

static void note(struct child *child, const struct end *end)
{
    child->status = end->status;
    child->cpu_ns = end->cpu_ns;
    child->memory_kib = end->memory_kib;
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
    size_t first = series->window_at ? 0 : sizeof(struct file_head);
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
