/* The interpreter's lock, as its fields tell who has it and on what threads wait. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/visible.h"

struct interpreter_lock {
    const pthread_cond_t *freed; /* waited for by who wants it */
    const pthread_cond_t *taken; /* waited for by who has given it up because others want it */
    const int *held;
    const uintptr_t *holder; /* the state of the thread that has it, or had it last */
};

/* The lock that the calling thread has. NULL, or why it is not known. */
VISIBLE const char *interpreter_lock_find(struct interpreter_lock *lock);

static inline bool lock_is_held(const struct interpreter_lock *lock)
{
    return __atomic_load_n(lock->held, __ATOMIC_RELAXED);
}

/* Never to be looked into, unless the thread is known to wait. */
static inline const PyThreadState *lock_holder(const struct interpreter_lock *lock)
{
    return (const PyThreadState *)__atomic_load_n(lock->holder, __ATOMIC_RELAXED);
}
