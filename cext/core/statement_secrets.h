/* Secrets that stand in a statement as bare words: of PRAGMA key, of SET, of IDENTIFIED BY, of ATTACH … KEY. */
#pragma once

#include <stddef.h>

/* Cut the normalised `text` off where such a secret begins, and put ` ?` there; returns the length that is left. */
size_t hide_bare_secrets(char *text, size_t length);
