/* What is kept of a call besides its times: a statement, a path, an address, a command. Never a value.

   Each text is a number in strings; what was seen before is found in a cache. Nothing of the program's own code is
   run: an object that is not of the types expected has no detail. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "hooks/object_descriptor.h"
#include "hooks/idle_descriptors.h"
#include "hooks/descriptors.h"
#include "cpython/sites.h"
#include "core/statement.h"

enum { STATEMENT_READ = 64 * 1024 };

enum { TEXT_BYTES = 1024 }; /* so much of a text is kept */

static PyObject *name_of_path, *name_of_owner, *name_of_buffer, *name_of_blocking, *name_of_module, *name_of_taking;

static PyObject *name_of_query, *name_of_kept_query;

static int details_begin(void)
{
    name_of_query = name_of_query ? name_of_query : PyUnicode_InternFromString("query");
    name_of_kept_query = name_of_kept_query ? name_of_kept_query : PyUnicode_InternFromString("_query");
    name_of_path = name_of_path ? name_of_path : PyUnicode_InternFromString("_str");
    name_of_owner = name_of_owner ? name_of_owner : PyUnicode_InternFromString("owner");
    name_of_buffer = name_of_buffer ? name_of_buffer : PyUnicode_InternFromString("__buffer__");
    name_of_module = name_of_module ? name_of_module : PyUnicode_InternFromString("__module__");
    name_of_blocking = name_of_blocking ? name_of_blocking : PyUnicode_InternFromString("blocking");
    if (!name_of_query || !name_of_kept_query)
        return -1;
    name_of_taking = name_of_taking ? name_of_taking : PyUnicode_InternFromString("handle_one_request");
    return name_of_taking && name_of_path && name_of_owner && name_of_buffer && name_of_blocking && name_of_module ? 0 : -1;
}

/* --- statements */

static uint32_t intern_normalised(PyObject *statement, uint64_t key)
{
    Py_ssize_t bytes = PyUnicode_GET_LENGTH(statement);
    bool literals, ascii = PyUnicode_IS_COMPACT_ASCII(statement);
    const char *sql = ascii ? PyUnicode_DATA(statement) : PyUnicode_AsUTF8AndSize(statement, &bytes);
    if (!sql) {
        PyErr_Clear();
        return 0;
    }
    uint32_t number = statement_intern(key, sql, (size_t)bytes, &literals);
    if (!key && !literals && PyUnicode_CheckExact(statement))
        PyObject_Hash(statement); /* it is no text of one call: the next time it is found by its hash */
    return number;
}

static uint32_t intern_beginning(PyObject *statement, uint64_t key)
{
    PyObject *beginning = PyUnicode_Substring(statement, 0, STATEMENT_READ);
    if (!beginning) {
        PyErr_Clear();
        return 0;
    }
    uint32_t number = intern_normalised(beginning, key);
    Py_DECREF(beginning);
    return number;
}

static __attribute__((noinline)) uint32_t new_statement(PyObject *statement, uint64_t key)
{
    bool whole = PyUnicode_GET_LENGTH(statement) <= STATEMENT_READ;
    return whole ? intern_normalised(statement, key) : intern_beginning(statement, key);
}

/* What is no plain text: the bytes that a driver made of a statement and its values, or a text of the program's own
   type, whose hash may be the program's too. */
static __attribute__((noinline)) uint32_t other_statement(PyObject *statement)
{
    bool literals;
    if (PyUnicode_Check(statement))
        return new_statement(statement, 0);
    if (!PyBytes_Check(statement) && !PyByteArray_Check(statement))
        return 0;
    const char *sql = PyBytes_Check(statement) ? PyBytes_AS_STRING(statement) : PyByteArray_AS_STRING(statement);
    size_t bytes = (size_t)Py_SIZE(statement);
    return statement_intern(0, sql, bytes < STATEMENT_READ ? bytes : STATEMENT_READ, &literals);
}

