/* Code objects that are traced as they run: which are chosen, and their names. The data of one is in its extra slot
   and is freed with it. Each keeper (line trace, coverage) has its own, and appends more. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/code_choice.h"
#include "cpython/code_extra.h"
#include "cpython/own_code.h"
#include "cpython/raised.h"

struct known_code {
    struct known_codes *kept_by;
    struct known_code *next, *previous;
    PyCodeObject *code; /* lives as long as this does */
    uint32_t serial;    /* of the choice */
    uint32_t chosen, own;
    uint32_t texts; /* the recording that the next are of */
    uint32_t file, function, module;
};

/* All that a keeper knows. */
struct known_codes {
    int index;    /* of the extra slot; below 0: none yet */
    size_t bytes; /* of each, with what its keeper has behind it */
    void (*meet)(struct known_code *);   /* a new one, or NULL */
    void (*let_go)(struct known_code *); /* one that goes */
    PyInterpreterState *interpreter;
    struct known_code *first;
    struct code_choice choice;
};

/* Below 0 if there is no room. */
VISIBLE int known_codes_begin(struct known_codes *codes);

/* Have the numbers of its names be those of this recording. */
VISIBLE void known_code_name(struct known_code *known, frame *here);

/* The same as known_code_of, where it is not known for this choice yet. An exception that is set stays as it is. */
VISIBLE struct known_code *known_code_look(struct known_codes *codes, PyCodeObject *code, frame *here);

/* The data of a code object; NULL if memory is short. */
static inline struct known_code *known_code_of(struct known_codes *codes, PyCodeObject *code, frame *here)
{
    struct known_code *known = code_extra(code, codes->index);
    return LIKELY(known && known->serial == codes->choice.serial) ? known : known_code_look(codes, code, here);
}

/* Is the code chosen, given whether it is the program's own? */
VISIBLE bool is_chosen_code(const struct known_codes *codes, const PyCodeObject *code, frame *here, bool own);
