#include "collectors/claims.h"

#include <stdio.h>
#include <string.h>

#include "collectors/claimed_names.h"
#include "collectors/pseudo_sections.h"
#include "core/intern.h"
#include "core/recorder.h"

enum { CLAIMS = 4096, RECENT_CLAIMS = 256, RECENT_BYTES = 52 };

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

static void claims_forget(void)
{
    memset(claimed_stacks, 0, sizeof claimed_stacks);
    memset(claimed_sites, 0, sizeof claimed_sites);
    memset(recent_claims, 0, sizeof recent_claims);
    claims_serial = recorder.serial;
}

/* What is reported for a module: itself, or the one that it is a part of. */
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

static struct recent_claim *recent_claim(uint32_t stack, const struct claim *claim)
{
    uint64_t names = (uintptr_t)claim->module + 31 * (uintptr_t)claim->section;
    return &recent_claims[hash_mix(names, claim->line << 32 ^ stack) % RECENT_CLAIMS];
}

static __attribute__((always_inline)) inline bool is_recent(const struct recent_claim *recent, uint32_t stack,
                                                            const struct claim *claim)
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

static __attribute__((noinline)) uint32_t find_claim(uint32_t stack, const char *module, const char *section,
                                                     uint64_t line, uint32_t collector, bool is_forced)
{
    struct claim claim = {module, section, line, collector, is_forced};
    if (claims_serial != recorder.serial)
        claims_forget();
    uint64_t key = hash_mix(hash_word((uint64_t)claim.collector << 32 | stack), claim.line);
    key = hash_text(hash_text(key, claim.module), claim.section) << 1 | claim.is_forced;
    struct claimed *known = &claimed_stacks[key >> 32 & (CLAIMS - 1)];
    if (UNLIKELY(known->key != key || !known->number)) {
        uint32_t site = claim_site(claim);
        *known = (struct claimed){key, stack_intern(site, stack, 0)};
    }
    keep_recent(recent_claim(stack, &claim), stack, &claim, known->number);
    return known->number;
}

uint32_t claim_stack(uint32_t stack, struct claim claim)
{
    const struct recent_claim *recent = recent_claim(stack, &claim);
    bool is_known = claims_serial == recorder.serial && is_recent(recent, stack, &claim);
    return LIKELY(is_known) ? recent->number
                            : find_claim(stack, claim.module, claim.section, claim.line, claim.collector, claim.is_forced);
}

const char *wrong_with_forced(const struct interpose_area *area, uint32_t collector)
{
    return section_named(collector, area->module) ? NULL : "forced a name that is in none of its sections";
}
