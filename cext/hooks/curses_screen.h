/* What curses shows, which C code writes to the terminal: read from curses' own picture of the screen, line by line,
   if the dialogue is kept. A window of ours has a copy of that picture; nothing of the program is changed, moved or
   marked. */
#pragma once

#include "core/fields.h"

enum { FRAME_LINES = 512, FRAME_COLUMNS = 1024, FRAME_LINE_BYTES = 4 * FRAME_COLUMNS + 64 };

/* Keep the lines that have changed since the last time. */
void frames_keep(const struct piece *piece);
