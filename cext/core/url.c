#define _GNU_SOURCE
#include "core/url.h"

#include <string.h>
#include <strings.h>

#include "core/statement_words.h"

/* What is before a part of a URL: nothing, a slash, several slashes, or a scheme and one or two. */
enum before { BEFORE_nothing, BEFORE_slash, BEFORE_host, BEFORE_authority };

static const char ends_part[] = "/\\?#";

void text_append(struct text *text, const char *bytes, size_t length)
{
    size_t room = text->room - text->length;
    length = length < room ? length : room;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static bool is_one_of(char letter, const char *letters)
{
    return letter && strchr(letters, letter);
}

static size_t length_until(const char *bytes, size_t length, const char *ends)
{
    size_t place = 0;
    while (place < length && !is_one_of(bytes[place], ends))
        place++;
    return place;
}

/* How long `@` is at a place, escaped or not; 0 if it is not there. So is `:`. */
static size_t sign_at(const char *bytes, size_t length, char plain, const char *escaped)
{
    if (length && *bytes == plain)
        return 1;
    return length >= 3 && strncasecmp(bytes, escaped, 3) == 0 ? 3 : 0;
}

/* How much of a part is a user and a password. */
static size_t length_of_user(const char *part, size_t length, bool is_authority)
{
    size_t user = 0, sign;
    bool colon = is_authority;
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
    for (name = sign; name < length && (is_word(at[name]) || at[name] == '-' || at[name] == '.');)
        name++;
    return name > sign && sign_at(at + name, length - name, '=', "%3d");
}

static size_t length_before_parameters(const char *part, size_t length)
{
    size_t kept = 0;
    while (kept < length && !begins_parameters(part + kept, length - kept))
        kept++;
    return kept;
}

/* Up to the value of what is called password=, or the like. */
static size_t length_before_secret(const char *part, size_t length)
{
    const char *name = part, *end = part + length;
    for (const char *sign = part; (sign = memchr(sign, '=', (size_t)(end - sign))); name = ++sign)
        if (names_secret(name, sign))
            return (size_t)(sign + 1 - part);
    return length;
}

/* One part without a user, a password and parameters; nothing if a password may go on in what looks like parameters.
   False if the rest of the path is not kept: a semicolon begins parameters of the part alone. */
static bool append_part_of_path(struct text *text, const char *part, size_t length)
{
    size_t kept = length_before_parameters(part, length), user = length_of_user(part, kept, false);
    if (kept < length && length_of_user(part, length, false) > kept)
        user = kept;
    size_t open = length_before_secret(part + user, kept - user);
    text_append(text, part + user, open);
    return user + open == kept && (kept == length || part[kept] == ';');
}

void authority_append(struct text *text, const char *bytes, size_t length)
{
    size_t user = length_of_user(bytes, length, true);
    text_append(text, bytes + user, length_before_parameters(bytes + user, length - user));
}

/* What may be a port: digits, or nothing, between a colon and a slash or the end. */
static bool is_port(const char *colon, const char *end, const char *after)
{
    for (const char *at = colon + 1; at < end; at++)
        if (!is_digit(*at))
            return false;
    return end == after || is_one_of(*end, "/\\");
}

/* The colon in a part that ends what may be a user, not a host; NULL if there is none. */
static const char *colon_of_user(const char *part, size_t length, size_t rest)
{
    const char *address = length && *part == '[' ? memchr(part, ']', length) : NULL, *from = address ? address : part;
    const char *colon = memchr(from, ':', (size_t)(part + length - from));
    return colon && !is_port(colon, part + length, part + rest) ? colon : NULL;
}

/* An @ behind this part ends a password with a slash, a ? or a # that should have been escaped. In the middle of a path
   it may as well be a name: /@scope/, or in parameters: ?mail=ann@host. */
static size_t length_of_torn_user(const char *part, size_t length, size_t rest, enum before before)
{
    const char *at = memrchr(part, '@', rest), *mark = part + length_until(part, rest, "?#");
    if (!at || at < part + length || !colon_of_user(part, length, rest))
        return 0;
    bool is_name = at[-1] == '/' || (mark < at && memchr(mark, '=', (size_t)(at - mark)));
    return before == BEFORE_slash && is_name ? 0 : (size_t)(at + 1 - part);
}

/* Past the slashes after a part, and what they are. */
static enum before kind_of_slashes(const char *part, size_t length, const char *slashes, size_t count)
{
    bool scheme = length && (part[length - 1] == ':' || (length >= 3 && strncasecmp(slashes - 3, "%3a", 3) == 0));
    if (count > 2)
        return BEFORE_host;
    return scheme ? BEFORE_authority : count == 2 ? BEFORE_host : BEFORE_slash;
}

/* False if the rest is not kept: a colon in a host is followed by a port or is a user's, and its parameters may be anything. */
static bool append_part(struct text *text, const char *part, size_t length, enum before before)
{
    if (before == BEFORE_nothing || before == BEFORE_slash)
        return append_part_of_path(text, part, length);
    size_t user = length_of_user(part, length, true), rest = length - user;
    if (before == BEFORE_authority && colon_of_user(part + user, rest, rest))
        return false;
    authority_append(text, part + user, rest);
    return length_before_parameters(part + user, rest) == rest;
}

void url_append(struct text *text, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    enum before before = BEFORE_nothing;
    if (length > 5 && strncasecmp(bytes, "data:", 5) == 0) { /* no address follows, but a type and the contents */
        text_append(text, bytes, 5 + length_until(bytes + 5, length - 5, ",:@?#"));
        return;
    }
    while (bytes < end && text->length < text->room) {
        size_t part = length_until(bytes, (size_t)(end - bytes), ends_part);
        size_t torn = length_of_torn_user(bytes, part, (size_t)(end - bytes), before);
        bytes += torn;
        part = torn ? length_until(bytes, (size_t)(end - bytes), ends_part) : part;
        if (!append_part(text, bytes, part, torn ? BEFORE_host : before))
            return;
        const char *slashes = bytes + part, *next = slashes;
        while (next < end && is_one_of(*next, "/\\"))
            next++;
        text_append(text, slashes, (size_t)(next - slashes));
        if (next == slashes)
            return;
        before = kind_of_slashes(bytes, part, slashes, (size_t)(next - slashes));
        bytes = next;
    }
}

const char *host_within(const char *text, size_t *bytes)
{
    const char *at = memrchr(text, '@', *bytes), *host = at ? at + 1 : text;
    *bytes = length_until(host, *bytes - (size_t)(host - text), "?#=;");
    return host;
}

bool may_be_url(const char *path, size_t bytes)
{
    const char *colon = memchr(path, ':', bytes), *escape = memchr(path, '%', bytes), *end = path + bytes;
    if (colon && (memchr(colon, '@', (size_t)(end - colon)) || memmem(colon, (size_t)(end - colon), ":/", 2)))
        return true;
    return escape && memmem(escape, (size_t)(end - escape), "%40", 3);
}
