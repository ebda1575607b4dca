/* What libinterpose.so shows to the shims; all else in it is hidden. */
#pragma once

#define VISIBLE __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
