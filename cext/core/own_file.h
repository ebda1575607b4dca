/* The files that are installed beside our library. */
#pragma once

#include <stdbool.h>

#include "core/open_file.h"

/* The full path of the file `name` there, whether or not it exists; false if the path is too long. */
bool own_file(char path[PATH_BYTES], const char *name);
