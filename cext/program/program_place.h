/* Where this program is recorded: as which descendant of which founder. */
#pragma once

#include <stdbool.h>

#include "core/open_file.h"

struct place {
    char founder[PATH_BYTES], directory[PATH_BYTES], lineage[256];
};

/* The founder that INTERPOSE_LINEAGE names, and the lineage of who started this program. False if there is none, or if it is not
   this user's alone. */
bool place_find(struct place *place, char step[260]);

/* Whether it is the founder: the experiment has none yet, and this process is chosen. */
bool place_claim(struct place *place, const char *step);

/* Make the directory of the subexperiment, with the next number after `step`. False if it is not to be recorded, which is
   then noted, or cannot be made. */
bool place_make(struct place *place, const char *step);
