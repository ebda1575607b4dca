#define _GNU_SOURCE
#include "kernel/system_calls.h"

#include <stdlib.h>
#include <sys/syscall.h>

enum { NUMBERS = 1024 };

const enum kind kinds_of_descriptors[KINDS_OF_DESCRIPTORS] = {KIND_file, KIND_screen, KIND_net, KIND_process};

/* Calls of recent kernels have the same number on every machine, and the headers of the build may be older. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#define SYS_fchmodat2 452
#define SYS_map_shadow_stack 453
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_set_self_attr 460
#define SYS_lsm_list_modules 461
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#define SYS_open_tree_attr 467
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif

/* A number as text, or the name where this machine has no such call. */
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

static struct listed {
    struct system_call is;
    const char *number;
} listed[] = {
#define LISTED(name, kind, result, effect) {{#name, kind, result, effect, 0}, TEXT(SYS_##name)},
    SYSTEM_CALLS(LISTED)
#undef LISTED
};

const unsigned system_calls_listed = sizeof listed / sizeof *listed;

static const struct system_call *by_number[NUMBERS];
static struct system_call unlisted = {.name = NULL, .kind = KIND_system};

static unsigned kinds_of(const struct system_call *call)
{
    return call->kind == BY_DESCRIPTOR ? KINDS_OF_DESCRIPTORS : 1;
}

static void give_number(struct listed *each)
{
    char *end;
    unsigned long number = strtoul(each->number, &end, 10);
    if (end != each->number && !*end && number < NUMBERS)
        by_number[number] = &each->is;
}

void system_calls_prepare(void)
{
    uint32_t next = 1;
    for (unsigned place = 0; place < system_calls_listed; place++) {
        listed[place].is.intrinsic = next;
        next += kinds_of(&listed[place].is);
        give_number(&listed[place]);
    }
    unlisted.intrinsic = next;
}

const struct system_call *system_call_of(int64_t number)
{
    const struct system_call *found = number >= 0 && number < NUMBERS ? by_number[number] : NULL;
    return found ? found : &unlisted;
}

uint32_t system_call_intrinsic(const struct system_call *call, enum kind kind)
{
    for (uint32_t place = 0; call->kind == BY_DESCRIPTOR && place < KINDS_OF_DESCRIPTORS; place++)
        if (kinds_of_descriptors[place] == kind)
            return call->intrinsic + place;
    return call->intrinsic;
}

const struct system_call *system_call_listed(unsigned place)
{
    return &listed[place].is;
}
