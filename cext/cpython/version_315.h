/* CPython 3.15: as 3.14, to us; the numbers of opcodes and of the states of coroutines are others (cpython/version.h).
   Functions are told to begin: without that, fewer functions had their share of the time (tests/lines/test_lines_truth.py). */
#pragma once

#include "cpython/version_since_314.h"

#define LINE_TELLS_BEGINNING 0
