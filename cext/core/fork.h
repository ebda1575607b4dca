/* Around a fork: the parent gives the child its number, so that lineages are in the order of forks; the child begins its
   own subexperiment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/visible.h"

/* In the parent, before and after it; in the child after it: its subexperiment begins now, not at its first call. */
VISIBLE void recorder_forks(void);
VISIBLE void recorder_has_forked(void);
VISIBLE void recorder_forked(void);

/* In the parent: whether its fork with that number is to be recorded. */
VISIBLE bool recorder_follows(uint32_t number);

/* Have the log say what became of the transaction that this process was started in, where it was started in one. */
VISIBLE void recorder_tell_fate(void);

/* Begin the subexperiment of this process, a forked child; false if it is not to be recorded. The caller holds the
   exclusive lock. */
bool fork_begin_child(void);
