/* What is kept of the name of a program that is to be run, as a number in strings. If there is no such program, it may be
   a whole line with a password that was given in the place of a program. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

/* Of a path, or of a name that is searched: as given if there is such a file, else a plain name, else `?`. */
VISIBLE uint32_t program_intern(const char *path);

/* Of a shell's line: the first word that is not an assignment. If that depends on expansion or quoting, or is not plain,
   only the shell is kept. */
VISIBLE uint32_t program_of_line(const char *text, size_t bytes);
