#define _GNU_SOURCE
#include "core/symbols.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SYMBOLS_AT_A_TIME = 512, SECTIONS_AT_MOST = 512, PARTS_AT_MOST = 64 };
static const uint64_t SYMBOLS_AT_MOST = 1u << 22;

/* A direct system call, because the recorded program may have its own `pread`. */
static ssize_t read_some(int file, uint64_t offset, void *into, size_t bytes)
{
    return offset < INT64_MAX ? syscall(SYS_pread64, file, into, bytes, (off_t)offset) : -1;
}

static bool read_at(int file, uint64_t offset, void *into, size_t bytes)
{
    return read_some(file, offset, into, bytes) == (ssize_t)bytes;
}

static bool read_head(int file, ElfW(Ehdr) *head)
{
    unsigned char sort = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    return read_at(file, 0, head, sizeof *head) && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == sort && head->e_phentsize == sizeof(ElfW(Phdr)) && head->e_phnum <= PARTS_AT_MOST;
}

/* The part of the file that has the byte at `offset` and is executed. */
static bool find_part(int file, const ElfW(Ehdr) *head, uint64_t offset, ElfW(Phdr) *part)
{
    ElfW(Phdr) parts[PARTS_AT_MOST];
    if (!read_at(file, head->e_phoff, parts, head->e_phnum * sizeof *parts))
        return false;
    for (unsigned index = 0; index < head->e_phnum; index++) {
        *part = parts[index];
        bool is_code = part->p_type == PT_LOAD && (part->p_flags & PF_X);
        if (is_code && offset >= part->p_offset && offset - part->p_offset < part->p_filesz)
            return true;
    }
    return false;
}

/* The whole table of symbols if it was not stripped, else that of what it exports; of type SHT_NULL if there is none. */
static ElfW(Shdr) find_table(int file, const ElfW(Ehdr) *head, ElfW(Shdr) *names)
{
    ElfW(Shdr) section, found = {.sh_type = SHT_NULL};
    if (head->e_shentsize != sizeof section || head->e_shnum > SECTIONS_AT_MOST)
        return found;
    for (unsigned index = 0; index < head->e_shnum && found.sh_type != SHT_SYMTAB; index++)
        if (read_at(file, head->e_shoff + index * sizeof section, &section, sizeof section) &&
            (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) && section.sh_link < head->e_shnum)
            found = section;
    if (found.sh_type != SHT_NULL && !read_at(file, head->e_shoff + found.sh_link * sizeof section, names, sizeof *names))
        found.sh_type = SHT_NULL;
    return found;
}

static bool is_function(const ElfW(Sym) *symbol)
{
    unsigned sort = symbol->st_info & 0xf;
    return (sort == STT_FUNC || sort == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF;
}

/* Look at one symbol: narrow `found` to what lies between functions, or take it if it has the address. */
static bool look_at(const ElfW(Sym) *symbol, uint64_t address, struct symbol *found)
{
    uint64_t begin = symbol->st_value, end = begin + symbol->st_size;
    if (!is_function(symbol) || end < begin)
        return false;
    bool has_it = begin <= address && address < end;
    if (has_it)
        *found = (struct symbol){begin, end};
    else if (end <= address && end > found->begin)
        found->begin = end;
    else if (begin > address && begin < found->end)
        found->end = begin;
    return has_it;
}

/* The place of the symbol's name among the names, 0 if there is none. */
static uint64_t search(int file, const ElfW(Shdr) *table, uint64_t address, struct symbol *found)
{
    ElfW(Sym) symbols[SYMBOLS_AT_A_TIME];
    uint64_t count = table->sh_size / sizeof *symbols;
    count = count < SYMBOLS_AT_MOST ? count : SYMBOLS_AT_MOST;
    for (uint64_t first = 0; first < count; first += SYMBOLS_AT_A_TIME) {
        uint64_t left = count - first, now = left < SYMBOLS_AT_A_TIME ? left : SYMBOLS_AT_A_TIME;
        if (!read_at(file, table->sh_offset + first * sizeof *symbols, symbols, now * sizeof *symbols))
            return 0;
        for (uint64_t index = 0; index < now; index++)
            if (look_at(&symbols[index], address, found))
                return symbols[index].st_name;
    }
    return 0;
}

/* What compilers add to the names of a function's parts: `.isra.0`, `.cold`, `.1`. In other languages names have dots of their own. */
static bool is_addition(const char *after_dot)
{
    static const char *const additions[] = {"isra", "constprop", "part", "cold", "lto_priv", "llvm", "clone", "localalias"};
    size_t length = strcspn(after_dot, ".");
    bool is_known = length && strspn(after_dot, "0123456789") == length;
    for (unsigned each = 0; each < sizeof additions / sizeof *additions; each++)
        is_known |= length == strlen(additions[each]) && strncmp(after_dot, additions[each], length) == 0;
    return is_known;
}

static void read_name(int file, const ElfW(Shdr) *names, uint64_t place, char *name, size_t name_bytes)
{
    uint64_t left = place < names->sh_size ? names->sh_size - place : 0;
    ssize_t got = read_some(file, names->sh_offset + place, name, left < name_bytes - 1 ? left : name_bytes - 1);
    name[got > 0 ? got : 0] = 0;
    char *dot = *name ? strchr(name + 1, '.') : NULL;
    while (dot && !is_addition(dot + 1))
        dot = strchr(dot + 1, '.');
    if (dot)
        *dot = 0;
}

bool symbols_find(int file, uint64_t offset, struct symbol *found, char *name, size_t name_bytes)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    ElfW(Shdr) names;
    *name = 0;
    if (!read_head(file, &head) || !find_part(file, &head, offset, &part))
        return false;
    uint64_t moved = part.p_vaddr - part.p_offset; /* from places in the file to addresses */
    *found = (struct symbol){part.p_vaddr, part.p_vaddr + part.p_filesz};
    ElfW(Shdr) table = find_table(file, &head, &names);
    uint64_t place = table.sh_type == SHT_NULL ? 0 : search(file, &table, offset + moved, found);
    if (place && names.sh_offset < INT64_MAX - names.sh_size)
        read_name(file, &names, place, name, name_bytes);
    found->begin -= moved;
    found->end -= moved;
    return true;
}
