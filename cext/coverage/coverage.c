#define _GNU_SOURCE
#include "coverage/coverage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/levels.h"
#include "core/series.h"

/* So much the places of a process may take; code that comes later is left out, and counted. */
#define PLACES_MOST_BYTES (256ull << 20)

struct coverage coverage;

static struct {
    struct series covered, places, branches;
    struct covered *left_out;
} own;

static int begin_files(void)
{
    int failed = recorder_series(&own.covered, DATA_COVERED);
    failed = failed ? failed : recorder_series(&own.places, DATA_PLACES);
    failed = failed ? failed : recorder_series(&own.branches, DATA_BRANCHES);
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
    return own.places.file.bytes + (uint64_t)shape->places * sizeof(struct covered_place) <= PLACES_MOST_BYTES;
}

static uint32_t pieces_of(const struct coverage_shape *shape)
{
    uint32_t by_places = (shape->places + PIECE_PLACES - 1) / PIECE_PLACES;
    uint32_t by_branches = (shape->branches + PIECE_BRANCHES - 1) / PIECE_BRANCHES;
    return by_places > by_branches ? by_places : by_branches;
}

/* How many of `all` are in the piece with that number, where `most` fit into one. */
static uint32_t part_of(uint32_t all, uint32_t piece, uint32_t most)
{
    uint32_t before = piece * most;
    return all <= before ? 0 : all - before < most ? all - before : most;
}

static uint32_t records(struct series *series, uint32_t count, void **found)
{
    return count ? series_records(series, count, found) : 0;
}

/* So much of a code object, from these records on. */
struct extent {
    uint32_t places, branches;
    uint32_t first_place, first_branch;
};

/* The record is valid once it has its kind. */
static void describe(struct covered *code, const struct coverage_shape *shape, struct extent extent)
{
    *code = (struct covered){
        .file = shape->file,
        .function = shape->function,
        .module = shape->module,
        .first_line = shape->first_line,
        .own = shape->own,
        .context = shape->context,
        .first_place = extent.first_place,
        .places = extent.places,
        .first_branch = extent.first_branch,
        .branches = extent.branches,
        .has_columns = shape->has_columns,
        .start_ns = clock_ns(CLOCK_MONOTONIC),
    };
    __atomic_store_n(&code->kind, COVERED_CODE, __ATOMIC_RELEASE);
}

static bool fill(struct coverage_piece *piece, const struct coverage_shape *shape, struct extent extent)
{
    void *places = NULL, *branches = NULL, *code = NULL;
    extent.first_place = records(&own.places, extent.places, &places);
    extent.first_branch = records(&own.branches, extent.branches, &branches);
    if ((extent.places && !extent.first_place) || (extent.branches && !extent.first_branch))
        return false;
    piece->number = series_records(&own.covered, 1, &code);
    if (!piece->number)
        return false;
    piece->first_place = extent.first_place;
    piece->places = places;
    piece->branches = branches;
    describe(code, shape, extent);
    return true;
}

static bool fill_all(struct coverage_table *table, const struct coverage_shape *shape, uint32_t pieces)
{
    bool filled = is_room_for(shape);
    for (uint32_t piece = 0; filled && piece < pieces; piece++)
        filled = fill(&table->piece[piece], shape,
                      (struct extent){.places = part_of(shape->places, piece, PIECE_PLACES),
                                      .branches = part_of(shape->branches, piece, PIECE_BRANCHES)});
    return filled;
}

struct coverage_table *coverage_table(const struct coverage_shape *shape)
{
    int saved = errno;
    uint32_t pieces = pieces_of(shape);
    struct coverage_table *table = calloc(1, sizeof *table + pieces * sizeof *table->piece);
    if (table) {
        table->serial = coverage.serial;
        table->context = shape->context;
    }
    if (table && !fill_all(table, shape, pieces)) {
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
