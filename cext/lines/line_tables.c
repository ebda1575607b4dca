#include "lines/line_parts.h"

#include <errno.h>
#include <stdlib.h>

/* So much the lines of a process may take; functions that come later are left out, and counted. */
#define LINES_MOST_BYTES (512ull << 20)

static struct {
    struct series functions, lines, loops;
    bool rehearsing;
    uint64_t heeded; /* before the rehearsal */
} own;

int tables_begin(void)
{
    int failed = recorder_series(&own.functions, DATA_FUNCTIONS);
    failed = failed ? failed : recorder_series(&own.lines, DATA_LINES);
    return failed ? failed : recorder_series(&own.loops, DATA_LOOPS);
}

bool lines_are_rehearsed(void)
{
    return own.rehearsing;
}

static struct line_table *new_table(uint32_t owner, uint32_t spots)
{
    struct line_table *table = calloc(1, sizeof *table + spots * sizeof *table->waiting);
    if (table) {
        table->owner = owner;
        table->serial = lines.serial;
        table->trace = lines.trace;
    }
    return table;
}

static bool fill_rehearsed(struct line_table *table, const struct line_shape *shape)
{
    table->rehearsed = true;
    table->function = calloc(1, sizeof *table->function);
    table->lines = calloc(shape->spots, sizeof *table->lines);
    table->loops = calloc(shape->loops + 1, sizeof *table->loops);
    return table->function && table->lines && table->loops;
}

static bool fill(struct line_table *table, const struct line_shape *shape)
{
    void *function = NULL, *spots = NULL, *loops = NULL;
    if (own.rehearsing)
        return fill_rehearsed(table, shape);
    if (own.lines.file.bytes + shape->spots * sizeof(struct line) > LINES_MOST_BYTES ||
        shape->spots > LINES_BYTES / sizeof(struct line) - 1)
        return false;
    uint32_t first = series_records(&own.lines, shape->spots, &spots);
    uint32_t number = first ? series_records(&own.functions, 1, &function) : 0;
    bool looped = !shape->loops || (shape->loops < WINDOW_BYTES / sizeof(struct loop) / 2 &&
                                    series_records(&own.loops, shape->loops, &loops));
    if (!number || !looped)
        return false;
    uint32_t thread, task;
    find_owned(table->owner, &thread, &task);
    table->lines = spots;
    table->loops = loops;
    table->function = function;
    *table->function = (struct function){
        .trace = lines.trace,
        .thread = thread,
        .task = task,
        .file = shape->file,
        .function = shape->function,
        .module = shape->module,
        .first_line = shape->first_line,
        .own = shape->own,
        .first_spot = first,
        .spots = shape->spots,
    };
    table->number = number;
    table->first = first;
    __atomic_store_n(&table->function->kind, shape->kind, __ATOMIC_RELEASE);
    return true;
}

struct line_table *lines_table(uint32_t owner, const struct line_shape *shape)
{
    int saved = errno;
    struct line_table *table = new_table(owner, shape->spots);
    if (table && !fill(table, shape)) {
        lines_table_free(table);
        table = NULL;
    }
    if (!table && stretch_record())
        stretch_record()->left_out++;
    errno = saved;
    return table;
}

void lines_table_free(struct line_table *table)
{
    if (table->rehearsed) {
        free(table->function);
        free(table->lines);
        free(table->loops);
    }
    free(table);
}

/* A pause is looked away from meanwhile: what recording takes is not measured in one. */
void lines_rehearse(bool on)
{
    own.rehearsing = on;
    if (on) {
        own.heeded = recorder.heeded;
        recorder.heeded = said_from_outside();
    } else {
        recorder.heeded = own.heeded;
    }
}
