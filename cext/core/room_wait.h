/* What a program does where the pool is full, or soon will be: it has a monitor make room, and may wait for that, unless
   there is no hope. */
#pragma once

#include <stdbool.h>

#include "core/fields.h"

/* Nothing was waited for in vain yet. */
void room_wait_begin(void);

/* Start a monitor, if none lives and this process called none in the last seconds. */
void room_call_monitor(struct control *control);

/* Is it worth waiting: has room been made in the time that this process waited last? */
bool room_may_come(const struct control *control);

/* Wait; has room been made? The lock is not held. */
bool room_wait(struct control *control);
