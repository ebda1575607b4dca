#include "hooks/curses_screen.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/dialogue.h"

static struct {
    bool looked, known;
    void **shown; /* curscr */
    void *(*make)(int lines, int columns, int line, int column);
    int (*copy)(const void *from, void *to);
    int (*lines)(const void *window), (*columns)(const void *window);
    int (*read)(void *window, int line, int column, char *text, int most);
    void *window;
    int height, width;
    uint64_t hashes[FRAME_LINES]; /* of the lines that were kept last */
} frames;

static bool frames_find(void)
{
    static const char *const names[] = {"libncursesw.so.6", "libncurses.so.6", "libncursesw.so.5", "libncurses.so.5"};
    void *library = NULL;
    for (unsigned each = 0; !library && each < sizeof names / sizeof *names; each++)
        library = dlopen(names[each], RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return false;
    frames.shown = dlsym(library, "curscr");
    *(void **)&frames.make = dlsym(library, "newwin");
    *(void **)&frames.copy = dlsym(library, "overwrite");
    *(void **)&frames.lines = dlsym(library, "getmaxy");
    *(void **)&frames.columns = dlsym(library, "getmaxx");
    *(void **)&frames.read = dlsym(library, "mvwinnstr");
    return frames.shown && frames.make && frames.copy && frames.lines && frames.columns && frames.read;
}

/* A window of ours as large as the screen, made again if that has changed its size. */
static bool frames_copy(void)
{
    int height = frames.lines(*frames.shown), width = frames.columns(*frames.shown);
    if (height <= 0 || width <= 0 || height > FRAME_LINES || width > FRAME_COLUMNS)
        return false;
    if (!frames.window || height != frames.height || width != frames.width) {
        frames.window = frames.make(height, width, 0, 0);
        frames.height = height;
        frames.width = width;
        memset(frames.hashes, 0, sizeof frames.hashes);
    }
    return frames.window && frames.copy(*frames.shown, frames.window) == 0;
}

static uint64_t hash_of_line(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t at = 0; at < length; at++)
        hash = (hash ^ (unsigned char)text[at]) * 0x100000001b3u;
    return hash;
}

/* The line as a terminal would show it; 0 if it has not changed. */
static size_t frame_line(int line, char text[FRAME_LINE_BYTES])
{
    size_t before = (size_t)snprintf(text, 32, "\x1b[%d;1H", line + 1);
    int bytes = frames.read(frames.window, line, 0, text + before, FRAME_LINE_BYTES - 64);
    while (bytes > 0 && text[before + (size_t)bytes - 1] == ' ')
        bytes--;
    size_t length = before + (bytes > 0 ? (size_t)bytes : 0);
    uint64_t hash = hash_of_line(text, length);
    if (hash == frames.hashes[line] || (!frames.hashes[line] && length == before))
        return 0;
    frames.hashes[line] = hash;
    memcpy(text + length, "\x1b[K", 3);
    return length + 3;
}

void frames_keep(const struct piece *piece)
{
    char text[FRAME_LINE_BYTES];
    size_t length;
    if (!frames.looked)
        frames.known = frames_find();
    frames.looked = true;
    if (!frames.known || !*frames.shown || !frames_copy())
        return;
    for (int line = 0; line < frames.height; line++)
        if ((length = frame_line(line, text)))
            dialogue_keep(piece, text, length);
}
