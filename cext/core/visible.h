/* What libinterpose.so shows to the shims; all else in it is hidden. */
#pragma once

#if __has_include("names.h") /* setup.py makes it: what is visible begins with interpose_ for the linker */
#include "names.h"
#endif

#define VISIBLE __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
