/* How much of the pool is in use, as the control page counts it for all processes of an experiment. */
#pragma once

#include <stdbool.h>

#include "core/fields.h"

/* Would another block be too much for the pool, where space comes back, or for the experiment's limit, where none does? */
bool pool_is_full(const struct control *control);
bool pool_limit_is_reached(const struct control *control);

/* Is so much taken that a monitor should make room: 16 MiB, or half of a smaller pool? */
bool pool_wants_monitor(const struct control *control);

/* Take room for a block, which this process counts in `head`; false if there is none. Return it if the block was not
   appended. */
bool pool_take_room(struct control *control, struct file_head *head);
void pool_return_room(struct control *control, struct file_head *head);
