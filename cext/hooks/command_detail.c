#include "hooks/command_detail.h"

#include <string.h>

#include "core/detail_levels.h"
#include "kinds.h"
#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/attributes.h"
#include "hooks/object_texts.h"
#include "hooks/path_objects.h"

const char blanks[] = " \t\r\n";

static const char expands[] = "\"'`$\\", ends_word[] = " \t\r\n;|&<>()";

/* The first word that is not an assignment: what a shell would run. If that depends on expansion or quoting, only
   the shell is kept. */
static uint32_t first_word(const char *text, Py_ssize_t bytes)
{
    const char *end = text + bytes;
    while (text < end) {
        while (text < end && (strchr(blanks, *text) || *text == '('))
            text++;
        const char *word = text;
        bool assigns = false;
        for (; text < end && !strchr(ends_word, *text); text++) {
            if (strchr(expands, *text))
                return argument_intern(KIND_process, "sh", 2);
            assigns |= *text == '=';
        }
        if (text > word && !assigns)
            return argument_intern(KIND_process, word, (size_t)(text - word));
        if (text == word)
            break;
    }
    return argument_intern(KIND_process, "sh", 2);
}

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

static uint32_t detail_as_now(PyObject *command)
{
    if (UNLIKELY(arguments_kept(KIND_process) == KEEP_whole))
        return whole_command(command);
    if (PyList_Check(command) || PyTuple_Check(command))
        command = PySequence_Fast_GET_SIZE(command) ? PySequence_Fast_GET_ITEM(command, 0) : Py_None;
    PyObject *line = encoded_path(command);
    uint32_t number = line ? first_word(PyBytes_AS_STRING(line), PyBytes_GET_SIZE(line)) : 0;
    Py_XDECREF(line);
    return number;
}

uint32_t command_detail(PyObject *command)
{
    PyObject *items = items_as_now(command);
    uint32_t number = items ? detail_as_now(items) : 0;
    Py_XDECREF(items);
    return number;
}

uint32_t database_detail(PyObject *database)
{
    PyObject *path = encoded_path(database);
    if (!path)
        return 0;
    const char *text = PyBytes_AS_STRING(path);
    size_t bytes = (size_t)PyBytes_GET_SIZE(path);
    bool uri = bytes > 5 && strncmp(text, "file:", 5) == 0, other = !uri && memmem(text, bytes, "://", 3);
    size_t kept = uri ? strcspn(text, "?#") : bytes; /* without parameters; what is encoded ends with a zero */
    uint32_t number = other ? 0 : argument_intern(KIND_db, text, kept < bytes ? kept : bytes);
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
