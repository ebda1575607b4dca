/* Loaded objects whose calls are not recorded as native ones. Left out are: the C library and what belongs to it, and the
   loader, whose own calls are parts of calls; interpose itself; the interpreter, and those of its extension modules that are
   no more than a cover of system calls: what they call is recorded as the call of Python that it is. */
#pragma once

#include <stdbool.h>

#include "core/loaded_object.h"

bool object_is_of_the_c_library(const struct loaded_object *object);
bool object_is_left_out(const struct loaded_object *object);
