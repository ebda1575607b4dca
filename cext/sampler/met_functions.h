/* Native functions that were met in a process, by their addresses. */
#pragma once

#include <stdint.h>

enum { FUNCTIONS_AT_MOST = 4096 };

/* From `begin` to `end`, and what is known of it: a number that is not 0. */
struct met_function {
    uint64_t begin, end;
    uint32_t site;
};

struct met_functions {
    struct met_function *met; /* in the order of their addresses */
    unsigned count;
};

/* What is known of the function at the address; 0 if it was not met. */
uint32_t met_find(const struct met_functions *functions, uint64_t address);

/* Of many all are forgotten first. */
void met_keep(struct met_functions *functions, struct met_function function);

void met_forget(struct met_functions *functions);
