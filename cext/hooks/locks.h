/* Locks: is one free, so that there is nothing to wait for; and who took it last.

   The last taker of a lock is kept in a small table by the lock's address: its thread, and its place in the program's
   own code, as what is known of the code object. That is freed with the code, and leaves the table then. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <semaphore.h>

#include "hooks/filtered_stacks.h"
#include "cpython/sites.h"
#include "hooks/stubs.h"

enum { HOLDERS = 4096, HOLDER_DEPTH = 8 };

struct holder {
    const PyObject *lock;
    struct code_sites *sites; /* NULL where its code is gone or was never seen */
    uint32_t instruction;
    uint32_t thread;
};

static struct holder holders[HOLDERS];

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
static void release_sites(void *known)
{
    struct code_sites *sites = known;
    for (unsigned index = 0; sites && sites->holds && index < HOLDERS; index++)
        if (holders[index].sites == sites)
            holders[index].sites = NULL;
    if (sites)
        seen_stacks_forget();
    free(sites);
}

/* --- is it free?

   Their own memory tells soonest, in an RLock nothing else does. Whether the fields lie where we look for them is tried
   with new locks before shims are put in place. */

#if PY_VERSION_HEX >= 0x030e0000
struct plain_lock {
    PyObject_HEAD
    PyMutex lock;
};

struct recursive_lock {
    PyObject_HEAD
    PyMutex lock;
    unsigned long long owner;
    size_t count; /* of the times it was taken again */
};

enum { COUNT_OF_FIRST = 0 };

/* Where it is handed to who waits for it longest, it is never free in between. */
static inline bool is_nobodys(const PyMutex *mutex)
{
    return !(__atomic_load_n(&mutex->_bits, __ATOMIC_ACQUIRE) & _Py_LOCKED);
}

static inline bool is_free_plain(PyObject *lock)
{
    return is_nobodys(&((const struct plain_lock *)(const void *)lock)->lock);
}

/* Also to who has it already. */
static inline bool is_free_recursive(PyObject *lock)
{
    const struct recursive_lock *fields = (const void *)lock;
    return is_nobodys(&fields->lock) || fields->owner == PyThread_get_thread_ident();
}
#else
struct plain_lock {
    PyObject_HEAD
    void *lock;
    PyObject *weak_references;
    char locked;
};

struct recursive_lock {
    PyObject_HEAD
    void *lock;
    unsigned long owner;
    unsigned long count;
};

enum { COUNT_OF_FIRST = 1 };

/* Who was woken by a release has the lock at once, and says so in its fields only when it has the interpreter's lock
   again: until then the semaphore beneath alone knows. */
static inline bool is_nobodys(void *semaphore)
{
    int value = 0;
    return sem_getvalue(semaphore, &value) == 0 && value > 0;
}

static inline bool is_free_plain(PyObject *lock)
{
    const struct plain_lock *fields = (const void *)lock;
    return !fields->locked && is_nobodys(fields->lock);
}

/* Also to who has it already. */
static inline bool is_free_recursive(PyObject *lock)
{
    const struct recursive_lock *fields = (const void *)lock;
    if (fields->count)
        return fields->owner == PyThread_get_thread_ident();
    return is_nobodys(fields->lock);
}
#endif

/* By who had it already: it is held since the first time. */
static inline bool is_taken_again(PyObject *lock)
{
    return ((const struct recursive_lock *)(const void *)lock)->count > COUNT_OF_FIRST;
}

/* A semaphore of multiprocessing, by its own method. */
static bool is_free_semaphore(PyObject *semaphore, void *is_zero)
{
    PyObject *answer = ((PyObject * (*)(PyObject *, PyObject *)) is_zero)(semaphore, NULL);
    bool is_free = answer == Py_False;
    Py_XDECREF(answer);
    return is_free;
}

/* What `look` sees before a lock is taken, while it is held, and after its release. */
static bool is_seen_by(PyObject *lock, bool (*look)(PyObject *))
{
    bool before = look(lock);
    PyObject *taken = PyObject_CallMethod(lock, "acquire", NULL);
    bool held = taken && look(lock);
    PyObject *released = taken ? PyObject_CallMethod(lock, "release", NULL) : NULL;
    bool after = released && look(lock);
    Py_XDECREF(taken);
    Py_XDECREF(released);
    PyErr_Clear();
    return before && !held && after;
}

static bool is_unowned(PyObject *lock)
{
    const struct recursive_lock *fields = (const void *)lock;
    return fields->count == 0 && fields->owner != PyThread_get_thread_ident();
}

static bool plain_lock_is_known(PyObject *lock)
{
    bool fits = Py_TYPE(lock)->tp_basicsize == (Py_ssize_t)sizeof(struct plain_lock);
    return fits && is_seen_by(lock, is_free_plain);
}

static bool recursive_lock_is_known(PyObject *lock)
{
    bool fits = Py_TYPE(lock)->tp_basicsize >= (Py_ssize_t)sizeof(struct recursive_lock);
    return fits && is_seen_by(lock, is_unowned);
}

/* --- who has it */

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

static bool holders_unknown; /* locks were taken that nobody looked at */

/* Threads are numbered anew: in a new recording, in a forked child. */
static void forget_holders(void)
{
    holders_unknown = false;
    memset(holders, 0, sizeof holders);
}

/* `held by thread 2 at /srv/app.py:41 hold`, as a number in strings; 0 where nobody else was seen to take it: who waits
   for a lock that he took himself waits for a sign, as conditions do. */
static __attribute__((noinline)) uint32_t holder_detail(const PyObject *lock)
{
    char text[1200];
    if (holders_unknown)
        forget_holders();
    const struct holder *holder = holder_of(lock);
    if (holder->lock != lock || !holder->thread || holder->thread == current_thread->number)
        return 0;
    int length = snprintf(text, sizeof text, "held by thread %u", holder->thread);
    if (holder->sites) {
        PyCodeObject *code = holder->sites->code;
        int line = PyCode_Addr2Line(code, (int)(holder->instruction * sizeof(_Py_CODEUNIT)));
        const char *file = PyUnicode_AsUTF8(code->co_filename);
        const char *function = file ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
        if (function)
            length += snprintf(text + length, 1100, " at %.800s:%d %.200s", file, line, function);
        else
            PyErr_Clear();
    }
    return string_intern(text, (size_t)length);
}
