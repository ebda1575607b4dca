/* Reads texts, each behind its length in a byte, and prints for each the trace context that it is, or an empty line.
   Each text is in memory of just its size, so that a sanitizer sees whatever is read behind it. */
#include <stdio.h>
#include <stdlib.h>

#include "core/trace_context.h"

int main(void)
{
    char shown[TRACE_PARENT_BYTES + 1];
    struct trace_context context;
    for (int bytes = getchar(); bytes != EOF; bytes = getchar()) {
        char *text = malloc((size_t)bytes);
        if (bytes && (!text || fread(text, 1, (size_t)bytes, stdin) != (size_t)bytes))
            return 1;
        bool is_valid = trace_context_parse(text, (size_t)bytes, &context);
        if (is_valid)
            trace_context_write(&context, shown);
        puts(is_valid ? shown : "");
        free(text);
    }
    return 0;
}
