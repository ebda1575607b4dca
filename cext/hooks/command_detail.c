#include "hooks/command_detail.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "core/detail_levels.h"
#include "core/program_name.h"
#include "kinds.h"
#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/attributes.h"
#include "hooks/object_texts.h"
#include "hooks/path_detail.h"
#include "hooks/path_objects.h"

const char blanks[] = " \t\r\n";

/* The words of a command with spaces between them, or its line. */
static uint32_t whole_command(PyObject *command)
{
    char text[TEXT_BYTES];
    size_t length = 0;
    bool several = PyList_Check(command) || PyTuple_Check(command);
    for (Py_ssize_t place = 0; place < (several ? PySequence_Fast_GET_SIZE(command) : 1); place++) {
        PyObject *word = encoded_path(several ? PySequence_Fast_GET_ITEM(command, place) : command);
        if (!word)
            continue;
        size_t bytes = (size_t)PyBytes_GET_SIZE(word), room = sizeof text - length - (length > 0);
        if (length && room < sizeof text)
            text[length++] = ' ';
        memcpy(text + length, PyBytes_AS_STRING(word), bytes < room ? bytes : room);
        length += bytes < room ? bytes : room;
        Py_DECREF(word);
        if (length + 1 >= sizeof text)
            break;
    }
    return detail_intern(text, length);
}

/* A line that is not given to a shell is a program, or an error. */
static uint32_t detail_as_now(PyObject *command, bool is_line)
{
    if (UNLIKELY(arguments_kept(KIND_process) == KEEP_whole))
        return whole_command(command);
    if (PyList_Check(command) || PyTuple_Check(command))
        command = PySequence_Fast_GET_SIZE(command) ? PySequence_Fast_GET_ITEM(command, 0) : Py_None;
    PyObject *text = encoded_path(command);
    uint32_t number = 0;
    if (text)
        number = is_line ? program_of_line(PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text))
                         : program_intern(PyBytes_AS_STRING(text));
    Py_XDECREF(text);
    return number;
}

uint32_t command_detail(PyObject *command)
{
    PyObject *items = items_as_now(command);
    bool is_line = PyUnicode_Check(command) || PyBytes_Check(command);
    uint32_t number = items ? detail_as_now(items, is_line) : 0;
    Py_XDECREF(items);
    return number;
}

uint32_t program_detail(PyObject *program)
{
    if (PyLong_CheckExact(program))
        return descriptor_detail(program);
    PyObject *path = encoded_path(program);
    uint32_t number = path ? program_intern(PyBytes_AS_STRING(path)) : 0;
    Py_XDECREF(path);
    return number;
}

/* Whether a word like `password` is the end of what is before a sign. */
static bool is_name_of_secret(const char *text, const char *sign)
{
    static const char *const words[] = {"password", "passwd", "pass", "passphrase", "pwd", "pw", "key", "secret", "token"};
    for (size_t each = 0; each < sizeof words / sizeof *words; each++) {
        size_t bytes = strlen(words[each]);
        if ((size_t)(sign - text) >= bytes && strncasecmp(sign - bytes, words[each], bytes) == 0)
            return true;
    }
    return false;
}

/* A path may have `=` in it, as in /data/year=2024/a.db; a connection string has a name and perhaps a password. */
static bool has_secret(const char *text)
{
    const char *name = text;
    for (const char *sign = strchr(text, '='); sign; name = sign + 1, sign = strchr(name, '=')) {
        const char *end = sign;
        while (end > name && strchr(blanks, end[-1]))
            end--;
        if (is_name_of_secret(name, end))
            return true;
    }
    return false;
}

/* An SQLite URI with a host, which SQLite refuses, and perhaps a user and a password. */
static bool has_host(const char *text)
{
    return strncmp(text, "file://", 7) == 0 && text[7] != '/' && strncmp(text + 7, "localhost/", 10) != 0;
}

/* Without the parameters of a URI, which may have a key; nothing of what is no path. */
static size_t length_of_path(const char *text, size_t bytes)
{
    if (strncmp(text, "file:", 5) == 0)
        return has_host(text) ? 0 : strcspn(text, "?#");
    const char *mark = strchr(text, '?'), *parameter = mark ? strchr(mark, '=') : NULL;
    bool is_other = strstr(text, "://") || has_secret(text);
    return is_other ? 0 : parameter ? (size_t)(mark - text) : bytes;
}

uint32_t database_detail(PyObject *database)
{
    PyObject *path = encoded_path(database);
    if (!path)
        return 0;
    const char *text = PyBytes_AS_STRING(path); /* which ends with a zero */
    size_t bytes = (size_t)PyBytes_GET_SIZE(path), kept = length_of_path(text, bytes);
    uint32_t number = kept ? argument_intern(KIND_db, text, kept) : 0;
    Py_DECREF(path);
    return number;
}

uint32_t word_detail(PyObject *object)
{
    Py_ssize_t bytes, length = 0;
    const char *text = bytes_of_text(object, &bytes);
    while (text && length < bytes && length < 64 && (Py_ISALNUM(text[length]) || strchr("_-.", text[length])))
        length++;
    bool whole = length == bytes || (length < bytes && text && text[length] == ' ');
    return text && whole && length && arguments_kept(KIND_db) != KEEP_nothing ? detail_intern(text, (size_t)length) : 0;
}

uint32_t module_detail(PyObject *object)
{
    Py_ssize_t bytes;
    const char *text = bytes_of_text(object, &bytes);
    return text ? argument_intern(KIND_import, text, (size_t)bytes) : 0;
}
