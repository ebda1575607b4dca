/* The loaded objects that native calls come from: where each lies, and its site. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/loaded_object.h"

enum { CALLERS = 512, CALLER_NAME = 100 };

/* A loaded object that has been looked at. */
struct caller {
    struct region all; /* empty: there is none */
    const void *dynamic;
    uint32_t first, slots; /* its part of what was exchanged (native/native_objects.c); none of one that is left out */
    uint32_t site, serial; /* of the recording that the number belongs to */
    char name[CALLER_NAME];
};

/* The site of the object in which code at that address lies; 0 where it is none of those. */
uint32_t native_caller_site(const void *address);

/* The one that was added for this object; NULL where there is none. */
struct caller *native_caller_of(const struct loaded_object *object);

/* Add an object; others that lay there are there no more. NULL where there is no room. */
struct caller *native_caller_add(const struct loaded_object *object);

/* Number the sites of those that have none in this recording. */
void native_callers_name(void);

/* There are none. */
void native_callers_forget(void);
