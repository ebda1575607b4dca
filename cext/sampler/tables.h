/* The files that samples are written into (core/fields.h): records are appended, and none is changed. They belong to the
   experiment of the process that is sampled, but that process does not know of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/fields.h"
#include "sampler/numbers.h"

enum { PENDING_BYTES = 16 * 1024 };

struct table {
    const struct data_type *type;
    uint64_t end; /* written and pending; 0: the file does not exist yet */
    uint32_t next;
    size_t used;
    char pending[PENDING_BYTES];
};

struct tables {
    char directory[4096];
    mode_t mode;
    int failed; /* the error's number: nothing more is written */
    struct table samples, sites, stacks, strings, memory, counts;
    struct numbers string_numbers, site_numbers, stack_numbers;
};

/* For a process with its experiment in `directory`. Files are made with the first record. 0 or the error number. */
int tables_begin(struct tables *tables, const char *directory);

/* Numbers for unique entries; 0 if there is no room. */
uint32_t tables_string(struct tables *tables, const char *text, size_t bytes);
uint32_t tables_site(struct tables *tables, const struct site *site);
uint32_t tables_stack(struct tables *tables, uint32_t site, uint32_t outer, bool cut);

/* Returns its number; 0 if there is no room. */
uint32_t tables_sample(struct tables *tables, const struct sample *sample);
void tables_memory(struct tables *tables, const struct memory *memory);
void tables_count(struct tables *tables, const struct sampled_count *count);

/* The process may not be sampled: the file of samples says so. */
void tables_refuse(struct tables *tables, int error);

/* Write what is pending into the files. */
void tables_flush(struct tables *tables);

void tables_end(struct tables *tables);
