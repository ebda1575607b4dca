/* Lines as events: each that line trace comes to is one where statements are asked for, an instant that takes no time, so that
   nothing is added to any time of a report. The line stands by itself, whosever code it is: what is chosen is traced for its
   lines. What it takes to tell of one is timed by line trace (lines/line_events.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "core/recorder.h"
#include "core/kinds.h"
#include "core/levels.h"
#include "hooks/slot.h"
#include "hooks/stubs.h"
#include "hooks/filtering.h"
#include "hooks/object_descriptor.h"
#include "hooks/idle_descriptors.h"
#include "hooks/descriptors.h"
#include "cpython/sites.h"
#include "core/statement.h"
#include "hooks/attribute_names.h"
#include "hooks/object_texts.h"
#include "hooks/statement_detail.h"
#include "hooks/path_detail.h"
#include "hooks/address_detail.h"
#include "hooks/command_detail.h"
#include "core/filter.h"
#include "cpython/frame.h"
#include "hooks/filtered_stacks.h"
#include "hooks/lock_holders.h"
#include "hooks/locks.h"
#include "cpython/attributes.h"
#include "hooks/url_detail.h"
#include "hooks/route_detail.h"
#include "cpython/ownership.h"
#include "hooks/database_server.h"
#include "hooks/call.h"
#include "hooks/call_detail.h"
#include "hooks/open_calls.h"
#include "hooks/call_kind.h"
#include "core/program.h"
#include "hooks/call_result.h"
#include "hooks/child_processes.h"
#include "hooks/call_effects.h"
#include "interpose_collector.h"
#include "collectors/identification.h"
#include "core/intern.h"
#include "collectors/pseudo_sections.h"
#include "collectors/claimed_names.h"
#include "collectors/claims.h"
#include "collectors/transaction_names.h"
#include "collectors/collectors.h"
#include "collectors/collected_places.h"
#include "collectors/collecting.h"
#include "core/transaction_sampling.h"
#include "core/follow.h"
#include "core/child_variables.h"
#include "core/preload.h"
#include "hooks/started_program.h"
#include "hooks/environment_variables.h"
#include "hooks/environment_copies.h"
#include "hooks/child_environment.h"
#include "hooks/passed_environment.h"
#include "hooks/filtered_places.h"
#include "hooks/fetches.h"
#include "cpython/tasks.h"
#include "core/dialogue.h"
#include "hooks/curses_screen.h"
#include "hooks/terminal.h"
#include "cpython/thread_names.h"
#include "hooks/lock_passing.h"
#include "hooks/serving.h"
#include "hooks/hot_path.h"
#include "hooks/shim.h"
#include "hooks/transaction_marks.h"

static const struct slot *told_lines; /* what they are recorded as; NULL: they are not */

/* The number of the line's stack; 0 where there is no room. */
static inline uint32_t stack_of_line(frame *here)
{
    uint32_t own_code = 0;
    struct place *place = place_of(here, &own_code);
    if (UNLIKELY(!place))
        return 0;
    if (UNLIKELY(!place->stack))
        place->stack = stack_intern(place->site, 0, 0);
    return place->stack;
}

static inline void append_instant(struct thread *thread, const struct event *instant)
{
    struct thread_record *record = thread->record;
    struct event *event = event_place(thread);
    record->fields.made++;
    if (UNLIKELY(!event)) {
        record->fields.dropped++;
    } else {
        *event = *instant;
        event_written(thread, instant->start_ns, instant->start_ns);
    }
    if (UNLIKELY(recorder.governed))
        governor_note(instant->intrinsic);
    if (UNLIKELY(instant->start_ns >= thread->look_ns))
        thread_look(thread);
}

/* The line that `running`, the thread's innermost frame, has come to. */
static void tell_line(void *running)
{
    const struct slot *slot = told_lines;
    PyThreadState *state = recorded_state();
    struct thread *thread = LIKELY(state != NULL) ? current_thread : NULL;
    if (UNLIKELY(!slot || !thread || !thread->recording || thread->quiet))
        return;
    if (UNLIKELY(thread->marked))
        marks_settle(thread);
    if (UNLIKELY(slot->lowered) && !is_timed(slot, slot->intrinsic)) {
        struct call call = {.slot = slot};
        begin_untimed(&call, thread, slot->intrinsic);
        return;
    }
    if (UNLIKELY(filter.on | chosen.one_in) && !passes_early(slot, slot->intrinsic, true, thread, state))
        return;
    struct reading now = clock_read(&thread->clock);
    uint32_t task = thread->in_loop || thread->greenlet ? task_of_thread(thread) : 0;
    uint32_t stack = stack_of_line(running), depth = thread->record->fields.depth;
    if (UNLIKELY(++thread->calls == 0)) /* 0 is no call's number */
        thread->calls = 1;
    struct event instant = {
        .start_ns = now.wall_ns,
        .start_cpu_ns = now.cpu_ns,
        .thread = thread->number,
        .call = thread->calls,
        .parent = depth ? thread->record->open[depth - 1].call : 0,
        .intrinsic = slot->intrinsic,
        .stack = stack,
        .task = task,
    };
    append_instant(thread, &instant);
}

/* From now on lines are told as calls of that slot; NULL: no more. */
static void tell_lines_as(const struct slot *slot)
{
    told_lines = slot;
    recorder.tell_line = slot ? tell_line : NULL;
}

/* The mean of so many, in nanoseconds, of the line that runs: for calibration. */
static uint64_t time_told_lines(struct thread *thread, unsigned times)
{
    frame *here = frame_innermost(running_state());
    struct reading begin = clock_read(&thread->clock);
    for (unsigned time = 0; time < times; time++)
        tell_line(here);
    return (clock_read(&thread->clock).wall_ns - begin.wall_ns) / times;
}
