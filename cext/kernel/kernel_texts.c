#include "kernel/kernel_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t texts_add(struct kernel_texts *texts, const char *text)
{
    if (texts->count == texts->room) {
        size_t room = texts->room ? 2 * texts->room : 256;
        char **larger = room > TEXTS_AT_MOST ? NULL : realloc(texts->text, room * sizeof *larger);
        if (!larger)
            return 0;
        texts->text = larger;
        texts->room = room;
    }
    char *copy = strdup(text);
    if (!copy)
        return 0;
    texts->text[texts->count++] = copy;
    return ERRORS + (uint32_t)texts->count;
}

uint32_t texts_once(struct kernel_texts *texts, const char *text)
{
    uint64_t key = key_of_text(text, strlen(text));
    uint32_t number = numbers_find(&texts->numbers, key);
    if (!number && (number = texts_add(texts, text)))
        numbers_keep(&texts->numbers, key, number);
    return number;
}

uint32_t texts_share(struct kernel_texts *texts, const char *text)
{
    for (unsigned place = 0; place < SHARED_TEXTS; place++) {
        if (!texts->shared[place].number) {
            texts->shared[place].text = text;
            texts->shared[place].number = texts_add(texts, text);
        }
        if (texts->shared[place].text == text)
            return texts->shared[place].number;
    }
    return 0;
}

static bool is_shared(const struct kernel_texts *texts, uint32_t number)
{
    for (unsigned place = 0; place < SHARED_TEXTS; place++)
        if (texts->shared[place].number == number)
            return true;
    return false;
}

void texts_replace(struct kernel_texts *texts, uint32_t number, const char *text)
{
    size_t place = number - ERRORS - 1;
    char *copy = number > ERRORS && place < texts->count && !is_shared(texts, number) ? strdup(text) : NULL;
    if (!copy)
        return;
    free(texts->text[place]);
    texts->text[place] = copy;
}

void texts_free(struct kernel_texts *texts)
{
    for (size_t place = 0; place < texts->count; place++)
        free(texts->text[place]);
    free(texts->text);
    numbers_clear(&texts->numbers);
    memset(texts, 0, sizeof *texts);
}

uint32_t text_of_error(int64_t error)
{
    bool is_none = error == EAGAIN || error == EINTR || error == EINPROGRESS;
    return error > 0 && error <= ERRORS && !is_none ? (uint32_t)error : 0;
}
