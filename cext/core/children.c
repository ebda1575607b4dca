#include "core/children.h"

#include <errno.h>
#include <string.h>

#include "core/exclusive.h"

/* Of more than ALIVE children at once the older half is given up: their ends stay unknown. */
enum { ALIVE = 4096, EARLY = 64, LOOKED_BACK = 256 };

static struct {
    struct series series;
    bool begun;
    struct child *alive[ALIVE]; /* those that nobody has waited for, in the order of their beginnings */
    unsigned count;
    struct {
        uint64_t end_ns;
        uint32_t pid;
        int32_t status;
    } early[EARLY]; /* waited for by another thread before they were noted, or none of ours */
    unsigned next_early;
} children;

void children_forget(void)
{
    children.begun = false;
    children.count = 0;
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

void child_ended(struct child *child, int32_t status, uint64_t end_ns)
{
    child->status = status;
    __atomic_store_n(&child->end_ns, end_ns, __ATOMIC_RELEASE);
}

static bool ended_early(struct child *child)
{
    for (unsigned index = 0; index < EARLY; index++)
        if (children.early[index].pid == child->pid && children.early[index].end_ns >= child->start_ns) {
            children.early[index].pid = 0;
            child_ended(child, children.early[index].status, children.early[index].end_ns);
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

static void note_end(uint32_t pid, int32_t status, uint64_t end_ns)
{
    for (unsigned index = children.count; index-- > 0;)
        if (children.alive[index]->pid == pid) {
            child_ended(children.alive[index], status, end_ns);
            children.count--;
            memmove(children.alive + index, children.alive + index + 1,
                    (children.count - index) * sizeof *children.alive);
            return;
        }
    unsigned place = children.next_early++ % EARLY;
    children.early[place].pid = pid;
    children.early[place].status = status;
    children.early[place].end_ns = end_ns;
}

void children_ended(uint32_t pid, int32_t status, uint64_t end_ns)
{
    if (exclusive_begin()) {
        note_end(pid, status, end_ns);
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
