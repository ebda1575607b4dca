/* How a call of a database client failed, by the name that the library has for it: a text's number, or 0. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Functions of the libraries that are called, and not exchanged; NULL where there is none. None of them changes anything. */
#define TELLERS(X) \
    X(PQresultStatus, int, (const void *result)) \
    X(PQresultErrorField, char *, (const void *result, int field)) \
    X(PQpipelineStatus, int, (const void *connection)) \
    X(sqlite3_sql, const char *, (void *statement)) \
    X(mysql_eof, char, (void *result)) \
    X(mysql_errno, unsigned, (void *connection)) \
    X(mysql_stmt_errno, unsigned, (void *statement)) \
    X(redisvCommand, void *, (void *connection, const char *format, va_list values))
#define TELLER(name, returns, parameters) \
    extern void *real_##name; \
    typedef returns type_of_##name parameters;
TELLERS(TELLER)
#define TELL(name, ...) (((type_of_##name *)real_##name)(__VA_ARGS__))

uint32_t failed_if(bool failed);
uint32_t failed_result(const void *result);
uint32_t failed_command(const void *result); /* NULL is an error, too */
uint32_t failed_sqlite(int result);
uint32_t failed_mysql(bool failed, void *connection);
uint32_t failed_mysql_statement(bool failed, void *statement);
uint32_t failed_reply(const void *reply);
