/* Orders threads in free-threaded CPython, where the interpreter lock does elsewhere: locks for data kept beside the
   recorder, about tasks, holders of locks, and waits for descriptors. With an interpreter lock they are nothing. A
   thread that waits for one releases its thread state, so that it does not block whatever stops all threads; waiting
   ends after two seconds, as for the recorder's own lock. Their memory is wiped at fork. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/visible.h"

#ifdef Py_GIL_DISABLED
#define IS_FREE_THREADED 1
#else
#define IS_FREE_THREADED 0
#endif

/* One for each job; for holders of locks, one for several slots. */
enum { SIDE_MODULES, SIDE_ENVIRONMENT, SIDE_SITES, SIDE_ROOTS, SIDE_TASKS, SIDE_WATCHERS, SIDE_CARRYING, SIDE_SLOTS, SIDE_HOLDERS, HOLDER_LOCKS = 128, SIDE_LOCKS = SIDE_HOLDERS + HOLDER_LOCKS };

/* For data that is written without a lock: what is written last, and read first. */
static inline void write_last(uint32_t *place, uint32_t value)
{
    __atomic_store_n(place, value, __ATOMIC_RELEASE);
}

static inline uint32_t read_first(const uint32_t *place)
{
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

#if IS_FREE_THREADED
/* Before the first. 0 or the error's number. */
VISIBLE int side_locks_prepare(void);

/* False if it could not be taken in time: what needed it is then not done. errno is kept. */
VISIBLE bool side_begin(unsigned lock);
VISIBLE void side_end(unsigned lock);
#else
static inline int side_locks_prepare(void)
{
    return 0;
}

static inline bool side_begin(unsigned lock)
{
    (void)lock;
    return true;
}

static inline void side_end(unsigned lock)
{
    (void)lock;
}
#endif
