/* Whether what a program passes to the kernel can be read: where it is no memory, the kernel refuses it without a fault, and so
   must we. The kernel says so of each page. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* The length of a text, at most `most`; -1 where it cannot be read, or where the kernel does not say. */
VISIBLE long readable_length(const char *text, size_t most);

/* Can a text be read, or a list of texts that NULL ends? Where the kernel does not say: yes. */
VISIBLE bool is_readable_text(const char *text);
VISIBLE bool is_readable_list(const char *const *list);

/* Copy that much of what may be no memory; false where it is not all there, or where the kernel does not say. */
VISIBLE bool readable_copy(void *to, const void *from, size_t bytes);
