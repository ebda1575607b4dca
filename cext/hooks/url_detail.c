#include "hooks/url_detail.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/detail_levels.h"
#include "cpython/attributes.h"
#include "hooks/attribute_names.h"
#include "hooks/object_descriptor.h"
#include "hooks/object_texts.h"

enum { LONGEST_METHOD = 32 };

/* A method is a word; anything else may be a URL in its place. */
void append_method(struct text *text, PyObject *method)
{
    Py_ssize_t bytes, letters = 0;
    const char *word = bytes_of_text(method, &bytes);
    while (word && letters < bytes && (Py_ISALPHA(word[letters]) || strchr("-_", word[letters])))
        letters++;
    if (!word || letters < bytes || bytes >= LONGEST_METHOD)
        return;
    text_append(text, word, (size_t)bytes);
    text_append(text, " ", 1);
}

static void append_part(struct text *text, const char *before, PyObject *part,
                        void (*put)(struct text *, const char *, size_t))
{
    Py_ssize_t bytes;
    const char *found = bytes_of_text(part, &bytes);
    if (!found || !bytes)
        return;
    text_append(text, before, strlen(before));
    put(text, found, (size_t)bytes);
}

/* As httpx keeps it: scheme, user, host, port, path and more in a tuple. */
static void append_parts(struct text *text, PyObject *parts)
{
    PyObject *port = PyTuple_GET_ITEM(parts, 3);
    append_part(text, "", PyTuple_GET_ITEM(parts, 0), text_append);
    append_part(text, "://", PyTuple_GET_ITEM(parts, 2), text_append);
    if (PyLong_CheckExact(port)) {
        char number[16];
        text_append(text, number, (size_t)snprintf(number, sizeof number, ":%d", descriptor_of_number(port)));
    }
    append_part(text, "", PyTuple_GET_ITEM(parts, 4), url_append);
}

static bool append_by_ways(struct text *text, PyObject *url)
{
    static void (*const puts[])(struct text *, const char *, size_t) = {text_append, authority_append, url_append};
    static const char *const before[] = {"", "://", ""};
    for (Py_ssize_t place = 0; place < 3; place++) {
        PyObject *part = attribute_at(url, PyTuple_GET_ITEM(url_ways, place));
        bool found = part && PyUnicode_CheckExact(part);
        append_part(text, before[place], part, puts[place]);
        Py_XDECREF(part);
        if (!found)
            return false;
    }
    return true;
}

uint32_t url_detail(enum kind kind, PyObject *method, PyObject *url)
{
    char kept[TEXT_BYTES];
    struct text text = {.bytes = kept, .room = sizeof kept};
    Py_ssize_t bytes;
    const char *given = bytes_of_text(url, &bytes);
    append_method(&text, method);
    size_t before = text.length;
    if (given)
        url_append(&text, given, (size_t)bytes);
    else if (url && PyTuple_Check(url) && PyTuple_GET_SIZE(url) == 7)
        append_parts(&text, url);
    else if (!url || !append_by_ways(&text, url))
        text.length = before;
    return text.length > before ? argument_intern(kind, text.bytes, text.length) : 0;
}
