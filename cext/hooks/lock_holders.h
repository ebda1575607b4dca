/* Who took a lock last.

   It is kept in a small table by the lock's address: the thread, and its place in the program's own code, as what is known
   of the code object. That is freed with the code, and leaves the table then. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/frame.h"
#include "cpython/sites.h"

enum { HOLDERS = 4096, HOLDER_DEPTH = 8 };

struct holder {
    const PyObject *lock;
    struct code_sites *sites; /* NULL where its code is gone or was never seen */
    uint32_t instruction;
    uint32_t thread;
};

extern struct holder holders[HOLDERS];

/* Its place, or the one beside it where another lock has that; where both are others', it takes the first. */
static inline struct holder *holder_of(const PyObject *lock)
{
    uintptr_t address = (uintptr_t)lock, place = ((address >> 4) ^ (address >> 16)) % HOLDERS;
    struct holder *first = &holders[place], *second = &holders[place ^ 1];
    if (LIKELY(first->lock == lock || !first->lock))
        return first;
    return second->lock == lock || !second->lock ? second : first;
}

/* What is known of a code object goes with it. Also called where nothing is, but somebody else's extra data. */
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
    if (UNLIKELY(sites && !sites->holds))
        sites->holds = 1;
    *holder_of(lock) = (struct holder){lock, sites, frame ? (uint32_t)frame_instruction(frame) : 0, thread->number};
}

extern bool holders_unknown; /* locks were taken that nobody looked at */

/* Threads are numbered anew: in a new recording, in a forked child. */
void forget_holders(void);

/* `held by thread 2 at /srv/app.py:41 hold`, as a number in strings; 0 where nobody else was seen to take it: who waits
   for a lock that he took himself waits for a sign, as conditions do. */
uint32_t holder_detail(const PyObject *lock);
