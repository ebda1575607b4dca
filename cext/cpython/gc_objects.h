/* The objects that the collector looks through, one after the other: a list of them, which Python gives, takes memory of
   the program's that may be large. */
#pragma once

#include <Python.h>

#include "core/visible.h"

/* `visit` may make objects and let them go again, but none that was there before; it gives 1. */
VISIBLE void visit_tracked(int (*visit)(PyObject *, void *), void *given);
