/* The loaded objects that make native calls: the addresses of each, and its site. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/loaded_object.h"
#include "core/threads.h"

enum { CALLERS = 512, CALLER_NAME = 100 };

/* A loaded object that was examined. */
struct caller {
    struct region all; /* empty: unused */
    const void *dynamic;
    uint32_t first, slots; /* its exchanged slots (native/native_objects.c); none for one that is left out */
    uint32_t site, serial; /* of the recording that the number belongs to */
    char name[CALLER_NAME];
};

/* The stack of a call that the object with code at that address makes from `outer`; that itself, if no object has it. */
uint32_t native_stack_of(struct thread *thread, const void *address, uint32_t outer);

/* The entry of this object; NULL if there is none. */
struct caller *native_caller_of(const struct loaded_object *object);

/* Add an object; others at its addresses are gone. NULL if there is no room. */
struct caller *native_caller_add(const struct loaded_object *object);

/* Number the sites of those that have none in this recording. */
void native_callers_name(void);

/* Remove all. */
void native_callers_forget(void);
