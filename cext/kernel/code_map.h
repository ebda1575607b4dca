/* Finds the function at an address in a watched process, from the code files that the process has mapped and their symbols. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel_stacks.h"
#include "kernel/kernel_texts.h"
#include "sampler/met_functions.h"

struct mapping {
    uint64_t begin, end, offset;
    char *path;
};

struct code_map {
    struct numbers returns; /* of addresses: RETURN, or NO_RETURN */
    struct mapping *mapping;
    size_t mappings, room;
    struct met_functions functions;
};

/* The process maps a file, which replaces older mappings at these addresses. */
void code_map_add(struct code_map *map, uint64_t begin, uint64_t bytes, uint64_t offset, const char *path);

/* Add what the process has already mapped. */
void code_map_read(struct code_map *map, pid_t pid);

/* The site of the function with the code at the address; 0 if no file has it. `program` is the path of the program. */
uint32_t code_map_site(struct code_map *map, struct kernel_texts *texts, struct kernel_stacks *stacks, pid_t pid, const char *program,
                       uint64_t address);

/* Is the address a return address: does a call instruction come before it? */
bool code_map_is_return(struct code_map *map, pid_t pid, uint64_t address);

/* The process has executed another program. */
void code_map_forget(struct code_map *map);
