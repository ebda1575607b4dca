/* The import table of a loaded object: the slots through which its code calls a function of another object, exchanged
   while the program runs, and the undo. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

enum { IMPORT_SLOTS = 4 }; /* a function is called through one, and its address taken through another */

struct import_slot {
    void **address;
    void *before; /* its content while nothing is exchanged */
    bool read_only; /* RELRO */
};

struct import {
    const char *name; /* of the function */
    struct import_slot slots[IMPORT_SLOTS];
    unsigned count;
    void *to; /* what was put there */
    void *real; /* the original function; NULL if the loader has not resolved it yet */
};

/* Find, in one pass, the slots of these functions, the last of which is NULL, in the table of the object that contains
   `within`; one that is not in the table has none. NULL, or why there is no table. */
VISIBLE const char *imports_find(struct import *const imports[], const void *within);

/* Put `to` in all of them. False if the memory cannot be written to; then all is as it was. */
VISIBLE bool import_put(struct import *import, void *to);

/* Whether this function is the C library's own. False for a preloaded one, and for NULL. */
VISIBLE bool function_is_of_the_c_library(const void *function);

/* Restore the original. False if somebody else has replaced ours. */
VISIBLE bool import_restore(struct import *import);
