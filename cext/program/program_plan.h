/* How programs that are not Python are recorded: the founder's file `programs`, made by timing/programs.pxi. It has the
   settings of the recording, what is kept of arguments, the number and the levels of each native intrinsic, what the
   logs and the maps of all these programs begin with, and what only a founder needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/settings.h"

/* A piece of the file. */
struct plan_text {
    const char *text;
    size_t bytes;
};

enum { MOST_NOTES = 16 };

/* What a founder's log says besides. */
struct plan_note {
    const char *kind, *attributes;
};

struct plan {
    struct recorder_settings settings;
    struct plan_text head, map, filter; /* the filter is compiled, and a founder's */
    struct plan_note note[MOST_NOTES];
    unsigned notes;
};

/* Read the plan of the experiment in `founder`, and have it hold for this process; false if there is none. What it points
   to stays. */
bool plan_read(struct plan *plan, const char *founder);
