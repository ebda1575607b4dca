/* Loads a library, reads addresses in it, and prints the rule at each one, in the notation of readelf. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "native/frame_rules.h"

static bool copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return true;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int examine(struct dl_phdr_info *info, size_t size, void *found)
{
    struct frame_table *table = found;
    (void)size;
    if (strcmp(last_part(info->dlpi_name), last_part(table->head)) != 0)
        return 0;
    const char *head = NULL;
    for (unsigned each = 0; each < info->dlpi_phnum; each++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[each];
        uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && end > table->all.end)
            table->all.end = end;
        if (part->p_type == PT_GNU_EH_FRAME)
            head = (const char *)(info->dlpi_addr + part->p_vaddr);
    }
    table->all.begin = info->dlpi_addr;
    table->head = head;
    return 1;
}

static void print_rule(const struct frame_rule *rule)
{
    static const char *const bases[] = {"rsp", "rbp", "kept"};
    if (rule->is_known)
        printf("%s%+d", bases[rule->base], rule->frame_at);
    else
        printf("?");
    if (rule->pointer == POINTER_in_frame)
        printf(" c%+d", rule->pointer_at);
    else
        printf(rule->pointer == POINTER_same ? " same" : rule->pointer == POINTER_lost ? " lost" : " exp");
    printf(rule->is_last ? " last\n" : " c-8\n");
}

int main(int count, char **words)
{
    struct frame_table table = {.head = count > 1 ? words[1] : "", .copy = copy};
    uintptr_t address, begin;
    struct frame_copies copies;
    if (count < 2 || !dlopen(words[1], RTLD_LAZY) || !dl_iterate_phdr(examine, &table))
        return 1;
    while (scanf("%" SCNxPTR, &address) == 1) {
        struct frame_rule rule = frame_rule_at(&table, table.all.begin + address, &copies, &begin);
        print_rule(&rule);
    }
    return 0;
}
