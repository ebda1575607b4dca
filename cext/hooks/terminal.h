/* Calls that read from a terminal or write to it, where the dialogue is kept: what they moved.

   What is typed is kept only where the terminal showed it: its echo was on when the call began and when it ended, and what
   lay there already when it began was not typed while it was seen off. The side of a pseudo-terminal that plays the user
   (pexpect, script) shows nothing to anybody. Of the program nothing is run; a buffer that is written in Python has nothing
   to be kept. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/call.h"

void terminal_begin(struct call *call);

/* The call ended, with that result. */
void terminal_end(const struct call *call, PyObject *result);
