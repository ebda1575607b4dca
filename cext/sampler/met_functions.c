#include "sampler/met_functions.h"

#include <stdlib.h>
#include <string.h>

/* How many begin at the address or before. */
static unsigned count_up_to(const struct met_functions *functions, uint64_t address)
{
    unsigned low = 0, high = functions->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (functions->met[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t met_find(const struct met_functions *functions, uint64_t address)
{
    unsigned place = count_up_to(functions, address);
    return place && address < functions->met[place - 1].end ? functions->met[place - 1].site : 0;
}

void met_keep(struct met_functions *functions, struct met_function function)
{
    if (!functions->met)
        functions->met = malloc(FUNCTIONS_AT_MOST * sizeof *functions->met);
    if (!functions->met)
        return;
    functions->count = functions->count == FUNCTIONS_AT_MOST ? 0 : functions->count;
    unsigned place = count_up_to(functions, function.begin);
    memmove(functions->met + place + 1, functions->met + place, (functions->count - place) * sizeof *functions->met);
    functions->met[place] = function;
    functions->count++;
}

void met_forget(struct met_functions *functions)
{
    free(functions->met);
    *functions = (struct met_functions){0};
}
