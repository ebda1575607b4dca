/* CPython 3.15: as 3.14, to us; the numbers of opcodes and of the states of coroutines are others, and a first line is told once where
   the event of the beginning is switched off (cpython/version.h). */
#pragma once

#include "cpython/version_since_314.h"

#define LINE_TELLS_BEGINNING 0
