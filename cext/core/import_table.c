#define _GNU_SOURCE
#include "core/import_table.h"

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined __x86_64__
enum { CALLED = R_X86_64_JUMP_SLOT, TAKEN = R_X86_64_GLOB_DAT };
#elif defined __aarch64__
enum { CALLED = R_AARCH64_JUMP_SLOT, TAKEN = R_AARCH64_GLOB_DAT };
#else
enum { CALLED = -1, TAKEN = -1 }; /* nothing is found */
#endif

struct region {
    uintptr_t begin, end;
};

struct relocations {
    const ElfW(Rela) *first;
    size_t bytes;
};

/* What is known of the object that `within` lies in. */
struct object {
    uintptr_t within, base;
    struct region all, relro;
    const ElfW(Dyn) *dynamic;
    const ElfW(Sym) *symbols;
    const char *names;
    struct relocations called, others;
    size_t relative; /* so many of the others come first, and name no symbol */
};

static bool is_in(struct region region, uintptr_t address)
{
    return region.begin <= address && address < region.end;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* --- finding */

static void widen(struct region *region, uintptr_t begin, uintptr_t end)
{
    region->begin = region->end && region->begin < begin ? region->begin : begin;
    region->end = region->end > end ? region->end : end;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *wanted)
{
    struct object *object = wanted, found = {.within = object->within, .base = info->dlpi_addr};
    (void)size;
    for (unsigned index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[index];
        uintptr_t begin = found.base + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_LOAD)
            widen(&found.all, begin, end);
        else if (part->p_type == PT_GNU_RELRO)
            found.relro = (struct region){begin, end & ~(page_bytes() - 1)}; /* whole pages are protected */
        else if (part->p_type == PT_DYNAMIC)
            found.dynamic = (const ElfW(Dyn) *)begin;
    }
    if (!is_in(found.all, object->within))
        return 0;
    *object = found;
    return 1;
}

/* glibc writes addresses into the section, musl leaves them relative to the object. */
static const void *address_of(const struct object *object, const ElfW(Dyn) *entry)
{
    uintptr_t address = entry->d_un.d_ptr;
    return (const void *)(address < object->base ? object->base + address : address);
}

static void read_dynamic(struct object *object)
{
    ElfW(Sxword) sort = DT_RELA;
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
        switch (entry->d_tag) {
        case DT_SYMTAB: object->symbols = address_of(object, entry); break;
        case DT_STRTAB: object->names = address_of(object, entry); break;
        case DT_JMPREL: object->called.first = address_of(object, entry); break;
        case DT_PLTRELSZ: object->called.bytes = entry->d_un.d_val; break;
        case DT_PLTREL: sort = (ElfW(Sxword))entry->d_un.d_val; break;
        case DT_RELA: object->others.first = address_of(object, entry); break;
        case DT_RELASZ: object->others.bytes = entry->d_un.d_val; break;
        case DT_RELACOUNT: object->relative = entry->d_un.d_val; break;
        default: break;
        }
    if (sort != DT_RELA)
        object->called.first = NULL;
}

static void keep_slot(struct import *import, const struct object *object, void **address)
{
    if (import->count == IMPORT_SLOTS)
        return;
    void *before = __atomic_load_n(address, __ATOMIC_ACQUIRE);
    import->slots[import->count++] = (struct import_slot){address, before, is_in(object->relro, (uintptr_t)address)};
    if (!is_in(object->all, (uintptr_t)before)) /* else it leads to the loader, which would write there */
        import->real = before;
}

static void look_at_relocations(struct import *import, const struct object *object, struct relocations table,
                                size_t from, const char *name)
{
    size_t count = table.first ? table.bytes / sizeof *table.first : 0;
    for (size_t index = from; index < count; index++) {
        const ElfW(Rela) *each = &table.first[index];
        int type = (int)ELF64_R_TYPE(each->r_info);
        if (type != (int)CALLED && type != (int)TAKEN)
            continue;
        if (strcmp(object->names + object->symbols[ELF64_R_SYM(each->r_info)].st_name, name) == 0)
            keep_slot(import, object, (void **)(object->base + each->r_offset));
    }
}

const char *import_find(struct import *import, const void *within, const char *name)
{
    struct object object = {.within = (uintptr_t)within};
    *import = (struct import){.count = 0};
    if (!dl_iterate_phdr(look_at_object, &object) || !object.dynamic)
        return "the loaded object has no import table";
    read_dynamic(&object);
    if (!object.symbols || !object.names)
        return "the import table of the loaded object is unknown";
    look_at_relocations(import, &object, object.called, 0, name);
    look_at_relocations(import, &object, object.others, object.relative, name);
    return import->count ? NULL : "the function is not in the import table";
}

/* --- exchanging */

static bool protect(const struct import_slot *slot, int protection)
{
    uintptr_t page = (uintptr_t)slot->address & ~(page_bytes() - 1);
    return !slot->read_only || mprotect((void *)page, page_bytes(), protection) == 0;
}

static bool exchange(const struct import_slot *slot, void *to)
{
    if (!protect(slot, PROT_READ | PROT_WRITE))
        return false;
    __atomic_store_n(slot->address, to, __ATOMIC_RELEASE);
    return protect(slot, PROT_READ);
}

bool import_put(struct import *import, void *to)
{
    import->to = to;
    for (unsigned index = 0; index < import->count; index++)
        if (!exchange(&import->slots[index], to)) {
            import_restore(import);
            return false;
        }
    return true;
}

static bool restore(const struct import_slot *slot, const void *ours)
{
    void *now = __atomic_load_n(slot->address, __ATOMIC_ACQUIRE);
    return now == ours ? exchange(slot, slot->before) : now == slot->before;
}

bool import_restore(struct import *import)
{
    bool restored = true;
    for (unsigned index = 0; index < import->count; index++)
        restored &= restore(&import->slots[index], import->to);
    return restored;
}
