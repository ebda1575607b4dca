/* What a program does that waits where the pool is full: it has a monitor make room, unless there is no hope. */
#pragma once

#include <stdbool.h>

#include "core/fields.h"

/* Nothing was waited for in vain yet. */
void room_wait_begin(void);

/* Is it worth waiting: has room been made in the time that this process waited last? */
bool room_may_come(const struct control *control);

/* Wait; has room been made? The lock is not held. */
bool room_wait(struct control *control);
