#include "hooks/lock_holders.h"

#include <stdio.h>
#include <stdlib.h>

#include "hooks/filtered_stacks.h"

struct holder holders[HOLDERS];

/* False if it may still stand there. */
static bool forget_sites_at(unsigned place, const struct code_sites *sites)
{
    if (__atomic_load_n(&holders[place].sites, __ATOMIC_RELAXED) != sites)
        return true;
    if (!side_begin(side_lock_of(place)))
        return false;
    if (holders[place].sites == sites)
        __atomic_store_n(&holders[place].sites, NULL, __ATOMIC_RELAXED);
    side_end(side_lock_of(place));
    return true;
}

void release_sites(void *known)
{
    struct code_sites *sites = known;
    bool is_nowhere = true;
    for (unsigned place = 0; sites && __atomic_load_n(&sites->holds, __ATOMIC_RELAXED) && place < HOLDERS; place++)
        is_nowhere &= forget_sites_at(place, sites);
    if (sites && !sites->interpreter)
        seen_stacks_forget();
    if (is_nowhere)
        free(sites);
}

bool holders_kept, holders_unknown;

void forget_holders(void)
{
    __atomic_store_n(&holders_unknown, false, __ATOMIC_RELAXED);
    if (!__atomic_exchange_n(&holders_kept, false, __ATOMIC_RELAXED))
        return;
    for (unsigned place = 0; place < HOLDERS; place++)
        if (__atomic_load_n(&holders[place].lock, __ATOMIC_RELAXED) && side_begin(side_lock_of(place))) {
            holder_put(&holders[place], &(struct holder){0});
            side_end(side_lock_of(place));
        }
}

/* The code stays alive for whoever gets this; NULL if it is just being freed. */
static PyCodeObject *keep_code(const struct holder *holder)
{
    return holder->sites ? code_keep(holder->sites->code) : NULL;
}

/* Whether the program's own code makes the present call, and no library does for it. */
static bool own_code_calls(void)
{
    frame *caller = frame_innermost(PyThreadState_Get());
    const struct code_sites *sites = caller ? sites_of(caller) : NULL;
    return sites && sites->own;
}

/* The present holder of the lock, and a new reference to its code, or NULL. False if nobody holds it, or, without
   `or_this`, this thread. */
static bool find_holder(const PyObject *lock, bool or_this, struct holder *found, PyCodeObject **code)
{
    unsigned side = side_lock_of(place_of_holder(lock));
    if (!side_begin(side))
        return false;
    *found = *holder_of(lock);
    bool is_held = found->lock == lock && found->thread && (or_this || found->thread != current_thread->number);
    *code = is_held ? keep_code(found) : NULL;
    side_end(side);
    return is_held;
}

/* ` at /srv/app.py:41 hold`; returns its length. */
static int describe_place(PyCodeObject *code, uint32_t instruction, char *text, size_t room)
{
    int line = PyCode_Addr2Line(code, (int)(instruction * sizeof(_Py_CODEUNIT)));
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    const char *function = file ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
    if (function)
        return snprintf(text, room, " at %.800s:%d %.200s", file, line, function);
    PyErr_Clear();
    return 0;
}

static uint32_t detail_of_holder(const PyObject *lock, bool or_this)
{
    char text[1200];
    struct holder holder;
    PyCodeObject *code;
    if (__atomic_load_n(&holders_unknown, __ATOMIC_RELAXED))
        forget_holders();
    if (!find_holder(lock, or_this, &holder, &code))
        return 0;
    int length = snprintf(text, sizeof text, "held by thread %u", holder.thread);
    if (code)
        length += describe_place(code, holder.instruction, text + length, sizeof text - (size_t)length);
    Py_XDECREF(code);
    return detail_intern(text, (size_t)length);
}

uint32_t holder_detail(const PyObject *lock, bool may_be_own)
{
    return detail_of_holder(lock, may_be_own && own_code_calls());
}

uint32_t other_holder_detail(const PyObject *lock)
{
    return detail_of_holder(lock, false);
}
