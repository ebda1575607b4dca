/* The exec of a child that subprocess forked to run a function first (`preexec_fn`), and its program then. Such a child
   is a Python, and recorded, until C code of the interpreter's runs the program: that is noted as for os.execv. For it,
   the functions by which that C code runs programs are exchanged in its import table. If they cannot be, the exec is
   not noted.

   A child that runs no function first comes here too, perhaps in its parent's memory (vfork), but nothing is noted. */
#pragma once

#include "hooks/call.h"

/* A call begins that starts a program, or becomes one: fork_exec, execv. */
void forked_exec_begin(struct call *call);

/* `call` has ended; it need not be the innermost one. */
void forked_exec_over(const struct call *call);

/* Restore what was exchanged. False if somebody else has replaced ours since. */
bool forked_exec_end(void);
