/* The texts of a watched process, for its file `strings`. A text has its number before its content is final. The names of errors
   come first, so that an errno is the number of its name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/numbers.h"

/* Programs never see the kernel's errors above ERRORS. */
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

/* Replace the text with this number, unless it is a shared one. */
void texts_replace(struct kernel_texts *texts, uint32_t number, const char *text);

/* The number of an error's name; 0 if programs do not take it for an error: nothing was there yet, or a signal came. */
uint32_t text_of_error(int64_t error);
