#define _GNU_SOURCE
#include "core/program_name.h"

#include <stdbool.h>
#include <string.h>

#include "core/detail_levels.h"
#include "core/program.h"

static const char blanks[] = " \t\r\n", ends_word[] = " \t\r\n;|&<>()", expands[] = "\"'`$\\";

static bool is_plain(char letter)
{
    bool is_word = (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
    return is_word || (letter && strchr("/._-+~", letter)) || (unsigned char)letter >= 0x80;
}

/* How much of a text is a plain name, up to its end or a blank; 0 if it is not one, or is an option. */
static size_t length_of_plain(const char *text, size_t bytes)
{
    size_t length = 0;
    while (length < bytes && is_plain(text[length]))
        length++;
    const char *slash = memrchr(text, '/', length), *name = slash ? slash + 1 : text;
    bool is_name = *name != '-' && (length == bytes || strchr(blanks, text[length]));
    return is_name ? length : 0;
}

uint32_t program_intern(const char *path)
{
    size_t bytes = strlen(path);
    if (arguments_kept(KIND_process) == KEEP_whole || program_is_there(path))
        return argument_intern(KIND_process, path, bytes);
    size_t plain = length_of_plain(path, bytes);
    return argument_intern(KIND_process, plain ? path : "?", plain ? plain : 1);
}

/* Where the next word ends, and whether it is an assignment; NULL if a shell would expand it, or a list of values
   begins: A=(b c). */
static const char *end_of_word(const char *text, const char *end, bool *assigns)
{
    for (*assigns = false; text < end && !strchr(ends_word, *text); text++) {
        if (strchr(expands, *text))
            return NULL;
        *assigns |= *text == '=';
    }
    return *assigns && text < end && *text == '(' ? NULL : text;
}

uint32_t program_of_line(const char *text, size_t bytes)
{
    const char *word = text, *end = text + bytes, *stop = text;
    bool assigns = true;
    while (stop && assigns) {
        word = stop;
        while (word < end && (strchr(blanks, *word) || *word == '('))
            word++;
        stop = end_of_word(word, end, &assigns);
    }
    size_t plain = stop && stop > word ? length_of_plain(word, (size_t)(stop - word)) : 0;
    return argument_intern(KIND_process, plain ? word : "sh", plain ? plain : 2);
}
