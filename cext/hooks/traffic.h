/* Of which of its kinds a call is that reads or writes through a descriptor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"
#include "hooks/descriptors.h"
#include "hooks/open_calls.h"
#include "hooks/slot.h"

static inline enum kind kind_of_descriptor(const struct descriptor *known)
{
    return known ? (enum kind)__atomic_load_n(&known->kind, __ATOMIC_RELAXED) : KIND_file;
}

/* Who reads from a pipe that was inherited waits for what others send, unless somebody waits for an answer meanwhile. */
static inline bool waits_for_others(const struct slot *slot, const struct descriptor *known, const struct thread *thread)
{
    return slot->asks && __atomic_load_n(&known->role, __ATOMIC_RELAXED) == ROLE_INHERITED && !is_serving(thread);
}

/* multiprocessing talks to its processes through local sockets, too: to the forkserver, for example. */
static inline bool is_of_processes(const struct descriptor *known, const struct thread *thread)
{
    return __atomic_load_n(&known->known, __ATOMIC_RELAXED) == KNOWN_LOCAL && inside(thread, KIND_process);
}

static inline uint32_t kind_of_traffic(const struct slot *slot, const struct descriptor *known,
                                       const struct thread *thread)
{
    enum kind kind = kind_of_descriptor(known);
    bool waits = (kind == KIND_process || kind == KIND_net) && inside(thread, KIND_idle);
    waits = waits || (kind == KIND_process && waits_for_others(slot, known, thread));
    if (!waits && kind == KIND_net && is_of_processes(known, thread))
        kind = KIND_process;
    return slot->kinds[waits ? KIND_idle : kind];
}
