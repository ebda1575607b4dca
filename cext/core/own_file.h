/* The files that are installed beside our library. */
#pragma once

#include <stdbool.h>

#include "core/open_file.h"

/* The whole path of the file of that name there, which may not exist; false if it is too long. */
bool own_file(char path[PATH_BYTES], const char *name);
