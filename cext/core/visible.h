/* What libinterpose.so shows to the shims; all else in it is hidden. */
#pragma once

#define VISIBLE __attribute__((visibility("default")))
/* The same of a name that libraries have as well (curses' filter), and which would be taken for theirs in a program
   that loads them: to the linker it has another one. */
#define VISIBLE_AS(name) __asm__("interpose_" name) VISIBLE
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
