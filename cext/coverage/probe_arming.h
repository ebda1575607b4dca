/* How a probe is put into code, and taken out of it (3.11). */
#pragma once

#include "coverage/probe_layout.h"
#include "cpython/frame.h"

/* Put the jump to its stub where the probe is. */
void arm(PyCodeObject *code, const struct probes *probes, struct probe *probe);

/* The same in code that has run already: what the instruction before does as well must not pass over the probe. */
void arm_again(PyCodeObject *code, const struct probes *probes, struct probe *probe);

/* Put back what stood there. */
void disarm(PyCodeObject *code, struct probe *probe);

/* Write the stub with the first unit `unit`, which returns to the unit `back`. */
void put_stub(_Py_CODEUNIT *at, uint32_t unit, uint32_t back);
