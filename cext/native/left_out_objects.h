/* Loaded objects whose calls are not recorded as native ones: the C library with its parts, and the loader, whose own
   calls are parts of calls; interpose itself; the interpreter, and those of its extension modules that only cover system
   calls, because their calls are recorded as calls of Python. */
#pragma once

#include <stdbool.h>

#include "core/loaded_object.h"

/* Before the others, which the loader calls while it lists its objects: another thread may be loading one, and wait for the list, so
   nothing may be asked of the loader then. */
void left_out_objects_begin(void);

/* The last part of its path; empty for the program itself. */
const char *name_of_object(const struct loaded_object *object);

/* Of a list that ends with NULL. */
bool begins_with_one_of(const char *name, const char *const *beginnings);

bool object_is_of_the_c_library(const struct loaded_object *object);
/* Is it of the C library, or ours? */
bool object_is_apart(const struct loaded_object *object);
bool object_is_left_out(const struct loaded_object *object);
