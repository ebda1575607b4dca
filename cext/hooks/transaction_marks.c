#include "hooks/transaction_marks.h"

#include <stdlib.h>
#include <string.h>

#include "collectors/collected_places.h"
#include "collectors/collecting.h"
#include "core/fields.h"
#include "core/filter.h"
#include "core/trace_contexts.h"
#include "core/transaction_sampling.h"
#include "core/visible.h"
#include "cpython/attributes.h"
#include "cpython/frame.h"
#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "hooks/active_spans.h"
#include "hooks/call.h"
#include "hooks/call_result.h"
#include "hooks/checked_begin.h"
#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/open_calls.h"
#include "hooks/shim.h"

/* Those of the calling thread that began in coroutines; thread->marked has their number. */
static __thread struct {
    struct mark *places;
    uint32_t used, room;
} marks;

static void mark_lay_aside(struct mark *mark, struct thread_record *record, uint32_t index, struct reading now,
                           uint32_t under)
{
    mark->open = record->open[index];
    mark->left = now;
    mark->under = under;
    mark->is_aside = true;
    close_call(record, index);
}

static bool mark_take_up(struct mark *mark, struct thread_record *record, struct reading now)
{
    uint32_t index = record->fields.depth;
    if (index >= OPEN_CALLS)
        return false;
    uint64_t suspended_ns = now.wall_ns - mark->left.wall_ns;
    mark->open.start_cpu_ns += now.cpu_ns - mark->left.cpu_ns;
    mark->open.inner_wall_ns += suspended_ns;
    mark->suspended_ns += suspended_ns;
    mark->is_aside = false;
    record->open[index] = mark->open;
    __atomic_store_n(&record->fields.depth, index + 1, __ATOMIC_RELEASE);
    return true;
}

static bool is_running(const struct mark *mark)
{
#if IS_FREE_THREADED
    PyObject *coroutine = NULL; /* which another thread may be freeing */
    bool lives = PyWeakref_GetRef(mark->reference, &coroutine) == 1, runs = lives && coroutine_is_running(coroutine);
    Py_XDECREF(coroutine);
    return runs;
#else
    bool lives = mark->watched ? object_lives(mark->coroutine, mark->watched)
                               : ((PyWeakReference *)mark->reference)->wr_object == mark->coroutine;
    return lives && coroutine_is_running(mark->coroutine);
#endif
}

void marks_settle(struct thread *thread)
{
    struct thread_record *record = thread->record;
    struct reading now = clock_read(&thread->clock);
    for (uint32_t place = marks.used; place-- > 0;) {
        struct mark *mark = &marks.places[place];
        uint32_t index = mark->is_aside || is_running(mark) ? OPEN_CALLS : place_in_table(record, mark->call);
        if (index < OPEN_CALLS)
            mark_lay_aside(mark, record, index, now, 0);
    }
    for (uint32_t place = 0; place < marks.used; place++)
        if (marks.places[place].is_aside && is_running(&marks.places[place]))
            mark_take_up(&marks.places[place], record, now);
}

void marks_leave(struct thread *thread, uint32_t index, uint32_t call, struct reading now)
{
    struct thread_record *record = thread->record;
    for (uint32_t place = marks.used; place-- > 0;) {
        struct mark *mark = &marks.places[place];
        uint32_t found = mark->is_aside ? OPEN_CALLS : place_in_table(record, mark->call);
        if (found < OPEN_CALLS && found > index)
            mark_lay_aside(mark, record, found, now, call);
    }
}

void marks_return(struct thread *thread, uint32_t call, struct reading now)
{
    for (uint32_t place = 0; place < marks.used; place++)
        if (marks.places[place].is_aside && marks.places[place].under == call)
            mark_take_up(&marks.places[place], thread->record, now);
}

static bool is_of_contextlib(PyCodeObject *code)
{
    static const char end[] = "/contextlib.py";
    Py_ssize_t bytes;
    const char *file = bytes_of_text(code->co_filename, &bytes);
    return file && bytes >= (Py_ssize_t)sizeof end && strcmp(file + bytes + 1 - sizeof end, end) == 0;
}

/* The frame of the coroutine that contains the calling code, or called it; NULL if there is none. Frames in between
   that the standard library turns into context managers are skipped. */
static frame *coroutine_here(PyThreadState *state)
{
    for (frame *each = frame_innermost(state); each; each = frame_outer(each)) {
        bool is_coroutine = frame_code(each)->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE);
        if (is_coroutine && frame_is_of_generator(each) && !is_of_contextlib(frame_code(each)))
            return each;
    }
    return NULL;
}

static void marks_forget(void)
{
    while (marks.used)
        Py_XDECREF(marks.places[--marks.used].reference);
    free(marks.places);
    marks.places = NULL;
    marks.room = 0;
}

static void mark_add(struct thread *thread, frame *running, const struct span *span)
{
    PyObject *coroutine = frame_generator(running), *outermost = outermost_from(running, coroutine);
    if (!thread->marked)
        marks_forget(); /* those that a parent had, before this process was forked */
    if (marks.used == marks.room) {
        uint32_t room = marks.room ? marks.room * 2 : 8;
        struct mark *places = realloc(marks.places, room * sizeof *places);
        if (!places)
            return;
        marks.places = places;
        marks.room = room;
    }
    uint32_t task = number_of_task(outermost), watched = IS_FREE_THREADED ? 0 : object_watch(coroutine);
    PyObject *reference = watched ? NULL : PyWeakref_NewRef(coroutine, NULL);
    if (!watched && !reference) {
        PyErr_Clear();
        return;
    }
    marks.places[marks.used++] = (struct mark){.coroutine = coroutine,
                                               .outermost = outermost,
                                               .reference = reference,
                                               .start_cpu_ns = span->begin.cpu_ns,
                                               .call = span->call,
                                               .task = task,
                                               .watched = watched,
                                               .intrinsic = span->intrinsic,
                                               .detail = span->detail};
    thread->marked = marks.used;
}

