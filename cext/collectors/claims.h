/* What a data collector claims of a call: whether that can be, and the stack that it is recorded by.

   What was identified is a site like any other, whose file is the module, whose function the section, and whose line the
   statement; the call's real stack is the one that it was called from. So every report shows it. */
#pragma once

#define PY_SSIZE_T_CLEAN

#include "collectors/identification.h"
#include "core/intern.h"
#include "interpose_collector.h"

enum { COLLECTORS_AT_MOST = 8, SECTION_BYTES = 32, PREFIX_OF_MODULES = 64 };

enum { LEAST_PAGE = 4096 };

enum { LONGEST_NAME = INTERPOSE_NAME_BYTES - 1 };

enum { CLAIMS = 4096, RECENT_CLAIMS = 256, RECENT_BYTES = 52 };

struct claim {
    const char *module, *section;
    uint64_t line;
    uint32_t collector; /* its name, a number in strings */
    bool is_forced;
};

/* A pseudo-section: what modules with this prefix are reported as. */
struct pseudo_section {
    uint32_t collector; /* whose it is */
    char name[SECTION_BYTES], prefix[PREFIX_OF_MODULES];
};

static const char system_module[] = ".SYSTEM";

static struct pseudo_sections {
    struct pseudo_section all[COLLECTORS_AT_MOST * INTERPOSE_SECTIONS];
    uint32_t count;
} pseudo_sections;

/* The pseudo-section that modules of that name are reported as, or NULL. */
static const struct pseudo_section *section_of_module(const char *module)
{
    for (uint32_t index = 0; index < pseudo_sections.count; index++) {
        const struct pseudo_section *each = &pseudo_sections.all[index];
        if (strncmp(module, each->prefix, strlen(each->prefix)) == 0)
            return each;
    }
    return NULL;
}

/* A collector's pseudo-section of that name, whether written with its dot or without, or NULL. */
static const struct pseudo_section *section_named(uint32_t collector, const char *name)
{
    const char *plain = name + (*name == '.');
    for (uint32_t index = 0; index < pseudo_sections.count; index++) {
        const struct pseudo_section *each = &pseudo_sections.all[index];
        if (each->collector == collector && strcmp(plain, each->name) == 0)
            return each;
    }
    return NULL;
}

/* Stacks, and sites, by what they were made of. */
static struct claimed {
    uint64_t key;
    uint32_t number;
} claimed_stacks[CLAIMS], claimed_sites[CLAIMS];

static uint32_t claims_serial;

/* Stacks that were claimed lately by short names, with these: they are compared for less than they are hashed. */
static struct recent_claim {
    uint64_t line;
    uint32_t stack, collector, number;
    uint8_t is_forced, module_bytes, section_bytes; /* with their zeros; no entry has none */
    char module[RECENT_BYTES], section[RECENT_BYTES];
} __attribute__((aligned(64))) recent_claims[RECENT_CLAIMS];

/* Up to eight bytes as a number; which of the bytes stand where in it follows from how many there are. */
static __attribute__((always_inline)) inline uint64_t word_of(const char *text, size_t bytes)
{
    uint32_t first, last;
    if (bytes == 0)
        return 0;
    if (bytes < sizeof first)
        return (uint8_t)text[0] | (uint64_t)(uint8_t)text[bytes / 2] << 8 | (uint64_t)(uint8_t)text[bytes - 1] << 16;
    memcpy(&first, text, sizeof first);
    memcpy(&last, text + bytes - sizeof last, sizeof last);
    return first | (uint64_t)last << 32;
}

/* Is a text the one that is kept, which has so many bytes with its zero? Where it is shorter, what is behind it is read too,
   but nothing of the page behind its own: whose it is may be unmapped. */
static __attribute__((always_inline, no_sanitize_address)) inline bool is_text(const char *text, const char *kept, size_t bytes)
{
    enum { WORD = sizeof(uint64_t) };
    if (UNLIKELY((uintptr_t)text % LEAST_PAGE > LEAST_PAGE - bytes))
        return strcmp(text, kept) == 0;
    for (; UNLIKELY(bytes > WORD); bytes -= WORD, text += WORD, kept += WORD)
        if (word_of(text, WORD) != word_of(kept, WORD))
            return false;
    return word_of(text, bytes) == word_of(kept, bytes);
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    size_t left = text ? strnlen(text, LONGEST_NAME) : 0;
    hash += left + (text != NULL);
    for (; UNLIKELY(left > sizeof hash); left -= sizeof hash, text += sizeof hash)
        hash = hash_mix(hash, word_of(text, sizeof hash));
    return hash_mix(hash, word_of(text, left));
}

/* So many bytes of a text in UTF-8, less those of a letter that is cut at their end. */
static size_t whole_letters(const char *text, size_t bytes)
{
    size_t begin = bytes;
    while (begin > 0 && bytes - begin < 3 && ((uint8_t)text[begin - 1] & 0xc0) == 0x80)
        begin--;
    uint8_t first = begin ? (uint8_t)text[begin - 1] : 0;
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return begin && bytes - begin + 1 < wanted ? begin - 1 : bytes;
}

static uint32_t intern_name(const char *name)
{
    size_t bytes = name ? strnlen(name, LONGEST_NAME) : 0;
    if (bytes == LONGEST_NAME)
        bytes = whole_letters(name, bytes);
    return name ? string_intern(name, bytes) : 0;
}

