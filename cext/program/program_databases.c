#define _GNU_SOURCE
#include "program/program_databases.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/intern.h"
#include "core/interning.h"
#include "program/program_host.h"

struct native databases[DATABASE_COUNT];

/* --- functions that tell of errors; they are called, and not exchanged */

#define TELLERS(X) \
    X(PQresultStatus, int, (const void *result)) \
    X(PQresultErrorField, char *, (const void *result, int field)) \
    X(mysql_errno, unsigned, (void *connection)) \
    X(redisvCommand, void *, (void *connection, const char *format, va_list values))
#define TELLER(name, returns, parameters) \
    static void *real_##name; \
    typedef returns type_of_##name parameters;
TELLERS(TELLER)
#define TELL(name, ...) (((type_of_##name *)real_##name)(__VA_ARGS__))

/* --- the statements that connections and prepared statements are about: a hash of their address, and above it the detail.
   One word, so never torn. */

enum { KEPT = 256 };
static uint64_t kept[KEPT];

static uint64_t *place_of(const void *of, uint32_t *hash)
{
    uint64_t mixed = hash_mix((uint64_t)(uintptr_t)of, 1);
    *hash = (uint32_t)mixed;
    return &kept[mixed >> 32 & (KEPT - 1)];
}

static void keep_statement(const void *of, uint32_t detail)
{
    uint32_t hash;
    uint64_t *place = place_of(of, &hash);
    if (of)
        __atomic_store_n(place, (uint64_t)detail << 32 | hash, __ATOMIC_RELAXED);
}

static uint32_t kept_statement(const void *of)
{
    uint32_t hash;
    uint64_t word = __atomic_load_n(place_of(of, &hash), __ATOMIC_RELAXED);
    return (uint32_t)word == hash ? (uint32_t)(word >> 32) : 0;
}

/* --- errors, by their names */

static uint32_t name_error(const char *form, const char *text, unsigned number)
{
    char name[64];
    int bytes = text ? snprintf(name, sizeof name, form, text) : snprintf(name, sizeof name, form, number);
    return bytes > 0 && bytes < (int)sizeof name ? string_intern(name, (size_t)bytes) : 0;
}

static uint32_t failed_result(const void *result)
{
    enum { BAD_RESPONSE = 5, FATAL_ERROR = 7 };
    int status = result && real_PQresultStatus ? TELL(PQresultStatus, result) : 0;
    if (status != BAD_RESPONSE && status != FATAL_ERROR)
        return 0;
    const char *state = real_PQresultErrorField ? TELL(PQresultErrorField, result, 'C') : NULL;
    return name_error("SQLSTATE %s", state ? state : "?", 0);
}

static uint32_t failed_sqlite(int result)
{
    static const char *const names[] = {
        [1] = "ERROR", [3] = "PERM", [4] = "ABORT", [5] = "BUSY", [6] = "LOCKED", [7] = "NOMEM", [8] = "READONLY",
        [9] = "INTERRUPT", [10] = "IOERR", [11] = "CORRUPT", [13] = "FULL", [14] = "CANTOPEN", [17] = "SCHEMA",
        [19] = "CONSTRAINT", [20] = "MISMATCH", [21] = "MISUSE", [23] = "AUTH", [26] = "NOTADB",
    };
    enum { ROW = 100, DONE = 101 };
    unsigned code = (unsigned)result & 0xff;
    if (code == 0 || code == ROW || code == DONE)
        return 0;
    const char *name = code < sizeof names / sizeof *names ? names[code] : NULL;
    return name_error(name ? "SQLITE_%s" : "error %u", name, code);
}

static uint32_t failed_mysql(bool failed, void *connection)
{
    unsigned number = failed && connection && real_mysql_errno ? TELL(mysql_errno, connection) : 0;
    return number ? name_error("error %u", NULL, number) : failed ? name_error("%s", "error", 0) : 0;
}

static uint32_t failed_if(bool failed)
{
    return failed ? name_error("%s", "error", 0) : 0;
}

/* The type is what a reply of Redis begins with, or all that there is of it: a program can have no replies made. */
static uint32_t failed_reply(const void *reply)
{
    enum { REPLY_ERROR = 6, MOST_TYPES = 256 };
    uintptr_t type = (uintptr_t)reply;
    return failed_if(!reply || (type < MOST_TYPES ? type : *(const unsigned *)reply) == REPLY_ERROR);
}

/* --- the wrappers: what is said of the call, the real function, and how it ended */

