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
    struct import_slot slots[IMPORT_SLOTS];
    unsigned count;
    void *to; /* what was put there */
    void *real; /* the original function; NULL if the loader has not resolved it yet */
};

/* The slots of the function `name` in the table of the object that contains `within`. NULL, or why there are none. */
VISIBLE const char *import_find(struct import *import, const void *within, const char *name);

/* Put `to` in all of them. False if the memory cannot be written to; then all is as it was. */
VISIBLE bool import_put(struct import *import, void *to);

/* Restore the original. False if somebody else has replaced ours. */
VISIBLE bool import_restore(struct import *import);
