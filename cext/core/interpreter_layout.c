#include "core/interpreter_layout.h"

#include <stddef.h>

#define NAME_OF_PLACE(name) #name,
const char *const interpreter_layout_names[] = {INTERPRETER_LAYOUT(NAME_OF_PLACE) NULL};
