/* The symbols of functions in an ELF file, read where they stand: the file is another program's, so no number in it is
   believed before it is checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

/* From the file's bytes `begin` to `end` is one function's code, or, if it has no name, code without a symbol. */
struct symbol {
    uint64_t begin, end;
};

/* The symbol of the function that has the byte at `offset` in the file; `name` is empty if there is none. False if that is
   no ELF file of this machine's sort. */
VISIBLE bool symbols_find(int file, uint64_t offset, struct symbol *found, char *name, size_t name_bytes);
