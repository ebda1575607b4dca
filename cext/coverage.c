#define _GNU_SOURCE
#include "coverage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "file.h"
#include "levels.h"

/* So much the places of a process may take; code that comes later is left out, and counted. */
#define PLACES_MOST_BYTES (256ull << 20)

struct coverage coverage;

static struct {
    struct series covered, places, branches;
    struct covered *left_out;
} own;

static int create_series(struct series *series, int type)
{
    int failed = series_create(series, recorder_directory(), &data_types[type], 1);
    series->keep_windows = true;
    return failed;
}

static int begin_files(void)
{
    int failed = create_series(&own.covered, DATA_COVERED);
    failed = failed ? failed : create_series(&own.places, DATA_PLACES);
    failed = failed ? failed : create_series(&own.branches, DATA_BRANCHES);
    if (failed)
        return failed;
    own.left_out = NULL;
    coverage.serial++;
    *coverage.ours = 1;
    return 0;
}

static int prepare_once(void)
{
    if (coverage.ours)
        return 0;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK))
        return errno;
    coverage.ours = page;
    return 0;
}

int coverage_on(bool branches, bool contexts, bool probes)
{
    if (!recorder_directory())
        return ESRCH;
    int failed = prepare_once();
    failed = failed ? failed : begin_files();
    if (failed)
        return failed;
    coverage.branches = branches;
    coverage.contexts = contexts;
    coverage.probes = probes;
    coverage.on = 1;
    return 0;
}

void coverage_off(void)
{
    coverage.on = 0;
}

bool coverage_begin_again(void)
{
    int saved = errno;
    if (coverage.on && !*coverage.ours && (!recorder_directory() || begin_files()))
        coverage.on = 0;
    errno = saved;
    return coverage.on;
}

/* --- tables */

static void count_left_out(void)
{
    if (!own.left_out) {
        own.left_out = series_extend(&own.covered, sizeof *own.left_out);
        if (!own.left_out)
            return;
        own.left_out->kind = COVERED_LEFT_OUT;
    }
    own.left_out->places++;
}

static bool is_room_for(const struct coverage_shape *shape)
{
    size_t room = LINES_BYTES - sizeof(struct file_head);
    return own.places.file.bytes + shape->places * sizeof(struct covered_place) <= PLACES_MOST_BYTES &&
           shape->places <= room / sizeof(struct covered_place) && shape->branches <= room / sizeof(struct covered_branch);
}

static bool fill(struct coverage_table *table, const struct coverage_shape *shape)
{
    void *places = NULL, *branches = NULL, *code = NULL;
    if (!is_room_for(shape))
        return false;
    uint32_t first_place = series_records(&own.places, shape->places, &places);
    uint32_t first_branch = first_place && shape->branches ? series_records(&own.branches, shape->branches, &branches) : 0;
    if (!first_place || (shape->branches && !first_branch))
        return false;
    table->number = series_records(&own.covered, 1, &code);
    if (!table->number)
        return false;
    table->first_place = first_place;
    table->places = places;
    table->branches = branches;
    table->code = code;
    *table->code = (struct covered){
        .file = shape->file,
        .function = shape->function,
        .module = shape->module,
        .first_line = shape->first_line,
        .own = shape->own,
        .context = shape->context,
        .first_place = first_place,
        .places = shape->places,
        .first_branch = first_branch,
        .branches = shape->branches,
        .has_columns = shape->has_columns,
        .start_ns = clock_ns(CLOCK_MONOTONIC),
    };
    __atomic_store_n(&table->code->kind, COVERED_CODE, __ATOMIC_RELEASE);
    return true;
}

struct coverage_table *coverage_table(const struct coverage_shape *shape)
{
    int saved = errno;
    struct coverage_table *table = calloc(1, sizeof *table);
    if (table) {
        table->serial = coverage.serial;
        table->context = shape->context;
    }
    if (table && !fill(table, shape)) {
        free(table);
        table = NULL;
    }
    if (!table)
        count_left_out();
    errno = saved;
    return table;
}

uint32_t coverage_context(void)
{
    const struct thread_record *record = current_thread ? current_thread->record : NULL;
    for (uint32_t index = record ? record->fields.depth : 0; index-- > 0;)
        if (index < OPEN_CALLS && record->open[index].call && is_transaction(record->open[index].intrinsic))
            return record->open[index].detail;
    return 0;
}
