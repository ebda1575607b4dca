/* What curses shows, which C writes to the terminal: read from its own picture of the screen, line by line, where the
   dialogue is kept. Of that picture a copy is made in a window of ours; nothing of the program's is changed, moved or
   marked. */
#pragma once

#include "core/fields.h"

enum { FRAME_LINES = 512, FRAME_COLUMNS = 1024, FRAME_LINE_BYTES = 4 * FRAME_COLUMNS + 64 };

/* Keep the lines that have changed since the last time. */
void frames_keep(const struct piece *piece);
