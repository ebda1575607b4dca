/* Names of savepoints that a library generates, a new one for each savepoint. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A name with a digit in it becomes `?`; returns the text's length, and sets `made` if there was one. */
size_t hide_made_savepoint(char *text, size_t length, bool *made);
