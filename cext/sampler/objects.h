/* The shared objects that a process has mapped, and the functions in them by their symbols. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/fields.h"

enum { SYMBOL_BYTES = 256 };

/* Code of a shared object: a function, or what lies between functions with symbols. The addresses are the process's. */
struct native_function {
    uint64_t begin, end;
    const char *path; /* of the object; NULL if it is the interpreter, the loader or one of interpose's: their parts are not told apart */
    bool is_of_program; /* it is not in a library that a program other than Python uses */
    char name[SYMBOL_BYTES]; /* empty if it has no symbol */
};

struct mapped;

/* What is mapped, as it was last read. */
struct objects {
    struct mapped *mapped;
    unsigned count, room;
    uint64_t read_ns;
};

/* What has the address in the process of that thread; false if it is in no object. `runtime` is an address in the interpreter's data; 0: it has none. What is mapped is
   read again for an unknown address, once a second at most; `is_new` says so: what was found before may be elsewhere. */
bool objects_find(struct objects *objects, pid_t thread, uint64_t runtime, uint64_t address, struct native_function *found,
                  bool *is_new);

/* Read what is mapped again, once a second at most; whether it is other code. */
bool objects_read_again(struct objects *objects, pid_t thread, uint64_t runtime);

/* The last part of its path. */
const char *object_name(const char *path);

void objects_forget(struct objects *objects);
