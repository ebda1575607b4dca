#include "core/dialogue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/exclusive.h"
#include "core/recorder.h"
#include "core/redact.h"
#include "core/series.h"

enum { PIECE_BYTES = 8 * 1024, REDACTED_BYTES = 64 * 1024 };

static struct {
    uint64_t limit_bytes;
    bool there, failed;
    uint32_t size;     /* of the terminal, as kept last: rows and, above them, columns */
    uint8_t last_what; /* of the piece that was kept last */
    struct series series;
} dialogue;

void dialogue_choose(uint64_t limit_bytes)
{
    dialogue.limit_bytes = limit_bytes;
}

void dialogue_begin(void)
{
    dialogue.there = dialogue.failed = false;
    dialogue.size = dialogue.last_what = 0;
    recorder.dialogue = dialogue.limit_bytes > 0;
}

static bool is_there(void)
{
    const char *directory = recorder_directory();
    if (dialogue.there || dialogue.failed || !directory)
        return dialogue.there;
    dialogue.failed = series_create(&dialogue.series, directory, &data_types[DATA_DIALOGUE], 1) != 0;
    return dialogue.there = !dialogue.failed;
}

/* A length, the piece, the text: as a string in its file. */
static void add(const struct piece *piece, const char *text, size_t bytes)
{
    uint32_t length = (uint32_t)(sizeof *piece + bytes);
    size_t room = sizeof length + (length + 3) / 4 * 4;
    bool fits = dialogue.series.end + room <= dialogue.limit_bytes;
    char *record = fits ? series_extend(&dialogue.series, room) : NULL;
    if (!record) {
        dialogue.series.head->lost++;
        return;
    }
    memcpy(record + sizeof length, piece, sizeof *piece);
    memcpy(record + sizeof length + sizeof *piece, text, bytes);
    __atomic_store_n((uint32_t *)(void *)record, length, __ATOMIC_RELEASE);
    dialogue.last_what = piece->what;
}

static void keep_size(const struct piece *piece)
{
    struct winsize found;
    if (ioctl((int)piece->descriptor, TIOCGWINSZ, &found) || !found.ws_row || !found.ws_col)
        return;
    uint32_t size = found.ws_row | (uint32_t)found.ws_col << 16;
    if (size == dialogue.size)
        return;
    struct piece sized = {.time_ns = piece->time_ns, .thread = piece->thread, .descriptor = piece->descriptor,
                          .what = PIECE_SIZE};
    dialogue.size = size;
    add(&sized, (const char *)&size, sizeof size);
}

static void keep_parts(struct piece piece, const char *text, size_t bytes)
{
    for (size_t from = 0; from < bytes; from += PIECE_BYTES)
        add(&piece, text + from, bytes - from < PIECE_BYTES ? bytes - from : PIECE_BYTES);
}

/* All of it at once, because what must be redacted may be anywhere in it. */
static void keep_redacted(struct piece piece, const char *text, size_t bytes)
{
    size_t left = bytes;
    char *redacted = redact(text, &left);
    if (redacted)
        piece.flags |= PIECE_REDACTED;
    if (redacted || left)
        keep_parts(piece, redacted ? redacted : text, left);
    free(redacted);
}

static void keep(const struct piece *piece, const char *text, size_t bytes)
{
    keep_size(piece);
    /* The length of hidden input is not shown either. */
    if (piece->what == PIECE_UNSEEN && dialogue.last_what != PIECE_UNSEEN)
        add(piece, text, 0);
    for (size_t from = 0; piece->what != PIECE_UNSEEN && from < bytes; from += REDACTED_BYTES)
        keep_redacted(*piece, text + from, bytes - from < REDACTED_BYTES ? bytes - from : REDACTED_BYTES);
}

void dialogue_keep(const struct piece *piece, const char *text, size_t bytes)
{
    int saved = errno;
    if (exclusive_begin()) {
        if (is_there())
            keep(piece, text, bytes);
        exclusive_end();
    }
    errno = saved;
}
