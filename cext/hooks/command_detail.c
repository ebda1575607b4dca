#include "hooks/command_detail.h"

#include <stdbool.h>
#include <string.h>

#include "core/database_name.h"
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

uint32_t database_detail(PyObject *database)
{
    PyObject *path = encoded_path(database);
    uint32_t number = path ? database_intern(PyBytes_AS_STRING(path)) : 0;
    Py_XDECREF(path);
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