static void mark_remove(struct thread *thread, uint32_t place)
{
    Py_XDECREF(marks.places[place].reference);
    memmove(&marks.places[place], &marks.places[place + 1], (marks.used - place - 1) * sizeof *marks.places);
    thread->marked = --marks.used;
    if (!marks.used)
        marks_forget();
}

static struct mark *mark_of(const struct thread *thread, uint32_t call)
{
    for (uint32_t place = 0; thread->marked && place < marks.used; place++)
        if (marks.places[place].call == call)
            return &marks.places[place];
    return NULL;
}

void marks_step(PyObject *outermost, bool begins)
{
    struct thread *thread = recorded_state() ? current_thread : NULL;
    if (!thread_records(thread) || !thread->marked)
        return;
    struct thread_record *record = thread->record;
    if (begins)
        marks_settle(thread);
    struct reading now = clock_read(&thread->clock);
    for (uint32_t turn = 0; turn < marks.used; turn++) {
        struct mark *mark = &marks.places[begins ? turn : marks.used - 1 - turn];
        uint32_t index = mark->is_aside ? OPEN_CALLS : place_in_table(record, mark->call);
        if (mark->outermost != outermost)
            continue;
        if (begins && mark->is_aside && !mark->under)
            mark_take_up(mark, record, now);
        else if (!begins && index < OPEN_CALLS)
            mark_lay_aside(mark, record, index, now, 0);
    }
}

PyObject *mark_enter(const struct slot *slot, uint32_t detail)
{
    PyThreadState *state = recorded_state();
    struct thread *thread = recorded_thread(state);
    struct call call = {.slot = slot};
    if (!thread || thread->quiet)
        return NULL;
    if (thread->marked)
        marks_settle(thread);
    if (!is_timed(slot, slot->intrinsic)) {
        begin_untimed(&call, thread, slot->intrinsic);
        return NULL;
    }
    if (UNLIKELY(filter_is_on()) && !transaction_passes(slot, thread, state))
        return NULL;
    if (!span_begin(&call.span, thread, chosen_number(slot->intrinsic, thread), stack_here(state), detail))
        return NULL;
    note_active_spans(thread);
    if (is_collecting())
        collect_place(&call.span);
    frame *running = coroutine_here(state);
    if (!running)
        return NULL;
    mark_add(thread, running, &call.span);
    return outermost_from(running, frame_generator(running));
}

void mark_event(const struct slot *slot, uint32_t detail)
{
    PyThreadState *state = recorded_state();
    struct thread *thread = recorded_thread(state);
    struct call call = {.slot = slot};
    if (!thread || thread->quiet)
        return;
    if (thread->marked)
        marks_settle(thread);
    if (!is_timed(slot, slot->intrinsic)) {
        begin_untimed(&call, thread, slot->intrinsic);
        return;
    }
    if (UNLIKELY(filter_is_on() | chosen.one_in) && !passes_early(slot, slot->intrinsic, true, thread, state))
        return;
    if (!span_begin(&call.span, thread, slot->intrinsic, stack_here(state), detail))
        return;
    call.span.wall_ns = call.span.cpu_ns = 0;
    if (thread->in_loop || thread->greenlet)
        call.span.task = task_of_thread(thread);
    span_record(&call.span, 0, 0);
}

/* The innermost one of that name in progress; or one whose coroutine is not known to run. */
static bool find_mark(struct span *span, struct thread *thread, const struct slot *slot, uint32_t detail)
{
    if (find_open(span, thread, slot->intrinsic, detail, 0))
        return true;
    for (uint32_t place = thread->marked ? marks.used : 0; place-- > 0;) {
        struct mark *mark = &marks.places[place];
        if (mark->is_aside && is_number_or_further(mark->intrinsic, slot->intrinsic) && mark->detail == detail)
            return mark_take_up(mark, thread->record, clock_read(&thread->clock)) &&
                   find_open(span, thread, slot->intrinsic, detail, 0);
    }
    return false;
}

void mark_exit(const struct slot *slot, uint32_t detail, bool failed)
{
    struct thread *thread = recorded_state() ? current_thread : NULL;
    struct span span;
    if (!thread_records(thread))
        return;
    if (thread->marked)
        marks_settle(thread);
    if (!find_mark(&span, thread, slot, detail) || !span_stop(&span))
        return;
    struct mark *mark = mark_of(thread, span.call);
    struct mark none = {.start_cpu_ns = span.begin.cpu_ns, .task = thread->greenlet};
    struct mark as_it_was = mark ? *mark : none;
    uint32_t error = failed ? error_here(span.begin.wall_ns) : 0;
    uint64_t recorded = thread->record->fields.recorded;
    if (mark)
        mark_remove(thread, (uint32_t)(mark - marks.places));
    if (is_inside_passed_over(&span)) {
        name_request_around(&span, span.detail);
        span_forget(&span);
        return;
    }
    if (span.wall_ns >= recorder.long_ns)
        look_at_long_call(&span);
    span.begin.cpu_ns = as_it_was.start_cpu_ns;
    trace_context_end(thread, span.call, span.call);
    record_collected(&span, 0, error, NULL, false);
    if (span.index && !recorder.interval_ns) /* in which it was suspended as well */
        thread->record->open[span.index - 1].inner_wall_ns -= as_it_was.suspended_ns;
    if (as_it_was.task && thread->record->fields.recorded > recorded && thread->block && thread->block->head.used)
        thread->block->events[thread->block->head.used - 1].task = as_it_was.task;
}
