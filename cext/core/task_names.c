#include "core/task_names.h"

#include "core/exclusive.h"
#include "core/recorder.h"
#include "core/series.h"
#include "core/session.h"

enum { TASKS_KEPT = (TASKS_BYTES - sizeof(struct file_head)) / sizeof(struct named_task) };

static struct {
    struct series series;
    struct named_task *first; /* NULL: there is no file yet */
    uint32_t kept;            /* so often */
    bool failed;
} names;

void task_names_begin(void)
{
    names.first = NULL;
    names.kept = 0;
    names.failed = false;
}

static bool begin(void)
{
    if (names.first || names.failed)
        return !names.failed;
    names.failed = series_create(&names.series, session.directory, &data_types[DATA_TASKS], 1) != 0;
    names.series.keep_windows = true;
    return !names.failed;
}

/* The place of the next one: behind the others, or that of the oldest. */
static struct named_task *next_place(void)
{
    if (names.kept >= TASKS_KEPT)
        return &names.first[names.kept % TASKS_KEPT];
    struct named_task *place = series_extend(&names.series, sizeof *place);
    names.first = names.first ? names.first : place;
    return place;
}

static void keep(uint32_t number, uint32_t name)
{
    struct named_task *place = begin() ? next_place() : NULL;
    if (!place)
        return;
    __atomic_store_n(&place->number, 0, __ATOMIC_RELEASE); /* nobody reads one with another's name */
    place->name = name;
    place->thread = current_thread ? current_thread->number : 0;
    __atomic_store_n(&place->number, number, __ATOMIC_RELEASE);
    names.kept++;
}

void task_name_keep(uint32_t number, uint32_t name)
{
    if (!name || session_stopped() || !exclusive_begin())
        return;
    if (session_is_ours())
        keep(number, name);
    exclusive_end();
}
