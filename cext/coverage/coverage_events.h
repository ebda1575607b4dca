/* How a place is seen to be come to: by sys.monitoring from 3.12 on, before by probes in the bytecode, or by a trace function. */
#pragma once

#include "coverage/covered_code.h"

#if PY_VERSION_HEX >= 0x030c0000
#include "coverage/coverage_monitor.h"
#else
#include "coverage/coverage_probes.h"
#endif
