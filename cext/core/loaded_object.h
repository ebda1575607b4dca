/* A loaded object, as the loader tells of it, and its import table: the slots through which its code reaches functions of
   other objects, or keeps their addresses. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

struct region {
    uintptr_t begin, end;
};

static inline bool is_in(struct region region, uintptr_t address)
{
    return region.begin <= address && address < region.end;
}

struct relocations {
    const ElfW(Rela) *first;
    size_t bytes;
};

struct loaded_object {
    const char *path; /* the loader's; empty for the program itself */
    uintptr_t base;
    struct region all, relro;
    uintptr_t file_begin; /* address of the file's first byte, extrapolated from where its code is mapped */
    const ElfW(Dyn) *dynamic;
    const void *frames; /* the index of its unwind rules (PT_GNU_EH_FRAME), or NULL */
    const ElfW(Sym) *symbols;
    const char *names;
    const uint32_t *defined; /* DT_GNU_HASH, or NULL */
    struct relocations called, others;
    size_t relative; /* how many of the others come first, without a symbol */
};

/* What the loader knows about an object; its symbol table is available if `symbols` is not NULL. A callback of
   dl_iterate_phdr may use it while it runs. */
VISIBLE void object_read(struct loaded_object *object, const struct dl_phdr_info *info);

/* The function of that name that the object itself has for others to call; NULL if it has none. */
VISIBLE void *object_function(const struct loaded_object *object, const char *name);

/* A slot of the table. */
struct import_place {
    const char *name;
    void **address;
    bool foreign;   /* the function is another object's, or may be */
    bool read_only; /* RELRO */
    bool in_data;   /* it is no part of the table: the object's own data have the address */
};

/* Visit all slots that name a function. `in_data`: also those in the object's own data, of which there may be thousands. */
VISIBLE void object_imports(const struct loaded_object *object, bool in_data,
                            void (*visit)(void *data, const struct import_place *place), void *data);

/* Put another address into a slot. False if the memory cannot be written to. */
VISIBLE bool slot_exchange(void **address, bool read_only, void *to);
