/* The sites and stacks of the calls of a watched process, for the files `sites` and `stacks`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fields.h"
#include "sampler/numbers.h"

enum { STACKS_AT_MOST = 1 << 18 };

struct kernel_stacks {
    struct site *site;
    struct stack *stack;
    uint32_t sites, stacks, room_for_sites, room_for_stacks;
    struct numbers site_numbers, stack_numbers;
};

/* The number of the site of a function in a file, both given as numbers of texts; 0 if there is no room. */
uint32_t kernel_site(struct kernel_stacks *stacks, uint32_t file, uint32_t function, bool is_of_program);

/* The number of the stack of a site that was called from `outer`, a number or 0; 0 if there is no room. */
uint32_t kernel_stack(struct kernel_stacks *stacks, uint32_t site, uint32_t outer, bool is_cut);

void kernel_stacks_free(struct kernel_stacks *stacks);
