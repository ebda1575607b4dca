#define _GNU_SOURCE
#include "core/loaded_object.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
enum { CALLED = R_X86_64_JUMP_SLOT, TAKEN = R_X86_64_GLOB_DAT, KEPT = R_X86_64_64 };
#elif defined __aarch64__
enum { CALLED = R_AARCH64_JUMP_SLOT, TAKEN = R_AARCH64_GLOB_DAT, KEPT = R_AARCH64_ABS64 };
#else
enum { CALLED = -1, TAKEN = -1, KEPT = -1 }; /* nothing is found */
#endif

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void widen(struct region *region, uintptr_t begin, uintptr_t end)
{
    region->begin = region->end && region->begin < begin ? region->begin : begin;
    region->end = region->end > end ? region->end : end;
}

static void read_parts(struct loaded_object *object, const struct dl_phdr_info *info)
{
    for (unsigned index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[index];
        uintptr_t begin = object->base + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_LOAD)
            widen(&object->all, begin, end);
        if (part->p_type == PT_LOAD && part->p_flags & PF_X)
            object->file_begin = begin - part->p_offset;
        else if (part->p_type == PT_GNU_RELRO)
            object->relro = (struct region){begin, end & ~(page_bytes() - 1)}; /* whole pages are protected */
        else if (part->p_type == PT_GNU_EH_FRAME)
            object->frames = (const void *)begin;
        else if (part->p_type == PT_DYNAMIC)
            object->dynamic = (const ElfW(Dyn) *)begin;
    }
}

/* glibc writes addresses into the section, musl leaves them relative to the object. */
static const void *address_of(const struct loaded_object *object, const ElfW(Dyn) *entry)
{
    uintptr_t address = entry->d_un.d_ptr;
    return (const void *)(address < object->base ? object->base + address : address);
}

static void read_dynamic(struct loaded_object *object)
{
    ElfW(Sxword) sort = DT_RELA;
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
        switch (entry->d_tag) {
        case DT_SYMTAB: object->symbols = address_of(object, entry); break;
        case DT_GNU_HASH: object->defined = address_of(object, entry); break;
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
    if (!object->names)
        object->symbols = NULL;
}

void object_read(struct loaded_object *object, const struct dl_phdr_info *info)
{
    *object = (struct loaded_object){.path = info->dlpi_name, .base = info->dlpi_addr};
    read_parts(object, info);
    read_dynamic(object);
}

/* --- its definitions */

struct hash_table {
    uint32_t buckets, first, words, shift;
};

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static bool may_define(const struct hash_table *table, const ElfW(Addr) *words, uint32_t hash)
{
    enum { BITS = 8 * sizeof(ElfW(Addr)) };
    ElfW(Addr) word = words[hash / BITS % table->words];
    return word >> hash % BITS & word >> (hash >> table->shift) % BITS & 1;
}

static bool is_definition(const struct loaded_object *object, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &object->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && strcmp(object->names + symbol->st_name, name) == 0;
}

/* As the loader searches it: https://flapenguin.me/elf-dt-gnu-hash */
void *object_function(const struct loaded_object *object, const char *name)
{
    if (!object->symbols || !object->defined)
        return NULL;
    const struct hash_table *table = (const struct hash_table *)object->defined;
    const ElfW(Addr) *words = (const ElfW(Addr) *)(table + 1);
    const uint32_t *buckets = (const uint32_t *)(words + table->words), *chain = buckets + table->buckets;
    uint32_t hash = hash_of(name);
    if (!table->buckets || !table->words || !may_define(table, words, hash))
        return NULL;
    uint32_t index = buckets[hash % table->buckets], found = 0;
    for (; index >= table->first && !(found & 1); index++) {
        found = chain[index - table->first];
        if ((found | 1) == (hash | 1) && is_definition(object, index, name))
            return (void *)(object->base + object->symbols[index].st_value);
    }
    return NULL;
}

/* --- its import table */

static bool names_a_function(const ElfW(Rela) *each, bool in_data)
{
    int type = (int)ELF64_R_TYPE(each->r_info);
    return type == (int)CALLED || type == (int)TAKEN || (in_data && type == (int)KEPT && each->r_addend == 0);
}

static void visit_relocations(const struct loaded_object *object, struct relocations table, size_t from, bool in_data,
                              void (*visit)(void *data, const struct import_place *place), void *data)
{
    size_t count = table.first ? table.bytes / sizeof *table.first : 0;
    for (size_t index = from; index < count; index++) {
        const ElfW(Rela) *each = &table.first[index];
        uintptr_t address = object->base + each->r_offset;
        if (!names_a_function(each, in_data) || !is_in(object->all, address))
            continue;
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(each->r_info)];
        visit(data, &(struct import_place){
                        .name = object->names + symbol->st_name,
                        .address = (void **)address,
                        .foreign = symbol->st_shndx == SHN_UNDEF,
                        .read_only = is_in(object->relro, address),
                        .in_data = (int)ELF64_R_TYPE(each->r_info) == (int)KEPT,
                    });
    }
}

void object_imports(const struct loaded_object *object, bool in_data,
                    void (*visit)(void *data, const struct import_place *place), void *data)
{
    if (!object->symbols)
        return;
    visit_relocations(object, object->called, 0, in_data, visit, data);
    visit_relocations(object, object->others, object->relative, in_data, visit, data);
}

static bool protect(void **address, bool read_only, int protection)
{
    uintptr_t page = (uintptr_t)address & ~(page_bytes() - 1);
    return !read_only || mprotect((void *)page, page_bytes(), protection) == 0;
}

/* What was written before must be visible to each thread that jumps through the slot from now on. The jump does not
   order that thread's reads, except on x86, so the kernel has every processor that runs one catch up. */
static void publish(void)
{
#if !defined __x86_64__
    int saved = errno;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) && errno == EPERM &&
        !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    errno = saved;
#endif
}

bool slot_exchange(void **address, bool read_only, void *to)
{
    if (!protect(address, read_only, PROT_READ | PROT_WRITE))
        return false;
    publish();
    __atomic_store_n(address, to, __ATOMIC_RELEASE);
    return protect(address, read_only, PROT_READ);
}
