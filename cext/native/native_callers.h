/* The loaded objects that make native calls: the addresses of each, and its site. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/loaded_object.h"
#include "core/threads.h"

enum { CALLERS = 512, CALLER_NAME = 100, CALLER_PATH = 512 };

/* A loaded object that was examined. */
struct caller {
    struct region all; /* empty: unused */
    const void *dynamic;
    uint32_t first, slots; /* its exchanged slots (native/native_objects.c); none for one that is left out */
    uint32_t site, serial; /* of the recording that the number belongs to */
    bool is_own;         /* the program's own code */
    bool is_interpreter; /* stacks end here: its callers are known from Python */
    bool is_shown;       /* it is neither the C library's nor ours */
    uintptr_t file_begin; /* address of the file's first byte, extrapolated from where its code is mapped */
    const void *frames;  /* the head of its table of frame rules, or NULL */
    char name[CALLER_NAME];
    char path[CALLER_PATH]; /* empty if it does not fit */
};

/* The object with code at that address; NULL if there is none. */
const struct caller *native_caller_at(uintptr_t address);

/* Changes when an object is unloaded, and with each recording: what was known of addresses is then invalid. */
uint64_t native_callers_now(void);

/* The entry of this object; NULL if there is none. */
struct caller *native_caller_of(const struct loaded_object *object);

/* Add an object; others at its addresses are gone. NULL if there is no room. */
struct caller *native_caller_add(const struct loaded_object *object);

/* Number the sites of those that have none in this recording. */
void native_callers_name(void);

/* Remove all. */
void native_callers_forget(void);