static void claims_forget(void)
{
    memset(claimed_stacks, 0, sizeof claimed_stacks);
    memset(claimed_sites, 0, sizeof claimed_sites);
    memset(recent_claims, 0, sizeof recent_claims);
    claims_serial = recorder.serial;
}

/* What is reported of a module: itself, or what it is a part of. */
static void resolve_section(struct claim *claim, char text[SECTION_BYTES + 1])
{
    const struct pseudo_section *section = section_of_module(claim->module);
    if (!section && *claim->module != '.' && !claim->is_forced)
        return;
    snprintf(text, SECTION_BYTES + 1, ".%s", section ? section->name : claim->module + (*claim->module == '.'));
    *claim = (struct claim){.module = system_module, .section = text, .collector = claim->collector};
}

static uint32_t claim_site(struct claim claim)
{
    char text[SECTION_BYTES + 1];
    resolve_section(&claim, text);
    uint64_t key = hash_text(hash_text(claim.collector, claim.module), claim.section);
    key = hash_mix(key, claim.line) | 1;
    struct claimed *known = &claimed_sites[key >> 32 & (CLAIMS - 1)];
    if (known->key != key) {
        struct site site = {.file = intern_name(claim.module),
                            .function = intern_name(claim.section),
                            .line = (uint32_t)claim.line,
                            .own = 1,
                            .collector = claim.collector};
        *known = (struct claimed){key, site_add(&site)};
    }
    return known->number;
}

static inline struct recent_claim *recent_claim(uint32_t stack, const struct claim *claim)
{
    uint64_t names = (uintptr_t)claim->module + 31 * (uintptr_t)claim->section;
    return &recent_claims[hash_mix(names, claim->line << 32 ^ stack) % RECENT_CLAIMS];
}

static __attribute__((always_inline)) inline bool is_recent(const struct recent_claim *recent, uint32_t stack, const struct claim *claim)
{
    return recent->stack == stack && recent->line == claim->line && recent->collector == claim->collector &&
           recent->is_forced == claim->is_forced && recent->number && claim->section &&
           is_text(claim->module, recent->module, recent->module_bytes) &&
           is_text(claim->section, recent->section, recent->section_bytes);
}

static void keep_recent(struct recent_claim *recent, uint32_t stack, const struct claim *claim, uint32_t number)
{
    size_t module = strnlen(claim->module, RECENT_BYTES) + 1;
    size_t section = claim->section ? strnlen(claim->section, RECENT_BYTES) + 1 : RECENT_BYTES + 1;
    if (module > RECENT_BYTES || section > RECENT_BYTES)
        return;
    *recent = (struct recent_claim){.line = claim->line, .stack = stack, .collector = claim->collector, .number = number,
                                    .is_forced = claim->is_forced, .module_bytes = (uint8_t)module,
                                    .section_bytes = (uint8_t)section};
    memcpy(recent->module, claim->module, module);
    memcpy(recent->section, claim->section, section);
}

static __attribute__((noinline)) uint32_t find_claim(uint32_t stack, const char *module, const char *section, uint64_t line,
                                                     uint32_t collector, bool is_forced)
{
    struct claim claim = {module, section, line, collector, is_forced};
    if (claims_serial != recorder.serial)
        claims_forget();
    uint64_t key = hash_mix((uint64_t)claim.collector << 32 | (stack + 1), claim.line);
    key = hash_text(hash_text(key, claim.module), claim.section) << 1 | claim.is_forced;
    struct claimed *known = &claimed_stacks[key >> 32 & (CLAIMS - 1)];
    if (UNLIKELY(known->key != key || !known->number)) {
        uint32_t site = claim_site(claim);
        *known = (struct claimed){key, stack_intern(site, stack, 0)};
    }
    keep_recent(recent_claim(stack, &claim), stack, &claim, known->number);
    return known->number;
}

/* The stack of a call made from `stack`, whose module, section and line were named so. */
static __attribute__((always_inline)) inline uint32_t claim_stack(uint32_t stack, struct claim claim)
{
    const struct recent_claim *recent = recent_claim(stack, &claim);
    bool is_known = claims_serial == recorder.serial && is_recent(recent, stack, &claim);
    return LIKELY(is_known) ? recent->number
                            : find_claim(stack, claim.module, claim.section, claim.line, claim.collector, claim.is_forced);
}

/* Is the address of the call, whatever the area says of it, in the module that is claimed? */
static inline bool is_within(const struct interpose_area *area, uint64_t address)
{
    return address >= area->base && address - area->base < area->size;
}

static inline bool is_forced(const struct interpose_area *area)
{
    return area->base == 0 && area->size == INTERPOSE_FORCED_SIZE;
}

static __attribute__((noinline)) const char *wrong_with_forced(const struct interpose_area *area, uint32_t collector)
{
    return section_named(collector, area->module) ? NULL : "forced a name that is in none of its sections";
}

/* What is wrong with a collector's claim of a module, in words; NULL where nothing is. */
static inline const char *wrong_with_claim(const struct interpose_area *area, uint64_t address, uint32_t collector)
{
    if (!area->module || !*area->module)
        return NULL;
    if (UNLIKELY(is_forced(area) || *area->module == '.'))
        return wrong_with_forced(area, collector);
    return LIKELY(is_within(area, address)) ? NULL : "named a module that does not contain the place of the call";
}
