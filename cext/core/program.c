#define _GNU_SOURCE
#include "core/program.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/intern.h"
#include "core/own_thread.h"

enum { KNOWN = 64, HEAD_BYTES = 256, HEADERS = 64, ENTRIES = 256, NAMES_BYTES = 1024 * 1024, PIECE_BYTES = 4096, DEEPEST_SCRIPT = 2 };

static const char blanks[] = " \t";

const char *reason_words(enum reason reason)
{
#define WORDS_OF_REASON(name, words) words,
    static const char *const all[] = {NULL, REASONS(WORDS_OF_REASON)};
    return all[reason];
}

bool program_is_there(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

bool program_find(const char *name, char path[PATH_BYTES])
{
    const char *directories = getenv("PATH");
    if (strchr(name, '/'))
        return snprintf(path, PATH_BYTES, "%s", name) < PATH_BYTES && program_is_there(path);
    for (const char *at = directories ? directories : "/bin:/usr/bin"; at; at = *at ? at + 1 : NULL) {
        int bytes = (int)strcspn(at, ":");
        bool fits = snprintf(path, PATH_BYTES, "%.*s%s%s", bytes, at, bytes ? "/" : "", name) < PATH_BYTES;
        if (fits && program_is_there(path))
            return true;
        at += bytes;
    }
    return false;
}

/* --- names */

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

/* python, python3.12, pypy3, python3.13t, python3-dbg */
static bool is_name_of_python(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strncmp(name, "python", 6) != 0 && strncmp(name, "pypy", 4) != 0)
        return false;
    const char *rest = skip_digits(name + (name[1] == 'y' && name[2] == 't' ? 6 : 4));
    rest = *rest == '.' ? skip_digits(rest + 1) : rest;
    rest += *rest == 't';
    return *rest == 0 || strcmp(rest, "d") == 0 || strcmp(rest, "-dbg") == 0;
}

bool program_is_python(const char *path)
{
    char target[PATH_MAX];
    return is_name_of_python(path) || (realpath(path, target) && is_name_of_python(target));
}

/* --- ELF, of our own word size */

#if __SIZEOF_POINTER__ == 8
typedef Elf64_Ehdr elf_head;
typedef Elf64_Phdr elf_part;
typedef Elf64_Dyn elf_entry;
enum { OWN_CLASS = ELFCLASS64 };
#else
typedef Elf32_Ehdr elf_head;
typedef Elf32_Phdr elf_part;
typedef Elf32_Dyn elf_entry;
enum { OWN_CLASS = ELFCLASS32 };
#endif

static bool is_elf(const elf_head *head)
{
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0;
}

static unsigned own_machine(void)
{
    static unsigned known;
    unsigned machine = __atomic_load_n(&known, __ATOMIC_RELAXED);
    elf_head head = {.e_machine = 0};
    int opened = machine ? -1 : file_open_to_read(OWN_PROC "/exe");
    if (opened >= 0) {
        if (pread(opened, &head, sizeof head, 0) == (ssize_t)sizeof head)
            machine = head.e_machine;
        close(opened);
    }
    __atomic_store_n(&known, machine, __ATOMIC_RELAXED);
    return machine;
}

static bool is_of_this_machine(const elf_head *head)
{
    return head->e_ident[EI_CLASS] == OWN_CLASS && head->e_machine == own_machine();
}

/* The parts of the program, as many as there is room for. */
static unsigned read_parts(int opened, const elf_head *head, elf_part parts[HEADERS])
{
    unsigned count = head->e_phentsize == sizeof *parts ? head->e_phnum < HEADERS ? head->e_phnum : HEADERS : 0;
    ssize_t got = pread(opened, parts, count * sizeof *parts, (off_t)head->e_phoff);
    return got > 0 ? (unsigned)((size_t)got / sizeof *parts) : 0;
}

static const elf_part *part_of(const elf_part *parts, unsigned count, unsigned type)
{
    for (unsigned index = 0; index < count; index++)
        if (parts[index].p_type == type)
            return &parts[index];
    return NULL;
}

/* The offset in the file of what will be at this address; 0 if there is none. */
static uint64_t place_of(const elf_part *parts, unsigned count, uint64_t address)
{
    for (unsigned index = 0; index < count; index++) {
        const elf_part *part = &parts[index];
        if (part->p_type == PT_LOAD && address >= part->p_vaddr && address - part->p_vaddr < part->p_filesz)
            return address - part->p_vaddr + part->p_offset;
    }
    return 0;
}

static bool stands_in(int opened, uint64_t place, uint64_t bytes, const char *word)
{
    char piece[PIECE_BYTES];
    size_t length = bytes < NAMES_BYTES ? (size_t)bytes : NAMES_BYTES, overlap = strlen(word);
    for (size_t at = 0; place && at < length; at += PIECE_BYTES - overlap) {
        size_t wanted = length - at < PIECE_BYTES ? length - at : PIECE_BYTES;
        ssize_t got = pread(opened, piece, wanted, (off_t)(place + at));
        if (got <= 0 || memmem(piece, (size_t)got, word, overlap))
            return got > 0;
    }
    return false;
}

static int note_loader(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    for (int index = 0; index < info->dlpi_phnum; index++)
        if (info->dlpi_phdr[index].p_type == PT_INTERP)
            *(const char **)found = (const char *)(info->dlpi_addr + info->dlpi_phdr[index].p_vaddr);
    return 1; /* the program itself comes first */
}

