/* The monitor: a process beside the program that compresses what was recorded (interpose/monitor.py), started when an
   experiment has grown and nobody watches it yet.

   The program must not see it: a child that is forked in the ordinary way raises SIGCHLD and is returned by the
   program's own waitpid(-1). So it is cloned twice with no signal at its end, and the one in between is reaped as only
   children of that sort are. It is in a session of its own, and inherits neither descriptors, signals nor environment. */
#pragma once

#include <stddef.h>

#include "core/visible.h"

/* The command: an interpreter, and the directories for its imports, separated by colons. Call it before anything is
   recorded; without it, or if the texts are too long, there is no monitor. */
VISIBLE void monitor_prepare(const char *interpreter, const char *path);

/* Start one for the experiment with this founder's directory, if allowed. 0 or the error number: EBUSY if there is
   one. */
int monitor_start(const char *founder);

/* This process will be sampled: start a monitor, if there is none, and let the existing one read our memory, if the
   kernel requires permission. */
VISIBLE void monitor_begin_sampling(void);
