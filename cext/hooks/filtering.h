/* Whether a call is recorded, as the filter has it: first what costs least. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/filter.h"
#include "core/levels.h"
#include "core/recorder.h"
#include "core/visible.h"
#include "hooks/slot.h"

/* May a call be recorded with a kind that is known later? `passed` is the answer for other kinds. */
bool passes_late(const struct slot *slot, uint32_t intrinsic, bool passed);

/* May a transaction? Where calls are chosen by transactions, these have to be known. */
bool transaction_passes(const struct slot *slot, struct thread *thread, PyThreadState *state);

/* Whether a call may be recorded, from what is known first: within a transaction that is passed over, only calls
   that start processes are, for the same reason. */
bool passes_early(const struct slot *slot, uint32_t intrinsic, bool simple, struct thread *thread,
                  PyThreadState *state);

/* The changes that its calls make, or processes that they start, must be known even if they are not recorded; what
   is sent and received only for sockets. */
void slot_watch(struct slot *slot);

bool is_left_out_at_once(const struct slot *slot);

/* Another filter holds. */
void slots_watch(void);
