#define _GNU_SOURCE
#include "hooks/database_server.h"

#include <stdio.h>
#include <string.h>

#include "core/detail_levels.h"
#include "kinds.h"
#include "hooks/command_detail.h"
#include "hooks/object_texts.h"

/* A longer one is ignored. */
static void put_part(char part[PART_BYTES], const char *text, size_t bytes)
{
    if (bytes >= PART_BYTES)
        bytes = 0;
    memcpy(part, text, bytes);
    part[bytes] = 0;
}

/* Anything but a plain name may be a connection string with a password. */
static bool is_plain(const char *text, size_t bytes)
{
    for (const char *sign = "=@;#?"; *sign; sign++)
        if (memchr(text, *sign, bytes))
            return false;
    return !memmem(text, bytes, ":/", 2);
}

static void put_name(char part[PART_BYTES], const char *text, size_t bytes)
{
    put_part(part, text, is_plain(text, bytes) ? bytes : 0);
}

/* Without ports: one host, or several with commas. Brackets contain an address. */
static void put_hosts(char part[PART_BYTES], const char *text, size_t bytes)
{
    char hosts[PART_BYTES];
    if (!is_plain(text, bytes))
        bytes = 0;
    size_t length = 0;
    bool port = false, bracket = false;
    for (size_t at = 0; at < bytes && length < sizeof hosts; at++) {
        bracket = text[at] == '[' || (bracket && text[at] != ']');
        port = !bracket && text[at] != ',' && (port || text[at] == ':');
        if (!port)
            hosts[length++] = text[at];
    }
    put_part(part, hosts, length);
}

bool is_one_of(const char *word, size_t bytes, const char *words)
{
    for (; *words; words += strlen(words) + 1)
        if (strlen(words) == bytes && memcmp(words, word, bytes) == 0)
            return true;
    return false;
}

static const char words_of_host[] = "host\0unix_socket\0hostname\0server\0";
static const char words_of_name[] = "dbname\0database\0db\0path\0";

static void put_named(struct server *server, const char *name, size_t name_bytes, const char *text, size_t bytes)
{
    if (is_one_of(name, name_bytes, words_of_host))
        put_hosts(server->host, text, bytes);
    else if (is_one_of(name, name_bytes, words_of_name))
        put_name(server->name, text, bytes);
}

/* What follows a URI's question mark. */
static void read_parameters(struct server *server, const char *text, const char *end)
{
    while (text < end) {
        const char *next = memchr(text, '&', (size_t)(end - text));
        const char *stop = next ? next : end, *sign = memchr(text, '=', (size_t)(stop - text));
        if (sign)
            put_named(server, text, (size_t)(sign - text), sign + 1, (size_t)(stop - sign - 1));
        text = next ? next + 1 : end;
    }
}

/* scheme://user:password@host:port/name?parameters. A password may contain any of these characters, unescaped by
   mistake: the host begins after the last @; if there is an @ after a question mark, nothing is certain. */
static void read_uri(struct server *server, const char *text, const char *end)
{
    const char *mark = memchr(text, '?', (size_t)(end - text)), *stop = mark ? mark : end;
    if (mark && memchr(mark, '@', (size_t)(end - mark)))
        return;
    const char *user = memrchr(text, '@', (size_t)(stop - text)), *host = user ? user + 1 : text;
    const char *slash = memchr(host, '/', (size_t)(stop - host)), *host_end = slash ? slash : stop;
    put_hosts(server->host, host, (size_t)(host_end - host));
    if (slash)
        put_name(server->name, slash + 1, (size_t)(stop - slash - 1));
    if (mark)
        read_parameters(server, mark + 1, end);
}

static const char *skip_blanks(const char *text, const char *end)
{
    while (text < end && *text && strchr(blanks, *text))
        text++;
    return text;
}

