#include "hooks/url_detail.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/detail_levels.h"
#include "cpython/attributes.h"
#include "hooks/attribute_names.h"
#include "hooks/object_descriptor.h"

void append(struct text *text, const char *bytes, size_t length)
{
    size_t room = sizeof text->bytes - text->length;
    length = length < room ? length : room;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

size_t length_until(const char *bytes, size_t length, const char *ends)
{
    size_t place = 0;
    while (place < length && (!bytes[place] || !strchr(ends, bytes[place])))
        place++;
    return place;
}

/* Without everything before the last @, which is a user and a password. */
static void append_authority(struct text *text, const char *bytes, size_t length)
{
    const char *at = memrchr(bytes, '@', length);
    size_t skipped = at ? (size_t)(at + 1 - bytes) : 0;
    append(text, bytes + skipped, length - skipped);
}

/* How long `@` is at a place, escaped or not; 0 if it is not there. So is `:`. */
static size_t sign_at(const char *bytes, size_t length, char plain, const char *escaped)
{
    if (length && *bytes == plain)
        return 1;
    return length >= 3 && strncasecmp(bytes, escaped, 3) == 0 ? 3 : 0;
}

/* A part of a path may be a URL again: how much of it is a user and a password. */
static size_t length_of_user(const char *part, size_t length, bool has_scheme)
{
    size_t user = 0, sign;
    bool colon = has_scheme;
    for (size_t at = 0; at < length; at += sign ? sign : 1) {
        sign = sign_at(part + at, length - at, '@', "%40");
        user = sign && colon ? at + sign : user;
        colon |= sign_at(part + at, length - at, ':', "%3a") > 0;
    }
    return user;
}

/* Do the parameters of a URL in a part of a path begin here, escaped or not: %3Fa=b, &a=b? */
static bool begins_parameters(const char *at, size_t length)
{
    if (*at != '&' && *at != '%')
        return *at == ';';
    size_t sign = sign_at(at, length, '&', "%26"), name;
    sign = sign ? sign : length >= 3 && (memcmp(at, "%23", 3) == 0 || strncasecmp(at, "%3b", 3) == 0) ? 3 : 0;
    if (!sign)
        return length >= 3 && strncasecmp(at, "%3f", 3) == 0;
    for (name = sign; name < length && (Py_ISALNUM(at[name]) || strchr("_-.", at[name]));)
        name++;
    return name > sign && sign_at(at + name, length - name, '=', "%3d");
}

/* One part without a user, a password and parameters; nothing if a password may go on in what looks like parameters.
   False if they are those of the whole path: a semicolon begins those of the part. */
static bool append_part_of_path(struct text *text, const char *part, size_t length, bool has_scheme)
{
    size_t kept = 0;
    while (kept < length && !begins_parameters(part + kept, length - kept))
        kept++;
    size_t user = length_of_user(part, kept, has_scheme);
    if (kept < length && length_of_user(part, length, has_scheme) > kept)
        user = kept;
    append(text, part + user, kept - user);
    return kept == length || part[kept] == ';';
}

/* False if the rest is not kept. */
static bool append_parts_of_path(struct text *text, const char *bytes, size_t length)
{
    bool has_scheme = false;
    while (length) {
        size_t part = length_until(bytes, length, "/"), slash = part < length;
        if (!append_part_of_path(text, bytes, part, has_scheme))
            return false;
        append(text, "/", slash);
        has_scheme = part && bytes[part - 1] == ':';
        bytes += part + slash;
        length -= part + slash;
    }
    return true;
}

/* Up to the first slash; but a password may contain one that should have been escaped, where no port can be. If ? or
   # follows a port, and an @ follows that, it may as well be a password: http://ann:12?x@host/. */
static size_t length_of_authority(const char *bytes, size_t length)
{
    size_t authority = length_until(bytes, length, "/\\?#");
    const char *at = memrchr(bytes, '@', length), *colon = memchr(bytes, ':', authority);
    if (!at || !colon || (size_t)(at - bytes) < authority)
        return authority;
    size_t digits = (size_t)(colon + 1 - bytes);
    while (digits < authority && Py_ISDIGIT(bytes[digits]))
        digits++;
    bool is_port = digits == authority && (bytes[authority] == '/' || bytes[authority] == '\\');
    size_t rest = (size_t)(at + 1 - bytes);
    return is_port ? authority : rest + length_until(at + 1, length - rest, "/\\?#");
}

/* Of a URL, or a path, in which another URL may be. */
static void append_url(struct text *text, const char *bytes, size_t length)
{
    const char *slashes;
    if (length > 5 && strncasecmp(bytes, "data:", 5) == 0)
        length = length_until(bytes, length, ","); /* what follows is no address, but the contents */
    while (text->length < sizeof text->bytes && (slashes = memmem(bytes, length_until(bytes, length, "?#"), "//", 2))) {
        size_t before = (size_t)(slashes + 2 - bytes), authority = length_of_authority(slashes + 2, length - before);
        if (!append_parts_of_path(text, bytes, before))
            return;
        append_authority(text, bytes + before, authority);
        bytes += before + authority;
        length -= before + authority;
    }
    append_parts_of_path(text, bytes, length_until(bytes, length, "?#"));
}

static void append_part(struct text *text, const char *before, PyObject *part,
                        void (*put)(struct text *, const char *, size_t))
{
    Py_ssize_t bytes;
    const char *found = bytes_of_text(part, &bytes);
    if (!found || !bytes)
        return;
    append(text, before, strlen(before));
    put(text, found, (size_t)bytes);
}

/* As httpx keeps it: scheme, user, host, port, path and more in a tuple. */
static void append_parts(struct text *text, PyObject *parts)
{
    PyObject *port = PyTuple_GET_ITEM(parts, 3);
    append_part(text, "", PyTuple_GET_ITEM(parts, 0), append);
    append_part(text, "://", PyTuple_GET_ITEM(parts, 2), append);
    if (PyLong_CheckExact(port)) {
        char number[16];
        append(text, number, (size_t)snprintf(number, sizeof number, ":%d", descriptor_of_number(port)));
    }
    append_part(text, "", PyTuple_GET_ITEM(parts, 4), append_url);
}

static bool append_by_ways(struct text *text, PyObject *url)
{
    static void (*const puts[])(struct text *, const char *, size_t) = {append, append_authority, append_url};
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
    struct text text = {.length = 0};
    Py_ssize_t bytes;
    const char *given = bytes_of_text(url, &bytes), *word = bytes_of_text(method, &bytes);
    if (word && bytes < 32) {
        append(&text, word, (size_t)bytes);
        append(&text, " ", 1);
    }
    given = bytes_of_text(url, &bytes);
    size_t before = text.length;
    if (given)
        append_url(&text, given, (size_t)bytes);
    else if (url && PyTuple_Check(url) && PyTuple_GET_SIZE(url) == 7)
        append_parts(&text, url);
    else if (!url || !append_by_ways(&text, url))
        text.length = before;
    return text.length > before ? argument_intern(kind, text.bytes, text.length) : 0;
}
