/* What is kept of the path of a database, in the place of which there may be a connection string with a password. */
#pragma once

#include <stdint.h>

#include "core/visible.h"

/* A path, without the parameters of a URI, as a number in strings; 0 for anything else. */
VISIBLE uint32_t database_intern(const char *database);
