/* Loaded objects whose calls are not recorded as native ones: the C library with its parts, and the loader, whose own
   calls are parts of calls; interpose itself; the interpreter, and those of its extension modules that only cover system
   calls, because their calls are recorded as calls of Python. */
#pragma once

#include <stdbool.h>

#include "core/loaded_object.h"

/* Call this first. The other functions run while the loader lists its objects, and must not call it: another thread that loads
   an object may be waiting for the list, so both would deadlock. */
void left_out_objects_begin(void);

/* The last part of its path; empty for the program itself. */
const char *name_of_object(const struct loaded_object *object);

/* Of a list that ends with NULL. */
bool begins_with_one_of(const char *name, const char *const *beginnings);

bool object_is_of_the_c_library(const struct loaded_object *object);
/* Is it the C library's, or ours? */
bool object_is_apart(const struct loaded_object *object);
bool object_is_left_out(const struct loaded_object *object);
