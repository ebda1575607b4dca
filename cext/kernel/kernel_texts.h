/* The texts of a process of the kernel's view, which become its file `strings`: their numbers are given before it is certain what
   they say. The names of errors stand before all others: an error's number is that of its name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/numbers.h"

/* Beyond these errors the kernel has some that programs do not see. */
enum { ERRORS = 133, TEXTS_AT_MOST = 1 << 18, SHARED_TEXTS = 8 };

struct kernel_texts {
    char **text;
    size_t count, room;
    struct numbers numbers; /* of those that were added once */
    struct {
        const char *text; /* compared as an address */
        uint32_t number;
    } shared[SHARED_TEXTS];
};

void texts_free(struct kernel_texts *texts);

/* A number for a copy of this text, from ERRORS + 1 on; 0 if there is no room. */
uint32_t texts_add(struct kernel_texts *texts, const char *text);

/* The same number each time for the same text. */
uint32_t texts_once(struct kernel_texts *texts, const char *text);

/* The same for a text that is never freed. */
uint32_t texts_share(struct kernel_texts *texts, const char *text);

/* The text with this number says something else, unless it is a shared one. */
void texts_replace(struct kernel_texts *texts, uint32_t number, const char *text);

/* The number of an error; 0 if it is none: nothing was there yet, or a signal came. */
uint32_t text_of_error(int64_t error);
