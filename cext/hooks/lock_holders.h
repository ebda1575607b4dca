/* Who took a lock last. A small table has, by the lock's address, the thread and its line of the program's own code,
   as the data of a code object. That is freed with the code, and then leaves the table. In free-threaded CPython
   several slots share a lock of ours. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/frame.h"
#include "cpython/side_lock.h"
#include "cpython/sites.h"

enum { HOLDERS = 4096, HOLDER_DEPTH = 8 };

struct holder {
    const PyObject *lock;
    struct code_sites *sites; /* NULL if its code is gone or was never seen */
    uint32_t instruction;
    uint32_t thread;
};

extern struct holder holders[HOLDERS];
extern bool holders_kept; /* one was, since all were forgotten */

static inline unsigned place_of_holder(const PyObject *lock)
{
    uintptr_t address = (uintptr_t)lock;
    return (unsigned)(((address >> 4) ^ (address >> 16)) % HOLDERS);
}

/* Both that a lock may have are under the same. */
static inline unsigned side_lock_of(unsigned place)
{
    return SIDE_HOLDERS + place / 2 % HOLDER_LOCKS;
}

/* Its place, or the one beside it where another lock has that; where both are others', it takes the first. */
static inline struct holder *holder_of(const PyObject *lock)
{
    unsigned place = place_of_holder(lock);
    struct holder *first = &holders[place], *second = &holders[place ^ 1];
    if (LIKELY(first->lock == lock || !first->lock))
        return first;
    return second->lock == lock || !second->lock ? second : first;
}

/* Under the lock; without it others may look whether a place has that lock, or that code. */
static inline void holder_put(struct holder *place, const struct holder *holder)
{
    __atomic_store_n(&place->lock, holder->lock, __ATOMIC_RELAXED);
    __atomic_store_n(&place->sites, holder->sites, __ATOMIC_RELAXED);
    place->instruction = holder->instruction;
    place->thread = holder->thread;
}

static inline void holder_keep(const struct holder *holder)
{
    unsigned side = side_lock_of(place_of_holder(holder->lock));
    if (!side_begin(side))
        return;
    if (UNLIKELY(holder->sites && !__atomic_load_n(&holder->sites->holds, __ATOMIC_RELAXED)))
        __atomic_store_n(&holder->sites->holds, 1, __ATOMIC_RELAXED);
    holder_put(holder_of(holder->lock), holder);
    if (UNLIKELY(!__atomic_load_n(&holders_kept, __ATOMIC_RELAXED)))
        __atomic_store_n(&holders_kept, true, __ATOMIC_RELAXED);
    side_end(side);
}

/* The data of a code object goes with it. Also called if there is only other keepers' extra data. */
void release_sites(void *known);

/* Keep who took it: the calling thread, at the first place of the program's own from here outward, not too far. */
static inline void lock_taken(PyThreadState *state, const PyObject *lock, const struct thread *thread)
{
    frame *frame = frame_innermost(state), *outer = frame;
    struct code_sites *sites = NULL;
    for (unsigned depth = 0; outer && depth < HOLDER_DEPTH && !(sites && sites->own); depth++) {
        frame = outer;
        sites = sites_of(frame);
        outer = sites && sites->own ? NULL : frame_outer(frame);
    }
    uint32_t instruction = frame ? (uint32_t)frame_instruction(frame) : 0;
    holder_keep(&(struct holder){lock, sites, instruction, thread->number});
}

extern bool holders_unknown; /* locks were taken that nobody saw */

/* Threads get new numbers: in a new recording, in a forked child. */
void forget_holders(void);

/* `held by thread 2 at /srv/app.py:41 hold`, as a number in strings; 0 if nobody was seen to take it. With `may_be_own`,
   this thread may be the holder; but a library that waits for a lock that its own thread took waits for a signal, as
   conditions do: that is 0 as well. */
uint32_t holder_detail(const PyObject *lock, bool may_be_own);

/* The same of other threads only, after the wait: the lock is now this thread's. */
uint32_t other_holder_detail(const PyObject *lock);
