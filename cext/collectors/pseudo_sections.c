#include "collectors/pseudo_sections.h"

#include <string.h>

const char system_module[] = ".SYSTEM";

struct pseudo_sections pseudo_sections;

const struct pseudo_section *section_of_module(const char *module)
{
    for (uint32_t index = 0; index < pseudo_sections.count; index++) {
        const struct pseudo_section *each = &pseudo_sections.all[index];
        if (strncmp(module, each->prefix, strlen(each->prefix)) == 0)
            return each;
    }
    return NULL;
}

const struct pseudo_section *section_named(uint32_t collector, const char *name)
{
    const char *plain = name + (*name == '.');
    for (uint32_t index = 0; index < pseudo_sections.count; index++) {
        const struct pseudo_section *each = &pseudo_sections.all[index];
        if (each->collector == collector && strcmp(plain, each->name) == 0)
            return each;
    }
    return NULL;
}