static uint32_t statement_detail(PyObject *statement)
{
    if (UNLIKELY(!PyUnicode_CheckExact(statement)))
        return other_statement(statement);
    Py_hash_t hash = ((PyASCIIObject *)statement)->hash;
    if (hash == -1 && PyUnicode_GET_LENGTH(statement) <= STATEMENT_SHORT)
        return new_statement(statement, 0); /* it was just made, most likely; to normalise it takes no longer */
    if (hash == -1)
        hash = PyObject_Hash(statement);
    uint64_t key = (uint64_t)hash ^ ((uint64_t)PyUnicode_GET_LENGTH(statement) << 48);
    uint32_t number = statement_find(key);
    return LIKELY(number) ? number : new_statement(statement, key);
}

/* --- paths */

/* Text as bytes, as the file system has it; a new reference, NULL for what is no text. */
static PyObject *encoded(PyObject *text)
{
    PyObject *type, *value, *traceback;
    if (PyBytes_Check(text))
        return Py_NewRef(text);
    if (!PyUnicode_Check(text))
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *bytes = PyUnicode_EncodeFSDefault(text);
    PyErr_Restore(type, value, traceback);
    return bytes;
}

/* A path in text or bytes, as the file system has it; 0 for anything else. `kind`: of a file, or of a socket. */
static uint32_t path_text(PyObject *path, enum kind kind)
{
    if (PyUnicode_Check(path) && PyUnicode_IS_COMPACT_ASCII(path))
        return argument_intern(kind, (const char *)PyUnicode_1BYTE_DATA(path), (size_t)PyUnicode_GET_LENGTH(path));
    if (PyBytes_Check(path))
        return argument_intern(kind, PyBytes_AS_STRING(path), (size_t)PyBytes_GET_SIZE(path));
    if (!PyUnicode_Check(path))
        return 0;
    PyObject *bytes = encoded(path);
    if (!bytes)
        return string_intern("?", 1);
    uint32_t number = argument_intern(kind, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return number;
}

static uint32_t detail_of_descriptor(int number)
{
    const struct descriptor *known = descriptor_known(number);
    return known ? known->name : 0;
}

static uint32_t descriptor_detail(PyObject *object)
{
    return detail_of_descriptor(descriptor_of(object));
}

static uint32_t path_detail(PyObject *path)
{
    return PyLong_CheckExact(path) ? descriptor_detail(path) : path_text(path, KIND_file);
}

/* --- what an object keeps: in its own structure, so that nothing of the program's is run to have it */

/* A new reference, or NULL where there is no such member, or nothing in it. */
static PyObject *member_of(PyObject *object, PyObject *name)
{
    PyObject *member = _PyType_Lookup(Py_TYPE(object), name), *value = NULL;
    if (member && Py_IS_TYPE(member, &PyMemberDescr_Type))
        value = PyMember_GetOne((const char *)object, ((PyMemberDescrObject *)member)->d_member);
    if (!value)
        PyErr_Clear();
    return value;
}

/* The text that a pathlib.Path keeps of itself once it was asked for it, which the call itself does. */
static uint32_t kept_path(PyObject *path)
{
    PyObject *text = member_of(path, name_of_path);
    uint32_t number = text ? path_text(text, KIND_file) : 0;
    Py_XDECREF(text);
    return number;
}

/* The statement that a cursor of PostgreSQL ran last, as it was sent: what was made of an object that is no text. */
static uint32_t kept_statement(PyObject *cursor)
{
    PyObject *query = member_of(cursor, name_of_query);
    PyObject *kept = query ? NULL : member_of(cursor, name_of_kept_query);
    if (kept)
        query = member_of(kept, name_of_query);
    uint32_t number = query ? statement_detail(query) : 0;
    Py_XDECREF(kept);
    Py_XDECREF(query);
    return number;
}

/* --- addresses */

/* Text and length of a host's name or address; NULL where it is none. */
static const char *host_text(PyObject *host, Py_ssize_t *bytes)
{
    if (PyUnicode_Check(host) && PyUnicode_IS_COMPACT_ASCII(host)) {
        *bytes = PyUnicode_GET_LENGTH(host);
        return (const char *)PyUnicode_1BYTE_DATA(host);
    }
    if (!PyBytes_Check(host))
        return NULL;
    *bytes = PyBytes_GET_SIZE(host);
    return PyBytes_AS_STRING(host);
}

static uint32_t host_detail(PyObject *host, PyObject *port)
{
    char text[TEXT_BYTES];
    Py_ssize_t bytes = 0, port_bytes = 0;
    const char *name = host_text(host, &bytes), *service = port ? host_text(port, &port_bytes) : NULL;
    if (!name)
        return 0;
    const char *at = memrchr(name, '@', (size_t)bytes); /* who asks, and by what password, is no part of a host's name */
    bytes -= at ? at + 1 - name : 0;
    name = at ? at + 1 : name;
    const char *shape = memchr(name, ':', (size_t)bytes) ? "[%.*s]" : "%.*s";
    int length = snprintf(text, 512, shape, (int)(bytes < 400 ? bytes : 400), name);
    if (service)
        length += snprintf(text + length, 128, ":%.*s", (int)(port_bytes < 100 ? port_bytes : 100), service);
    else if (port && PyLong_CheckExact(port) && descriptor_of_number(port) >= 0)
        length += snprintf(text + length, 128, ":%d", descriptor_of_number(port));
    return argument_intern(KIND_net, text, (size_t)length);
}

static uint32_t address_detail(PyObject *address)
{
    if (!PyTuple_Check(address))
        return path_text(address, KIND_net);
    if (PyTuple_GET_SIZE(address) < 2)
        return 0;
    return host_detail(PyTuple_GET_ITEM(address, 0), PyTuple_GET_ITEM(address, 1));
}

/* The socket under an encrypted connection. */
static int descriptor_of_tls(PyObject *connection)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *owner = PyObject_GetAttr(connection, name_of_owner);
    int number = owner ? descriptor_of(owner) : -1;
    Py_XDECREF(owner);
    PyErr_Restore(type, value, traceback);
    return number;
}

