/* The statement of a call: SQL without its literals, as a number in strings. Known ones are found in a cache. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/statement.h"
#include "hooks/slot.h"

uint32_t statement_detail(PyObject *statement, enum dialect dialect);

/* Is it a statement that is kept of a call, and in which dialect is it? */
static inline bool is_statement(enum detail_kind detail)
{
    return detail >= DETAIL_statement && detail <= DETAIL_oracle_statement;
}

static inline enum dialect dialect_of(enum detail_kind detail)
{
    _Static_assert(DETAIL_oracle_statement - DETAIL_statement == DIALECT_oracle, "the dialects are in one order");
    return (enum dialect)(detail - DETAIL_statement);
}

/* The statement that a PostgreSQL cursor ran last, as sent, for an object that was not a text. */
uint32_t kept_statement(PyObject *cursor);
