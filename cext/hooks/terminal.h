/* Calls that read from or write to a terminal, while the dialogue is kept: their text. What is typed is kept only if
   the terminal showed it: its echo was on when the call began and when it ended, and waiting input was not typed while
   it was seen off. The side of a pseudo-terminal that plays the user (pexpect, script) shows nothing to anybody. No
   code of the program runs; a buffer written in Python has nothing to keep. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/call.h"

void terminal_begin(struct call *call);

/* The call ended, with that result. */
void terminal_end(const struct call *call, PyObject *result);
