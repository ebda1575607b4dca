#include "hooks/lock_holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/filtered_stacks.h"

struct holder holders[HOLDERS];

void release_sites(void *known)
{
    struct code_sites *sites = known;
    for (unsigned index = 0; sites && sites->holds && index < HOLDERS; index++)
        if (holders[index].sites == sites)
            holders[index].sites = NULL;
    if (sites && !sites->interpreter)
        seen_stacks_forget();
    free(sites);
}

bool holders_unknown;

void forget_holders(void)
{
    holders_unknown = false;
    memset(holders, 0, sizeof holders);
}

uint32_t holder_detail(const PyObject *lock)
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
    return detail_intern(text, (size_t)length);
}
