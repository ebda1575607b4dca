/* Which call sites the filter lets pass. */
#include "core/filter.h"

#include <string.h>

#include "core/filter_rules.h"

static bool is_module(const struct rule *rule, const void *site)
{
    return is_like_pattern(rule->text, ((const struct call_site *)site)->module);
}

/* A package includes what is below it. */
static bool is_package(const struct rule *rule, const void *site)
{
    const char *module = ((const struct call_site *)site)->module;
    if (!module || is_like_pattern(rule->text, module))
        return module;
    char outer[FILTER_TEXT];
    size_t bytes = strnlen(module, sizeof outer - 1);
    memcpy(outer, module, bytes);
    for (outer[bytes] = 0; bytes > 0; bytes--)
        if (outer[bytes] == '.') {
            outer[bytes] = 0;
            if (is_like_pattern(rule->text, outer))
                return true;
        }
    return false;
}

static bool is_function(const struct rule *rule, const void *what)
{
    const struct call_site *site = what;
    return is_like_pattern(rule->more, site->function) &&
           (strcmp(rule->text, "*") == 0 || is_like_pattern(rule->text, site->module));
}

/* A file is identified by its path, or by the end of it. */
static bool is_of_file(const char *pattern, const char *file)
{
    if (is_like_pattern(pattern, file))
        return true;
    for (const char *part = file ? strchr(file, '/') : NULL; part; part = strchr(part + 1, '/'))
        if (is_like_pattern(pattern, part + 1))
            return true;
    return false;
}

static bool is_line(const struct rule *rule, const void *what)
{
    const struct call_site *site = what;
    return site->line >= rule->first && site->line <= rule->last && is_of_file(rule->text, site->file);
}

bool filter_site(const struct call_site *site)
{
    return rules_let_pass(BY_module, is_module, site) && rules_let_pass(BY_package, is_package, site) &&
           rules_let_pass(BY_function, is_function, site) && rules_let_pass(BY_line, is_line, site);
}

unsigned filter_within(const struct call_site *site)
{
    const struct filter_rules *rules = rules_hold();
    unsigned found = 0;
    for (unsigned each = 0; each < rules->count; each++)
        if (rules->rules[each].by == BY_within && is_function(&rules->rules[each], site))
            found |= rules->rules[each].leaves_out ? WITHIN_LEFT_OUT : WITHIN_ASKED;
    rules_let_go();
    return found;
}