/* --- commands and databases */

static const char blanks[] = " \t\r\n";

static const char expands[] = "\"'`$\\", ends_word[] = " \t\r\n;|&<>()";

/* The first word that is not an assignment: what a shell would run. Where that depends on what would be expanded or
   quoted, the shell is all that is told. */
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
        PyObject *word = encoded(several ? PySequence_Fast_GET_ITEM(command, place) : command);
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
    return string_intern(text, length);
}

/* The program that is run: the first word of a shell's line, of a path, of the first in a list of words (where a whole
   line may stand). */
static uint32_t command_detail(PyObject *command)
{
    if (UNLIKELY(arguments_kept(KIND_process) == KEEP_whole))
        return whole_command(command);
    if (PyList_Check(command) || PyTuple_Check(command))
        command = PySequence_Fast_GET_SIZE(command) ? PySequence_Fast_GET_ITEM(command, 0) : Py_None;
    PyObject *line = encoded(command);
    uint32_t number = line ? first_word(PyBytes_AS_STRING(line), PyBytes_GET_SIZE(line)) : 0;
    Py_XDECREF(line);
    return number;
}

/* A database's path; of an SQLite URI not what follows the path, which may be a key. */
static uint32_t database_detail(PyObject *database)
{
    PyObject *path = encoded(database);
    if (!path)
        return 0;
    const char *text = PyBytes_AS_STRING(path);
    size_t bytes = (size_t)PyBytes_GET_SIZE(path);
    const char *parameters = bytes > 5 && strncmp(text, "file:", 5) == 0 ? memchr(text, '?', bytes) : NULL;
    uint32_t number = argument_intern(KIND_db, text, parameters ? (size_t)(parameters - text) : bytes);
    Py_DECREF(path);
    return number;
}
