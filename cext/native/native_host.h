/* What native calls need to know of the process that makes them: an interpreter (native/native_in_python.c), or a program in
   another language (program/program_host.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/loaded_object.h"
#include "core/recorder.h"

/* Before the first call. */
void native_host_begin(void);

/* The calling thread, if calls of C code on it are recorded; else NULL. */
struct thread *native_host_thread(void);

/* Where a native call comes from. */
struct native_origin {
    const void *caller; /* its return address */
    uintptr_t frame;    /* its wrapper's frame */
};

/* The stack of a call that C code makes. */
uint32_t native_host_stack(struct thread *thread, struct native_origin from);

/* The thread's usage is to be looked at, by a call that nothing prevents from it. */
void native_host_is_due(struct thread *thread);

/* Is it an object whose calls are not native ones, but the host's own? */
bool native_host_leaves_out(const struct loaded_object *object);

/* Is it the interpreter, whose functions are not those of the program? */
bool native_host_is_interpreter(const struct loaded_object *object);

/* Is it the program's own code? */
bool native_host_is_own(const struct loaded_object *object);

/* Is it one whose calls of encrypted connections are the host's own? */
bool native_host_covers_tls(const struct loaded_object *object);

/* A library has looked a function up by name: it may have loaded others before. */
void native_host_looked_up(void);

/* Functions that the host exchanges itself, besides the native intrinsics or in the place of their wrappers. */
struct native_exchange {
    const char *name;
    void *ours;  /* NULL: it is looked for, and not exchanged */
    void **real; /* where the real one is put; NULL if there is none of that name */
    bool is_of_any; /* any one object may have it, also one loaded later; else it is the C library's */
    void **needs; /* another function, which ours calls; NULL: none */
};
extern struct native_exchange native_host_exchanges[];
extern unsigned native_host_exchange_count;
