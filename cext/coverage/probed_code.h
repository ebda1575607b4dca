/* Code objects that are executed instead of others: the same, except for probes and room for their stubs (3.11).
   What Python shows of one (co_code, the tables of lines and of exceptions, the constants) does not change. */
#pragma once

#include "coverage/covered_code.h"
#include "coverage/probe_layout.h"

/* The same code with probes, if it or code inside it is chosen; NULL if nothing is. Made once. Borrowed. */
PyCodeObject *once_with_probes(PyCodeObject *of, frame *here);

/* The same code with other instructions and constants, and a stack so much deeper. */
PyCodeObject *code_like(PyCodeObject *of, PyObject *instructions, PyObject *consts, int deeper);
