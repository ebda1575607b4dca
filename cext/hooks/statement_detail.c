#include "hooks/statement_detail.h"

#include "core/recorder.h"
#include "core/statement_interning.h"
#include "core/visible.h"
#include "hooks/attribute_names.h"
#include "hooks/object_texts.h"

enum { STATEMENT_READ = 64 * 1024 };

static uint32_t intern_normalised(PyObject *statement, enum dialect dialect, uint64_t key)
{
    Py_ssize_t bytes = PyUnicode_GET_LENGTH(statement);
    bool literals, ascii = PyUnicode_IS_COMPACT_ASCII(statement);
    const char *sql = ascii ? PyUnicode_DATA(statement) : PyUnicode_AsUTF8AndSize(statement, &bytes);
    if (!sql) {
        PyErr_Clear();
        return 0;
    }
    uint32_t number = statement_intern(key, dialect, sql, (size_t)bytes, &literals);
    if (!key && !literals && PyUnicode_CheckExact(statement))
        PyObject_Hash(statement); /* it is no text of one call: the next time it is found by its hash */
    return number;
}

static uint32_t intern_beginning(PyObject *statement, enum dialect dialect, uint64_t key)
{
    PyObject *beginning = PyUnicode_Substring(statement, 0, STATEMENT_READ);
    if (!beginning) {
        PyErr_Clear();
        return 0;
    }
    uint32_t number = intern_normalised(beginning, dialect, key);
    Py_DECREF(beginning);
    return number;
}

static __attribute__((noinline)) uint32_t new_statement(PyObject *statement, enum dialect dialect, uint64_t key)
{
    bool whole = PyUnicode_GET_LENGTH(statement) <= STATEMENT_READ;
    return whole ? intern_normalised(statement, dialect, key) : intern_beginning(statement, dialect, key);
}

/* Anything but a plain text: the bytes that a driver made of a statement and its values, or a text of the program's
   own type, whose hash may be the program's, too. */
static __attribute__((noinline)) uint32_t other_statement(PyObject *statement, enum dialect dialect)
{
    bool literals;
    if (PyUnicode_Check(statement))
        return new_statement(statement, dialect, 0);
    if (!PyBytes_Check(statement) && !PyByteArray_Check(statement))
        return 0;
    const char *sql = PyBytes_Check(statement) ? PyBytes_AS_STRING(statement) : PyByteArray_AS_STRING(statement);
    size_t bytes = (size_t)Py_SIZE(statement);
    return statement_intern(0, dialect, sql, bytes < STATEMENT_READ ? bytes : STATEMENT_READ, &literals);
}

uint32_t statement_detail(PyObject *statement, enum dialect dialect)
{
    if (UNLIKELY(!PyUnicode_CheckExact(statement)))
        return other_statement(statement, dialect);
    Py_hash_t hash = ((PyASCIIObject *)statement)->hash;
    if (hash == -1 && PyUnicode_GET_LENGTH(statement) <= STATEMENT_SHORT)
        return new_statement(statement, dialect, 0); /* it was just made, most likely; to normalise it takes no longer */
    if (hash == -1)
        hash = PyObject_Hash(statement);
    uint64_t key = (uint64_t)hash ^ ((uint64_t)PyUnicode_GET_LENGTH(statement) << 48) ^ ((uint64_t)dialect << 40);
    uint32_t number = statement_find(key);
    return LIKELY(number) ? number : new_statement(statement, dialect, key);
}

uint32_t kept_statement(PyObject *cursor)
{
    PyObject *query = member_of(cursor, name_of_query);
    PyObject *kept = query ? NULL : member_of(cursor, name_of_kept_query);
    if (kept)
        query = member_of(kept, name_of_query);
    uint32_t number = query ? statement_detail(query, DIALECT_postgresql) : 0;
    Py_XDECREF(kept);
    Py_XDECREF(query);
    return number;
}
