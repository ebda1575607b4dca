/* What a child must find in its environment to be recorded as a descendant: `NAME=value` each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

#define VARIABLE_LINEAGE "INTERPOSE_LINEAGE"
#define VARIABLE_ADDED "INTERPOSE_ADDED" /* the names of the variables that interpose added, and will remove */
#define VARIABLE_GROUP "INTERPOSE_GROUP" /* where the founder found libraries */
#define VARIABLE_WITHIN "INTERPOSE_WITHIN" /* the fate of the transaction in which it is started */
#define VARIABLE_SWITCH "INTERPOSE"

enum { VARIABLES = 64, ADDED_BYTES = 2048 };

/* Keep the variables, each ended by a zero byte, `bytes` in all. 0 or the error's number. */
VISIBLE int variables_keep(const char *texts, size_t bytes);

/* The lineage, which the recorder keeps and changes in place in a forked child. */
void variables_name(const char *lineage);

/* All of them, the lineage first, ended by NULL; NULL if children are not to be recorded. Ask once for each child: another
   thread may end the recording meanwhile, and what was given stays. */
VISIBLE const char *const *variables(void);

/* Children get no more variables; those in the process's own environment are removed. */
void variables_forget(void);

/* Is it what switches recording off? */
static inline bool switches_off(const char *value)
{
    return value[0] == 0 || (value[0] == '0' && value[1] == 0);
}
