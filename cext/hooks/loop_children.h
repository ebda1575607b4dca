/* The children of an event loop written in C: uvloop's forks, runs the program and waits by itself, with the functions of the C
   library that hooks/loop_waits.h exchanges. Who calls these keeps errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "core/fields.h"

/* The loop's module has forked, from then on. */
void loop_forked(pid_t child, uint64_t start_ns);

/* This process is about to be that program, searched in PATH. `environ` has what it needs to be recorded. NULL if there is
   no memory. If the program could not be run, pass the result and the error to loop_has_not_become. */
struct loop_program;
struct loop_program *loop_becomes(const char *name, char *const *words);
void loop_has_not_become(struct loop_program *program, int error);

/* Wait as waitpid(2) does, and note whom that was for. */
pid_t loop_waits_for(pid_t which, int *status, int options);