#define BEGIN(name, subject) \
    native_begin(&call, &databases[DATABASE_##name], (intptr_t)(subject), __builtin_return_address(0), \
                 (uintptr_t)__builtin_frame_address(0))

#define WRAPPER(name, returns, parameters, arguments, subject, after, of, moved, error) \
    static returns program_##name parameters \
    { \
        typedef returns type parameters; \
        struct native_call call; \
        bool begun = BEGIN(name, subject); \
        returns result = ((type *)databases[DATABASE_##name].real)arguments; \
        int saved = errno; \
        if (begun) { \
            after; \
            call.failed = call.span.thread ? (error) : 0; \
            native_end(&call, (moved), 0); \
        } \
        of; \
        errno = saved; \
        return result; \
    }

/* A call about no statement: its subject is a text, or NULL. */
#define PLAIN(name, returns, parameters, arguments, text, moved, error) \
    WRAPPER(name, returns, parameters, arguments, text, (void)0, (void)0, moved, error)

#define STATEMENT ((struct native_statement *)call.subject)

/* A call with a statement, which later ones with `of` are about, and such a later one. */
#define WITH_STATEMENT(name, returns, parameters, arguments, text, length, of, error) \
    WRAPPER(name, returns, parameters, arguments, (&(struct native_statement){text, 0, 0}), STATEMENT->bytes = (length), \
            keep_statement(of, begun ? STATEMENT->detail : 0), 0, error)
#define ABOUT_STATEMENT(name, returns, parameters, arguments, of, moved, error) \
    WRAPPER(name, returns, parameters, arguments, (&(struct native_statement){NULL, 0, kept_statement(of)}), (void)0, \
            (void)0, moved, error)

typedef const char *text;

PLAIN(PQconnectdb, void *, (text about), (about), NULL, 0, failed_if(!result))
PLAIN(PQconnectdbParams, void *, (text const *names, text const *values, int more), (names, values, more), NULL, 0,
      failed_if(!result))
PLAIN(PQsetdbLogin, void *, (text host, text port, text options, text tty, text name, text user, text password),
      (host, port, options, tty, name, user, password), NULL, 0, failed_if(!result))
WITH_STATEMENT(PQexec, void *, (void *on, text sql), (on, sql), sql, SIZE_MAX, on, failed_result(result))
WITH_STATEMENT(PQexecParams, void *,
               (void *on, text sql, int count, const unsigned *types, text const *values, const int *lengths,
                const int *formats, int wanted),
               (on, sql, count, types, values, lengths, formats, wanted), sql, SIZE_MAX, on, failed_result(result))
WITH_STATEMENT(PQprepare, void *, (void *on, text name, text sql, int count, const unsigned *types),
               (on, name, sql, count, types), sql, SIZE_MAX, on, failed_result(result))
PLAIN(PQexecPrepared, void *,
      (void *on, text name, int count, text const *values, const int *lengths, const int *formats, int wanted),
      (on, name, count, values, lengths, formats, wanted), NULL, 0, failed_result(result))
WITH_STATEMENT(PQsendQuery, int, (void *on, text sql), (on, sql), sql, SIZE_MAX, on, failed_if(!result))
WITH_STATEMENT(PQsendQueryParams, int,
               (void *on, text sql, int count, const unsigned *types, text const *values, const int *lengths,
                const int *formats, int wanted),
               (on, sql, count, types, values, lengths, formats, wanted), sql, SIZE_MAX, on, failed_if(!result))
WITH_STATEMENT(PQsendPrepare, int, (void *on, text name, text sql, int count, const unsigned *types),
               (on, name, sql, count, types), sql, SIZE_MAX, on, failed_if(!result))
WRAPPER(PQsendQueryPrepared, int,
        (void *on, text name, int count, text const *values, const int *lengths, const int *formats, int wanted),
        (on, name, count, values, lengths, formats, wanted), NULL, (void)0, keep_statement(on, 0), 0,
        failed_if(!result))
ABOUT_STATEMENT(PQgetResult, void *, (void *on), (on), on, 0, failed_result(result))
PLAIN(PQputCopyData, int, (void *on, text data, int bytes), (on, data, bytes), NULL, result > 0 ? bytes : 0,
      failed_if(result < 0))
PLAIN(PQputCopyEnd, int, (void *on, text why), (on, why), NULL, 0, failed_if(result < 0))
PLAIN(PQgetCopyData, int, (void *on, char **data, int later), (on, data, later), NULL, result, failed_if(result < -1))

PLAIN(sqlite3_open, int, (text path, void **on), (path, on), path, 0, failed_sqlite(result))
PLAIN(sqlite3_open_v2, int, (text path, void **on, int flags, text system), (path, on, flags, system), path, 0,
      failed_sqlite(result))
WITH_STATEMENT(sqlite3_exec, int,
               (void *on, text sql, int (*row)(void *, int, char **, char **), void *data, char **error),
               (on, sql, row, data, error), sql, SIZE_MAX, NULL, failed_sqlite(result))
WITH_STATEMENT(sqlite3_get_table, int, (void *on, text sql, char ***values, int *rows, int *columns, char **error),
               (on, sql, values, rows, columns, error), sql, SIZE_MAX, NULL, failed_sqlite(result))
/* The first statement of a text may not be all of it. */
#define FIRST (!result && rest && *rest > sql ? (size_t)(*rest - sql) : bytes < 0 ? SIZE_MAX : (size_t)bytes)
WITH_STATEMENT(sqlite3_prepare, int, (void *on, text sql, int bytes, void **made, text *rest), (on, sql, bytes, made, rest),
               sql, FIRST, *made, failed_sqlite(result))
WITH_STATEMENT(sqlite3_prepare_v2, int, (void *on, text sql, int bytes, void **made, text *rest),
               (on, sql, bytes, made, rest), sql, FIRST, *made, failed_sqlite(result))
WITH_STATEMENT(sqlite3_prepare_v3, int, (void *on, text sql, int bytes, unsigned flags, void **made, text *rest),
               (on, sql, bytes, flags, made, rest), sql, FIRST, *made, failed_sqlite(result))
ABOUT_STATEMENT(sqlite3_step, int, (void *made), (made), made, result == 100, failed_sqlite(result))
PLAIN(sqlite3_backup_step, int, (void *backup, int pages), (backup, pages), NULL, 0, failed_sqlite(result))
PLAIN(sqlite3_close, int, (void *on), (on), NULL, 0, failed_sqlite(result))
PLAIN(sqlite3_close_v2, int, (void *on), (on), NULL, 0, failed_sqlite(result))

PLAIN(mysql_real_connect, void *,
      (void *on, text host, text user, text password, text name, unsigned port, text socket, unsigned long flags),
      (on, host, user, password, name, port, socket, flags), NULL, 0, failed_mysql(!result, on))
WITH_STATEMENT(mysql_query, int, (void *on, text sql), (on, sql), sql, SIZE_MAX, on, failed_mysql(result, on))
WITH_STATEMENT(mysql_real_query, int, (void *on, text sql, unsigned long bytes), (on, sql, bytes), sql, bytes, on,
               failed_mysql(result, on))
WITH_STATEMENT(mysql_send_query, int, (void *on, text sql, unsigned long bytes), (on, sql, bytes), sql, bytes, on,
               failed_mysql(result, on))
ABOUT_STATEMENT(mysql_read_query_result, char, (void *on), (on), on, 0, failed_mysql(result, on))
PLAIN(mysql_store_result, void *, (void *on), (on), NULL, 0, 0)
PLAIN(mysql_commit, char, (void *on), (on), NULL, 0, failed_mysql(result, on))
PLAIN(mysql_rollback, char, (void *on), (on), NULL, 0, failed_mysql(result, on))
WITH_STATEMENT(mysql_stmt_prepare, int, (void *made, text sql, unsigned long bytes), (made, sql, bytes), sql, bytes, made,
               failed_if(result))
ABOUT_STATEMENT(mysql_stmt_execute, int, (void *made), (made), made, 0, failed_if(result))
PLAIN(mysql_stmt_store_result, int, (void *made), (made), NULL, 0, failed_if(result))

PLAIN(redisConnect, void *, (text host, int port), (host, port), NULL, 0, failed_if(!result))
PLAIN(redisCommandArgv, void *, (void *on, int count, text *words, const size_t *bytes), (on, count, words, bytes),
      count > 0 && !bytes ? *words : NULL, 0, failed_reply(result))
PLAIN(redisGetReply, int, (void *on, void **reply), (on, reply), NULL, 0, failed_if(result))

/* Its values are passed on as a list. */
static void *program_redisCommand(void *on, text format, ...)
{
    struct native_call call;
    va_list values;
    bool begun = BEGIN(redisCommand, format);
    va_start(values, format);
    void *reply = TELL(redisvCommand, on, format, values);
    int saved = errno;
    va_end(values);
    if (begun) {
        call.failed = call.span.thread ? failed_reply(reply) : 0;
        native_end(&call, 0, 0);
    }
    errno = saved;
    return reply;
}

void program_exchange_databases(void)
{
#define FIND(name, ...) program_exchange((struct native_exchange){#name, NULL, &real_##name, true});
#define EXCHANGE(library, name, ...) \
    if (databases[DATABASE_##name].slot.numbers) \
        program_exchange((struct native_exchange){#name, (void *)program_##name, &databases[DATABASE_##name].real, true});
    TELLERS(FIND)
    DATABASE_CALLS(EXCHANGE)
}
