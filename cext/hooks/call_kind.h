/* Of which of its kinds a call of an intrinsic is. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"
#include "core/recorder.h"
#include "hooks/call.h"
#include "hooks/descriptors.h"
#include "hooks/open_calls.h"
#include "hooks/slot.h"
#include "hooks/traffic.h"

/* Whether a loop waits for answers, for children that are awaited, or for work. Some drivers write in C, unseen, so an awaited answer
   of a database counts, whatever is known of its descriptor. So does an awaited child: its end may be seen by a signal or by another thread. */
enum kind kind_of_poll(const struct thread *thread, uint32_t watcher, bool is_sure);

/* Which of its numbers the wait of a loop has in the end: if another thread worked for what the loop serves, the loop had
   nothing else to do. */
uint32_t number_of_poll(const struct span *span, const struct slot *slot, uint32_t watcher);

/* The same if it returned with a child's descriptor: it waited for the child, unless it also waited for somebody else. A loop watches
   every child from its start, so only the end of the wait shows whether it was for one. */
bool may_have_awaited_child(const struct span *span, const struct slot *slot);

/* Of a call that waits for several descriptors: its number, now that its result is known. */
uint32_t number_of_wait(const struct call *call, PyObject *result);

/* What has to be added to the number of an intrinsic of several kinds. */
uint32_t chosen_kind(const struct call *call, const struct thread *thread);
