/* How much is kept of what a call was about: a statement, a path, an address, a command; by the kind that such things are
   of. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kinds.h"
#include "core/visible.h"

#define HOW_MUCH(X) \
    X(usual,      "a statement with `?` for its literals, a command's program, all else as it was given") \
    X(nothing,    "nothing") \
    X(shape,      "what it is made of: a statement's first word, a path with its parts as `*`, a program's name") \
    X(normalised, "the same, where only numbers differ: numbers as `*`, literals as `?`, a command's program") \
    X(whole,      "as it was given: a statement with its literals, a command with its arguments")
#define NUMBER_OF_HOW_MUCH(name, meaning) KEEP_##name,
enum how_much { HOW_MUCH(NUMBER_OF_HOW_MUCH) };

VISIBLE void arguments_choose(enum kind kind, enum how_much how_much);
VISIBLE enum how_much arguments_kept(enum kind kind);

/* From now on each text that is to be kept adds so much to what recording cost on its thread: calls have more to do if
   they are about a path, an address or the like than calibration's calls, which are about nothing. */
VISIBLE void arguments_cost(uint32_t ns);

/* The number of what may be kept of a text; 0 for nothing. */
VISIBLE uint32_t argument_intern(enum kind kind, const char *text, size_t bytes);

/* The same of a path, which may be a URL by mistake: os.path.exists(url). */
VISIBLE uint32_t path_intern(enum kind kind, const char *path, size_t bytes);

/* Write what may be kept of a text that has at most as many bytes as there is room for; returns the length. */
VISIBLE size_t argument_shape(enum kind kind, const char *text, size_t bytes, char *shape);
VISIBLE size_t argument_normalise(enum kind kind, const char *text, size_t bytes, char *normalised);
