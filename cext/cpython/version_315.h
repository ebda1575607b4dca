/* CPython 3.15: as 3.14, to us; the numbers of opcodes and of the states of coroutines are others (cpython/version.h). */
#pragma once

#include "cpython/version_since_314.h"
