/* What collectors that are asked once for a place say of it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "collectors/identification.h"
#include "core/recorder.h"

/* The place of a call. Of one that ended elsewhere than it was made it may not be known any more. */
const struct identified *identified_place(const struct span *span, const void *native, bool is_here);

/* The place of a call whose end will be seen from elsewhere. */
void collect_place(const struct span *span);
