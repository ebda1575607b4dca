/* Secrets that SQL gives as bare words. */
#pragma once

#include <stddef.h>

#include "core/statement.h"

/* Where a secret begins that is a bare word, the rest of the text becomes `?`; returns the text's length. */
size_t hide_bare_secrets(enum dialect dialect, char *text, size_t length);
