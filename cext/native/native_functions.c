#define _GNU_SOURCE
#include "native/native_functions.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/intern.h"
#include "core/interning.h"
#include "core/open_file.h"
#include "core/readable.h"
#include "core/spare_stack.h"
#include "core/symbols.h"
#include "native/native_callers.h"

enum { RETURNS = 8192, FUNCTIONS = 2048, NAME_BYTES = 800 };

/* What is known of an address. The first word is the key mixed with the others, so that a torn entry matches no key. */
struct kept_return {
    uint64_t mixed, rule, site;
};

static struct {
    struct kept_return returns[RETURNS];
    struct cached functions[FUNCTIONS]; /* sites, by the beginning of their code */
} known;

static uint64_t key_of(uintptr_t address)
{
    return hash_mix(hash_word(address), native_callers_now()) | 1;
}

/* --- the name of a function */

/* The lookup of a return address. The call is before it; at the address itself, another function may begin. */
struct asked {
    uintptr_t address; /* of the call */
    const struct caller *caller;
    struct frame_copies *copies;
    struct known_return found;
};

/* Whether the file is the one that was loaded; by now another one may be at its path. The heads of two builds differ. */
static bool is_as_loaded(int file, const struct asked *asked)
{
    enum { HEAD_BYTES = 2048 };
    uint8_t *there = asked->copies->description, *here = there + HEAD_BYTES; /* the rule is known already */
    long bytes = syscall(SYS_pread64, file, there, (size_t)HEAD_BYTES, (off_t)0);
    return bytes > 0 && readable_copy(here, (const void *)asked->caller->all.begin, (size_t)bytes) &&
           memcmp(there, here, (size_t)bytes) == 0;
}

/* Returns the function's name, in `name`, or the object's name if the function has no symbol. */
static const char *find_name(const struct asked *asked, char name[NAME_BYTES])
{
    struct symbol symbol;
    const struct caller *caller = asked->caller;
    int file = *caller->path ? file_open_to_read(caller->path) : -1;
    bool is_found = file >= 0 && is_as_loaded(file, asked) &&
                    symbols_find(file, asked->address - caller->file_begin, &symbol, name, NAME_BYTES) && *name;
    if (file >= 0)
        close(file);
    return is_found ? name : caller->name;
}

static uint32_t add_site(const struct asked *asked)
{
    const struct caller *caller = asked->caller;
    char name[NAME_BYTES];
    const char *function = find_name(asked, name), *file = caller->is_own ? caller->path : caller->name;
    struct site site = {.own = caller->is_own};
    site.function = string_intern(function, strlen(function));
    site.file = string_intern(file, strlen(file));
    return site.function && site.file ? site_add(&site) : 0;
}

static uint32_t site_of(const struct asked *asked, uintptr_t begin)
{
    uint64_t key = key_of(begin);
    struct cached *kept = &known.functions[key % FUNCTIONS];
    uint32_t site = cached_find(kept, key);
    if (!site)
        site = add_site(asked);
    if (site)
        cached_keep(kept, key, site);
    return site;
}

/* --- addresses */

static void look_up(void *about)
{
    struct asked *asked = about;
    const struct caller *caller = asked->caller;
    uintptr_t begin = asked->address;
    _Static_assert(sizeof *asked->copies <= SPARE_BYTES - SPARE_STACK_BYTES, "they are before the stack");
    struct frame_table frames = {caller->all, caller->frames, readable_copy};
    asked->found.rule = frame_rule_at(&frames, asked->address, asked->copies, &begin);
    asked->found.site = caller->is_shown ? site_of(asked, begin) : 0;
}

/* On a spare stack: the lookup needs more than the thread may have left. False if nothing is known of the address yet: its
   library may just be loaded. */
static bool look_up_apart(uintptr_t address, struct known_return *found)
{
    struct asked asked = {.address = address - 1, .caller = native_caller_at(address - 1)};
    *found = (struct known_return){.is_interpreter = asked.caller && asked.caller->is_interpreter};
    void *memory = asked.caller && !found->is_interpreter ? spare_take() : NULL;
    if (!memory)
        return found->is_interpreter;
    asked.copies = memory;
    spare_run(memory, look_up, &asked);
    spare_release(memory);
    *found = asked.found;
    return true;
}

static bool find(const struct kept_return *kept, uint64_t key, struct known_return *found)
{
    uint64_t rule = __atomic_load_n(&kept->rule, __ATOMIC_RELAXED), site = __atomic_load_n(&kept->site, __ATOMIC_RELAXED);
    memcpy(&found->rule, &rule, sizeof rule);
    found->site = (uint32_t)site;
    found->is_interpreter = site >> 32;
    return (__atomic_load_n(&kept->mixed, __ATOMIC_RELAXED) ^ rule ^ site) == key;
}

static void keep(struct kept_return *kept, uint64_t key, const struct known_return *found)
{
    uint64_t rule, site = (uint64_t)found->is_interpreter << 32 | found->site;
    memcpy(&rule, &found->rule, sizeof rule);
    __atomic_store_n(&kept->rule, rule, __ATOMIC_RELAXED);
    __atomic_store_n(&kept->site, site, __ATOMIC_RELAXED);
    __atomic_store_n(&kept->mixed, key ^ rule ^ site, __ATOMIC_RELAXED);
}

struct known_return native_return_to(struct thread *thread, uintptr_t address)
{
    _Static_assert(sizeof(struct frame_rule) == sizeof(uint64_t), "a rule is one word");
    uint64_t key = key_of(address);
    struct kept_return *kept = &known.returns[key % RETURNS];
    struct known_return found;
    if (find(kept, key, &found))
        return found;
    struct reading begin = own_begin(thread);
    if (look_up_apart(address, &found))
        keep(kept, key, &found);
    own_end(thread, begin);
    return found;
}
