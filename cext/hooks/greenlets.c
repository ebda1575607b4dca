#include "hooks/greenlets.h"

#include <string.h>

#include "core/spans.h"
#include "cpython/tasks.h"
#include "hooks/open_calls.h"

static void runs(struct thread *thread, uint32_t greenlet)
{
    thread->greenlet = greenlet;
    thread->record->fields.greenlet = greenlet;
}

/* What the outermost call with an answer waits for, until the greenlet runs again. Waits for work await none. */
static void note_answer(struct aside *aside)
{
    for (uint32_t index = 0; index < aside->count; index++) {
        uint32_t number = aside->open[index].intrinsic;
        bool is_process = is_number_of(number, KIND_process);
        if (is_idle_number(number))
            return;
        if (is_process || is_number_of(number, KIND_db) || is_number_of(number, KIND_net)) {
            answer_begins(&aside->answer, aside->thread->number, is_process ? KIND_process : KIND_net);
            return;
        }
    }
}

void lay_aside(struct aside *aside, PyObject *next)
{
    struct thread *thread = current_thread;
    bool is_recorded = thread_records(thread);
    uint32_t task = is_recorded && next ? number_of_task(next) : 0; /* now: it may be dead when it is asked for */
    aside->record = NULL;
    aside->answer.by = 0;
    aside->thread = is_recorded && thread_records(thread) ? thread : NULL;
    if (!aside->thread)
        return;
    aside->greenlet = thread->greenlet;
    runs(thread, task);
    if (thread->record->fields.depth == 0 && !thread->serving)
        return;
    struct thread_record *record = thread->record;
    aside->record = record;
    aside->count = record->fields.depth;
    aside->serving = thread->serving;
    thread->serving = 0;
    writing_begin(thread);
    memcpy(aside->open, record->open, aside->count * sizeof *aside->open);
    aside->left = clock_read(&thread->clock);
    __atomic_store_n(&record->fields.depth, 0, __ATOMIC_RELEASE);
    for (uint32_t index = 0; index < aside->count; index++)
        record->open[index].call = 0; /* or the sampler would take it for one that begins */
    writing_end(thread);
    note_answer(aside);
}

void take_up(struct aside *aside)
{
    struct thread *thread = current_thread;
    if (aside->answer.by)
        answer_ends(&aside->answer);
    if (!aside->thread || thread != aside->thread || !thread_records(thread))
        return;
    runs(thread, aside->greenlet);
    if (!aside->record || thread->record != aside->record)
        return;
    struct thread_record *record = thread->record;
    writing_begin(thread);
    struct reading now = clock_read(&thread->clock);
    memcpy(record->open, aside->open, aside->count * sizeof *aside->open);
    for (uint32_t index = 0; index < aside->count; index++)
        record->open[index].start_cpu_ns += now.cpu_ns - aside->left.cpu_ns;
    if (aside->count)
        record->open[aside->count - 1].inner_wall_ns += now.wall_ns - aside->left.wall_ns;
    thread->serving = aside->serving;
    __atomic_store_n(&record->fields.depth, aside->count, __ATOMIC_RELEASE);
    writing_end(thread);
}

/* Of greenlet's table of functions for C, which is read at every call of one. */
enum { GREENLET_THROW = 5, GREENLET_SWITCH = 6 };
typedef PyObject *(*switch_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*throw_function)(PyObject *, PyObject *, PyObject *, PyObject *);

static void **greenlet_table;
static switch_function real_switch;
static throw_function real_throw;

static PyObject *switch_aside(PyObject *greenlet, PyObject *arguments, PyObject *keywords)
{
    struct aside aside;
    lay_aside(&aside, greenlet);
    PyObject *result = real_switch(greenlet, arguments, keywords);
    take_up(&aside);
    return result;
}

static PyObject *throw_aside(PyObject *greenlet, PyObject *type, PyObject *value, PyObject *traceback)
{
    struct aside aside;
    lay_aside(&aside, greenlet);
    PyObject *result = real_throw(greenlet, type, value, traceback);
    take_up(&aside);
    return result;
}

bool greenlets_begin(PyObject *capsule)
{
    void **table = PyCapsule_GetPointer(capsule, "greenlet._C_API");
    if (!table) {
        PyErr_Clear();
        return false;
    }
    if (table[GREENLET_SWITCH] == (void *)switch_aside)
        return true;
    greenlet_table = table;
    real_switch = (switch_function)table[GREENLET_SWITCH];
    real_throw = (throw_function)table[GREENLET_THROW];
    table[GREENLET_SWITCH] = (void *)switch_aside;
    table[GREENLET_THROW] = (void *)throw_aside;
    return true;
}

void greenlets_end(void)
{
    if (greenlet_table && greenlet_table[GREENLET_SWITCH] == (void *)switch_aside) {
        greenlet_table[GREENLET_SWITCH] = (void *)real_switch;
        greenlet_table[GREENLET_THROW] = (void *)real_throw;
    }
    greenlet_table = NULL;
}
