/* The statement of a call: SQL without its literals, as a number in strings. What was seen before is found in a cache. */
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

/* The statement that a cursor of PostgreSQL ran last, as it was sent: what was made of an object that is no text. */
uint32_t kept_statement(PyObject *cursor);
