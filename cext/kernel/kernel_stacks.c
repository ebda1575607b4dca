#include "kernel/kernel_stacks.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more. */
static bool extend(void **records, uint32_t count, uint32_t *room, size_t bytes)
{
    if (count < *room)
        return true;
    uint32_t larger = *room ? 2 * *room : 64;
    void *moved = larger > STACKS_AT_MOST ? NULL : realloc(*records, larger * bytes);
    if (!moved)
        return false;
    *records = moved;
    *room = larger;
    return true;
}

uint32_t kernel_site(struct kernel_stacks *stacks, uint32_t file, uint32_t function, bool is_of_program)
{
    uint64_t key = key_of(file, (uint64_t)function << 1 | is_of_program);
    uint32_t number = numbers_find(&stacks->site_numbers, key);
    if (number || !extend((void **)&stacks->site, stacks->sites, &stacks->room_for_sites, sizeof *stacks->site))
        return number;
    stacks->site[stacks->sites++] = (struct site){.file = file, .function = function, .own = is_of_program};
    numbers_keep(&stacks->site_numbers, key, stacks->sites);
    return stacks->sites;
}

uint32_t kernel_stack(struct kernel_stacks *stacks, uint32_t site, uint32_t outer, bool is_cut)
{
    uint64_t key = key_of(site, (uint64_t)outer << 1 | is_cut);
    uint32_t number = numbers_find(&stacks->stack_numbers, key);
    if (number || !extend((void **)&stacks->stack, stacks->stacks, &stacks->room_for_stacks, sizeof *stacks->stack))
        return number;
    stacks->stack[stacks->stacks++] = (struct stack){.site = site, .outer = outer, .cut = is_cut};
    numbers_keep(&stacks->stack_numbers, key, stacks->stacks);
    return stacks->stacks;
}

void kernel_stacks_free(struct kernel_stacks *stacks)
{
    free(stacks->site);
    free(stacks->stack);
    numbers_clear(&stacks->site_numbers);
    numbers_clear(&stacks->stack_numbers);
    memset(stacks, 0, sizeof *stacks);
}
