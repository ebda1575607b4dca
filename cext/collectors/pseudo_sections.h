/* Pseudo-sections: how modules with a common prefix are reported. */
#pragma once

#include <stdint.h>

#include "interpose_collector.h"

enum { COLLECTORS_AT_MOST = 8, SECTION_BYTES = 32, PREFIX_OF_MODULES = 64 };

/* A pseudo-section: what modules with this prefix are reported as. */
struct pseudo_section {
    uint32_t collector; /* its owner */
    char name[SECTION_BYTES], prefix[PREFIX_OF_MODULES];
};

extern const char system_module[];

struct pseudo_sections {
    struct pseudo_section all[COLLECTORS_AT_MOST * INTERPOSE_SECTIONS];
    uint32_t count;
};

extern struct pseudo_sections pseudo_sections;

/* The pseudo-section that modules of that name are reported as, or NULL. */
const struct pseudo_section *section_of_module(const char *module);

/* A collector's pseudo-section of that name, whether written with its dot or without, or NULL. */
const struct pseudo_section *section_named(uint32_t collector, const char *name);