/* Does the same loader load it as us? Another one has another C library, where ours cannot be loaded. */
static bool is_loaded_alike(int opened, const elf_part *loader)
{
    const char *ours = NULL;
    char theirs[PATH_BYTES];
    dl_iterate_phdr(note_loader, &ours);
    size_t bytes = ours ? strlen(ours) + 1 : 0;
    return !ours || (loader->p_filesz == bytes && bytes <= sizeof theirs &&
                     pread(opened, theirs, bytes, (off_t)loader->p_offset) == (ssize_t)bytes &&
                     memcmp(theirs, ours, bytes) == 0);
}

/* Does it name what every program has that is checked by the address sanitizer, linked in or not? */
static bool is_sanitized(int opened, const elf_part *parts, unsigned count)
{
    elf_entry entries[ENTRIES];
    uint64_t names = 0, bytes = 0;
    const elf_part *dynamic = part_of(parts, count, PT_DYNAMIC);
    ssize_t got = dynamic ? pread(opened, entries, sizeof entries, (off_t)dynamic->p_offset) : 0;
    for (ssize_t index = 0; index < got / (ssize_t)sizeof *entries && entries[index].d_tag != DT_NULL; index++) {
        if (entries[index].d_tag == DT_STRTAB)
            names = entries[index].d_un.d_ptr;
        if (entries[index].d_tag == DT_STRSZ)
            bytes = entries[index].d_un.d_val;
    }
    return stands_in(opened, place_of(parts, count, names), bytes, "__asan_init");
}

static enum reason reason_of_elf(int opened, const elf_head *head, const char *path)
{
    elf_part parts[HEADERS];
    if (!is_of_this_machine(head))
        return REASON_ARCHITECTURE;
    unsigned count = read_parts(opened, head, parts);
    const elf_part *loader = part_of(parts, count, PT_INTERP);
    if (!loader)
        return REASON_STATIC;
    if (!is_loaded_alike(opened, loader))
        return REASON_LOADER;
    if (is_sanitized(opened, parts, count))
        return REASON_SANITIZER;
    return program_is_python(path) ? REASON_none : REASON_NOT_PYTHON;
}

/* --- scripts */

static enum reason reason_of_file(const char *path, const struct stat *status, unsigned depth);

static enum reason reason_of_name(const char *name, unsigned depth)
{
    char path[PATH_BYTES];
    struct stat status;
    bool found = depth < DEEPEST_SCRIPT && program_find(name, path) && stat(path, &status) == 0;
    return found ? reason_of_file(path, &status, depth + 1) : REASON_NOT_PYTHON;
}

/* Of the first line, `#!` left out: what the program is, or what `env` would start. */
static enum reason reason_of_script(char *line, unsigned depth)
{
    char *rest, *word = strtok_r(line, blanks, &rest);
    const char *slash = word ? strrchr(word, '/') : NULL;
    if (slash && strcmp(slash, "/env") == 0)
        do
            word = strtok_r(NULL, blanks, &rest);
        while (word && (*word == '-' || strchr(word, '=')));
    return word ? reason_of_name(word, depth) : REASON_NOT_PYTHON;
}

static enum reason reason_of_head(int opened, const char *path, unsigned depth)
{
    union {
        elf_head elf;
        char text[HEAD_BYTES + 1];
    } head;
    memset(&head, 0, sizeof head);
    if (pread(opened, head.text, HEAD_BYTES, 0) <= 0)
        return REASON_none;
    if (is_elf(&head.elf))
        return reason_of_elf(opened, &head.elf, path);
    if (memcmp(head.text, "#!", 2) != 0)
        return REASON_NOT_PYTHON;
    head.text[strcspn(head.text, "\n")] = 0;
    return reason_of_script(head.text + 2, depth);
}

/* The kernel then clears what the loader would use. File capabilities mean nothing for root. */
static bool changes_rights(const char *path, const struct stat *status)
{
    bool user = status->st_mode & S_ISUID && status->st_uid != getuid();
    bool group = (status->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status->st_gid != getgid();
    return user || group || (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Of a file that may be run and not read nothing is known. */
static enum reason reason_of_file(const char *path, const struct stat *status, unsigned depth)
{
    if (!S_ISREG(status->st_mode))
        return REASON_none;
    if (changes_rights(path, status))
        return REASON_RIGHTS;
    int opened = file_open_to_read(path);
    if (opened < 0)
        return REASON_none;
    enum reason reason = reason_of_head(opened, path, depth);
    close(opened);
    return reason;
}

/* --- known programs */

static uint64_t identity_of(const char *path, const struct stat *status)
{
    uint64_t written = hash_mix(hash_word((uint64_t)status->st_mtim.tv_sec), (uint64_t)status->st_mtim.tv_nsec);
    uint64_t file = hash_mix(hash_word((uint64_t)status->st_dev), (uint64_t)status->st_ino);
    return hash_mix(hash_mix(hash_bytes(path, strlen(path)), file), written);
}

enum reason program_reason(const char *path)
{
    static uint64_t known[KNOWN]; /* a file's identity, except the last byte, which is the reason */
    struct stat status;
    int saved = errno;
    if (stat(path, &status)) {
        errno = saved;
        return REASON_none;
    }
    uint64_t identity = identity_of(path, &status) & ~0xffull, *entry = &known[(identity >> 8) % KNOWN];
    uint64_t found = __atomic_load_n(entry, __ATOMIC_RELAXED);
    if ((found & ~0xffull) != identity) {
        found = identity | reason_of_file(path, &status, 0);
        __atomic_store_n(entry, found, __ATOMIC_RELAXED);
    }
    errno = saved;
    return (enum reason)(found & 0xff);
}
