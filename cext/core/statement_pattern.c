#include "core/statement_pattern.h"

#include <string.h>

#include "core/statement_scan.h"

/* Does the statement differ in literals alone? What follows one is compared with what follows the other. */
static bool is_like(const struct statement_pattern *pattern, const char *at, const char *end)
{
    const char *known = pattern->sql;
    for (uint32_t index = 0; index < pattern->literals.count; index++) {
        size_t same = (size_t)(pattern->sql + pattern->literals.at[index].begin - known);
        if ((size_t)(end - at) <= same || memcmp(at, known, same) != 0)
            return false;
        known = pattern->sql + pattern->literals.at[index].end;
        at = pattern->literals.at[index].is_text ? sql_plain_text_end(at + same, end)
                                                 : sql_plain_number_end(at + same, end);
        if (!at)
            return false;
    }
    size_t rest = (size_t)(pattern->sql + pattern->bytes - known);
    return (size_t)(end - at) == rest && memcmp(at, known, rest) == 0;
}

uint32_t pattern_find(const struct statement_patterns *patterns, uint32_t serial, enum dialect dialect,
                      const char *sql, size_t bytes)
{
    for (uint32_t index = 0; index < PATTERNS; index++) {
        const struct statement_pattern *pattern = &patterns->pattern[index];
        uint32_t number = __atomic_load_n(&pattern->number, __ATOMIC_ACQUIRE);
        if (number && pattern->serial == serial && pattern->dialect == dialect && is_like(pattern, sql, sql + bytes))
            return number;
    }
    return 0;
}

void pattern_keep(struct statement_patterns *patterns, uint32_t serial, enum dialect dialect, const char *sql,
                  size_t bytes, const struct statement_literals *literals, uint32_t number)
{
    if (bytes > STATEMENT_SHORT || literals->count == 0 || literals->count > PATTERN_LITERALS)
        return;
    struct statement_pattern *pattern = &patterns->pattern[patterns->next++ % PATTERNS];
    __atomic_store_n(&pattern->number, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pattern->serial = serial;
    pattern->dialect = dialect;
    pattern->bytes = (uint32_t)bytes;
    pattern->literals = *literals;
    memcpy(pattern->sql, sql, bytes);
    __atomic_store_n(&pattern->number, number, __ATOMIC_RELEASE);
}
