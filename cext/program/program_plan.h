/* How programs that are not Python are recorded: the founder's file `programs`, written by timing/programs.pxi. It has the
   settings of the recording, what is kept of arguments, the number and the levels of each native intrinsic, and what the
   logs and the maps of all these programs begin with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/settings.h"

/* A piece of the file. */
struct plan_text {
    const char *text;
    size_t bytes;
};

struct plan {
    struct recorder_settings settings;
    struct plan_text head, map;
};

/* Read the plan of the experiment in `founder`, and have it hold for this process; false if there is none. What it points
   to stays. */
bool plan_read(struct plan *plan, const char *founder);
