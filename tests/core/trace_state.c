/* Reads texts, each behind its length in two bytes, and prints for each the trace state that is kept of it. Each text is
   in memory of just its size, so that a sanitizer sees whatever is read behind it. */
#include <stdio.h>
#include <stdlib.h>

#include "core/trace_state.h"

int main(void)
{
    char kept[TRACE_STATE_BYTES + 1];
    for (int high = getchar(); high != EOF; high = getchar()) {
        size_t bytes = (size_t)high << 8 | (size_t)getchar();
        char *text = malloc(bytes);
        if (bytes && (!text || fread(text, 1, bytes, stdin) != bytes))
            return 1;
        trace_state_keep(text, bytes, kept);
        puts(kept);
        free(text);
    }
    return 0;
}
