/* The names of tasks, by number: the newest, as many as there is room for. */
#pragma once

#include <stdint.h>

#include "core/visible.h"

/* Another recording begins, or that of a child: no task is known. */
void task_names_begin(void);

/* Keep the name, a number in strings, of a task that has just got its number. Nothing where there is no room. */
VISIBLE void task_name_keep(uint32_t number, uint32_t name);