/* One value of a connection string, bare or in quotes; a backslash escapes. Returns where it ends. */
static const char *read_value(const char *text, const char *end, char value[PART_BYTES], size_t *bytes)
{
    bool quoted = text < end && *text == '\'';
    for (text += quoted; text < end; text++) {
        if (quoted ? *text == '\'' : *text && strchr(blanks, *text))
            return text + quoted;
        if (*text == '\\' && text + 1 < end)
            text++;
        if (*bytes < PART_BYTES)
            value[(*bytes)++] = *text;
    }
    return end;
}

/* name = value name = 'value' */
static void read_pairs(struct server *server, const char *text, const char *end)
{
    while ((text = skip_blanks(text, end)) < end) {
        char value[PART_BYTES];
        size_t bytes = 0;
        const char *name = text;
        while (text < end && *text != '=' && !(*text && strchr(blanks, *text)))
            text++;
        const char *name_end = text;
        text = skip_blanks(text, end);
        if (text >= end || *text != '=')
            return;
        text = read_value(skip_blanks(text + 1, end), end, value, &bytes);
        put_named(server, name, (size_t)(name_end - name), value, bytes);
    }
}

/* False if it is not a connection string. */
static bool read_connection(struct server *server, const char *text, size_t bytes)
{
    const char *scheme = memmem(text, bytes, "://", 3), *pair = memchr(text, '=', bytes);
    if (scheme && (!pair || scheme < pair))
        read_uri(server, scheme + 3, text + bytes);
    else if (pair)
        read_pairs(server, text, text + bytes);
    return scheme || pair;
}

static void read_dsn(struct server *server, PyObject *dsn)
{
    Py_ssize_t bytes;
    const char *text = text_of(dsn, &bytes);
    if (text)
        read_connection(server, text, (size_t)bytes);
}

/* Drivers of PostgreSQL take a whole connection string in the place of a name. */
static void read_name(struct server *server, const char *text, size_t bytes)
{
    if (!read_connection(server, text, bytes))
        put_name(server->name, text, bytes);
}

static void read_argument(struct server *server, PyObject *key, PyObject *value)
{
    Py_ssize_t name_bytes, bytes;
    const char *name = text_of(key, &name_bytes), *text = text_of(value, &bytes);
    if (!name || !text)
        return;
    if (is_one_of(name, (size_t)name_bytes, "dsn\0conninfo\0"))
        read_dsn(server, value);
    else if (is_one_of(name, (size_t)name_bytes, words_of_name))
        read_name(server, text, (size_t)bytes);
    else
        put_named(server, name, (size_t)name_bytes, text, (size_t)bytes);
}

/* Arguments by name: in a dictionary, or names in a tuple and their values. */
static void read_arguments(struct server *server, PyObject *names, PyObject *const *values)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (names && PyTuple_Check(names))
        for (; at < PyTuple_GET_SIZE(names); at++)
            read_argument(server, PyTuple_GET_ITEM(names, at), values[at]);
    else
        while (names && PyDict_Next(names, &at, &key, &value))
            read_argument(server, key, value);
}

static uint32_t intern_server(const struct server *server)
{
    char text[2 * PART_BYTES + 8];
    const char *host = *server->host ? server->host : "[local]";
    if (!*server->host && !*server->name)
        return 0;
    return argument_intern(KIND_db, text, (size_t)snprintf(text, sizeof text, "%s/%s", host, server->name));
}

uint32_t dsn_detail(PyObject *dsn, PyObject *names, PyObject *const *values)
{
    struct server server = {"", ""};
    read_dsn(&server, dsn);
    read_arguments(&server, names, values);
    return intern_server(&server);
}

uint32_t server_detail(PyObject *host, PyObject *name, PyObject *names, PyObject *const *values)
{
    struct server server = {"", ""};
    Py_ssize_t bytes;
    const char *text = text_of(host, &bytes);
    if (text)
        put_hosts(server.host, text, (size_t)bytes);
    text = text_of(name, &bytes);
    if (text)
        read_name(&server, text, (size_t)bytes);
    read_arguments(&server, names, values);
    return intern_server(&server);
}
