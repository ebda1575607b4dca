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

/* Are calls of that number left out wherever they are made? */
static inline bool is_left_out(uint32_t intrinsic)
{
    return UNLIKELY(filter.on) && (filter.none || (intrinsic < COUNTED_NUMBERS && filter.left_out[intrinsic]));
}

/* The same of one whose kind is known later, where `passed` tells what is not of the kind. */
bool passes_late(const struct slot *slot, uint32_t intrinsic, bool passed);

/* May a transaction? Where calls are chosen by transactions, these have to be known. */
bool transaction_passes(const struct slot *slot, struct thread *thread, PyThreadState *state);

/* May a call, as far as it is known before all else: within a transaction that is passed over nothing is recorded but what
   starts processes, for the same reason. */
bool passes_early(const struct slot *slot, uint32_t intrinsic, bool simple, struct thread *thread,
                  PyThreadState *state);

/* What its calls change, or start, is to be known even where they are not recorded; but what is sent and received only of
   sockets. */
void slot_watch(struct slot *slot);

bool is_left_out_at_once(const struct slot *slot);

/* Another filter holds. */
void slots_watch(void);
