/* Which functions are traced: those of modules with names that match patterns, or the program's own code. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/visible.h"

enum { CHOICES = 64, CHOICE_BYTES = 256 };

struct code_choice {
    uint32_t serial; /* a new number whenever the choice changes */
    unsigned count;  /* 0: the program's own code is chosen */
    struct {
        char module[CHOICE_BYTES], function[CHOICE_BYTES]; /* patterns, as file names have them */
    } pattern[CHOICES];
};

/* The program's own code is chosen. */
VISIBLE void choose_own_code(struct code_choice *choice);

/* Functions of modules are chosen as well. False if there are too many. */
VISIBLE bool choose(struct code_choice *choice, const char *module, const char *function);

bool is_chosen(const struct code_choice *choice, const char *module, const char *function, bool own);
