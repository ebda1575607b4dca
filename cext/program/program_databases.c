#define _GNU_SOURCE
#include "program/program_databases.h"

#include <stdarg.h>
#include <string.h>

#include "core/detail_levels.h"
#include "core/readable.h"
#include "program/database_wrappers.h"
#include "program/program_host.h"

struct native databases[DATABASE_COUNT];

/* --- PostgreSQL */

#define VALUES int count, text const *values, const int *lengths, const int *formats, int wanted
#define PASS_VALUES count, values, lengths, formats, wanted

/* The statement without a name is the last one with values. */
static void keep_unnamed(const void *on, uint32_t detail)
{
    statement_keep(on, detail);
    statement_keep_named(on, "", detail);
}

/* Where several are on their way, which one a result is of is not known. */
static uint32_t statement_of_result(const void *on)
{
    bool are_several = on && real_PQpipelineStatus && TELL(PQpipelineStatus, on);
    return are_several ? 0 : statement_kept(on);
}

PLAIN(PQconnectdb, void *, (text about), (about), NULL, 0, failed_if(!result))
PLAIN(PQconnectdbParams, void *, (text const *names, text const *values, int more), (names, values, more), NULL, 0,
      failed_if(!result))
PLAIN(PQsetdbLogin, void *, (text host, text port, text options, text tty, text name, text user, text password),
      (host, port, options, tty, name, user, password), NULL, 0, failed_if(!result))
WITH_STATEMENT(PQexec, void *, (void *on, text sql), (on, sql), sql, SIZE_MAX, statement_keep(on, DETAIL),
               failed_command(result))
WITH_STATEMENT(PQexecParams, void *, (void *on, text sql, int number, const unsigned *types, text const *values,
                                      const int *lengths, const int *formats, int wanted),
               (on, sql, number, types, values, lengths, formats, wanted), sql, SIZE_MAX, keep_unnamed(on, DETAIL),
               failed_command(result))
WITH_STATEMENT(PQprepare, void *, (void *on, text name, text sql, int count, const unsigned *types),
               (on, name, sql, count, types), sql, SIZE_MAX,
               if (result && !(begun && call.failed)) statement_keep_named(on, name, DETAIL), failed_command(result))
ABOUT_NAMED(PQexecPrepared, void *, (void *on, text name, VALUES), (on, name, PASS_VALUES), on, name,
            statement_keep(on, DETAIL), failed_command(result))
ABOUT_NAMED(PQdescribePrepared, void *, (void *on, text name), (on, name), on, name, statement_keep(on, DETAIL),
            failed_command(result))
WITH_STATEMENT(PQsendQuery, int, (void *on, text sql), (on, sql), sql, SIZE_MAX, statement_keep(on, DETAIL),
               failed_if(!result))
WITH_STATEMENT(PQsendQueryParams, int, (void *on, text sql, int number, const unsigned *types, text const *values,
                                        const int *lengths, const int *formats, int wanted),
               (on, sql, number, types, values, lengths, formats, wanted), sql, SIZE_MAX, keep_unnamed(on, DETAIL),
               failed_if(!result))
WITH_STATEMENT(PQsendPrepare, int, (void *on, text name, text sql, int count, const unsigned *types),
               (on, name, sql, count, types), sql, SIZE_MAX,
               statement_keep(on, DETAIL); if (result) statement_keep_named(on, name, DETAIL), failed_if(!result))
ABOUT_NAMED(PQsendQueryPrepared, int, (void *on, text name, VALUES), (on, name, PASS_VALUES), on, name,
            statement_keep(on, DETAIL), failed_if(!result))
ABOUT_NAMED(PQsendDescribePrepared, int, (void *on, text name), (on, name), on, name, statement_keep(on, DETAIL),
            failed_if(!result))
WRAPPER(PQgetResult, void *, (void *on), (on), (&(struct native_statement){NULL, 0, statement_of_result(on)}), (void)0,
        (void)0, 0, failed_result(result))
PLAIN(PQputCopyData, int, (void *on, text data, int bytes), (on, data, bytes), NULL, result > 0 ? bytes : 0,
      failed_if(result < 0))
PLAIN(PQputCopyEnd, int, (void *on, text why), (on, why), NULL, 0, failed_if(result < 0))
PLAIN(PQgetCopyData, int, (void *on, char **data, int later), (on, data, later), NULL, result, failed_if(result < -1))
FORGETTING(PQfinish, void, on, statements_forget(on))
FORGETTING(PQreset, void, on, statements_forget(on))

/* --- SQLite */

/* The library has the text of one whose beginning was not seen. It may have ended: the program then gets an error. */
static struct native_statement statement_of_step(void *made)
{
    uint32_t detail = statement_kept(made);
    bool is_wanted = !detail && made && real_sqlite3_sql && arguments_kept(KIND_db) != KEEP_nothing;
    text sql = is_wanted ? TELL(sqlite3_sql, made) : NULL;
    return (struct native_statement){sql && is_readable_text(sql) ? sql : NULL, SIZE_MAX, detail};
}

PLAIN(sqlite3_open, int, (text path, void **on), (path, on), path, 0, failed_sqlite(result))
PLAIN(sqlite3_open_v2, int, (text path, void **on, int flags, text system), (path, on, flags, system), path, 0,
      failed_sqlite(result))
WITH_STATEMENT(sqlite3_exec, int,
               (void *on, text sql, int (*row)(void *, int, char **, char **), void *data, char **error),
               (on, sql, row, data, error), sql, SIZE_MAX, (void)0, failed_sqlite(result))
WITH_STATEMENT(sqlite3_get_table, int, (void *on, text sql, char ***values, int *rows, int *columns, char **error),
               (on, sql, values, rows, columns, error), sql, SIZE_MAX, (void)0, failed_sqlite(result))
/* The first statement of a text may not be all of it. */
#define FIRST (!result && rest && *rest > sql ? (size_t)(*rest - sql) : bytes < 0 ? SIZE_MAX : (size_t)bytes)
#define KEEP_MADE if (!result) statement_keep(*made, DETAIL)
WITH_STATEMENT(sqlite3_prepare, int, (void *on, text sql, int bytes, void **made, text *rest), (on, sql, bytes, made, rest),
               sql, FIRST, KEEP_MADE, failed_sqlite(result))
WITH_STATEMENT(sqlite3_prepare_v2, int, (void *on, text sql, int bytes, void **made, text *rest),
               (on, sql, bytes, made, rest), sql, FIRST, KEEP_MADE, failed_sqlite(result))
WITH_STATEMENT(sqlite3_prepare_v3, int, (void *on, text sql, int bytes, unsigned flags, void **made, text *rest),
               (on, sql, bytes, flags, made, rest), sql, FIRST, KEEP_MADE, failed_sqlite(result))
WRAPPER(sqlite3_step, int, (void *made), (made), (&(struct native_statement[]){statement_of_step(made)}), (void)0,
        if (begun) statement_keep(made, DETAIL), result == 100, failed_sqlite(result))
PLAIN(sqlite3_backup_step, int, (void *backup, int pages), (backup, pages), NULL, 0, failed_sqlite(result))
PLAIN(sqlite3_close, int, (void *on), (on), NULL, 0, failed_sqlite(result))
PLAIN(sqlite3_close_v2, int, (void *on), (on), NULL, 0, failed_sqlite(result))
FORGETTING(sqlite3_finalize, int, made, statement_keep(made, 0))

/* --- MySQL and MariaDB */

PLAIN(mysql_real_connect, void *,
      (void *on, text host, text user, text password, text name, unsigned port, text socket, unsigned long flags),
      (on, host, user, password, name, port, socket, flags), NULL, 0, failed_mysql(!result, on))
WITH_STATEMENT(mysql_query, int, (void *on, text sql), (on, sql), sql, SIZE_MAX, statement_keep(on, DETAIL),
               failed_mysql(result, on))
WITH_STATEMENT(mysql_real_query, int, (void *on, text sql, unsigned long bytes), (on, sql, bytes), sql, bytes,
               statement_keep(on, DETAIL), failed_mysql(result, on))
WITH_STATEMENT(mysql_send_query, int, (void *on, text sql, unsigned long bytes), (on, sql, bytes), sql, bytes,
               statement_keep(on, DETAIL), failed_mysql(result, on))
ABOUT_STATEMENT(mysql_read_query_result, char, (void *on), (on), on, (void)0, 0, failed_mysql(result, on))
/* That there are no rows is no error. */
#define HAS_FAILED (!result && real_mysql_errno && TELL(mysql_errno, on))
ABOUT_STATEMENT(mysql_store_result, void *, (void *on), (on), on, (void)0, 0, failed_mysql(HAS_FAILED, on))
ABOUT_STATEMENT(mysql_use_result, void *, (void *on), (on), on, statement_keep(result, DETAIL), 0,
                failed_mysql(HAS_FAILED, on))
ABOUT_STATEMENT(mysql_next_result, int, (void *on), (on), on, (void)0, 0, failed_mysql(result > 0, on))
/* A row that is already here comes from memory. */
WRAPPER_UNLESS(of && real_mysql_eof && TELL(mysql_eof, of), mysql_fetch_row, void *, (void *of), (of),
               (&(struct native_statement){NULL, 0, statement_kept(of)}), (void)0, (void)0, result != NULL, 0)
PLAIN(mysql_commit, char, (void *on), (on), NULL, 0, failed_mysql(result, on))
PLAIN(mysql_rollback, char, (void *on), (on), NULL, 0, failed_mysql(result, on))
WITH_STATEMENT(mysql_stmt_prepare, int, (void *made, text sql, unsigned long bytes), (made, sql, bytes), sql, bytes,
               statement_keep(made, result ? 0 : DETAIL), failed_mysql_statement(result, made))
ABOUT_STATEMENT(mysql_stmt_execute, int, (void *made), (made), made, (void)0, 0, failed_mysql_statement(result, made))
ABOUT_STATEMENT(mysql_stmt_store_result, int, (void *made), (made), made, (void)0, 0,
                failed_mysql_statement(result, made))
#define IS_ROW (result == 0 || result == 101 /* some of it does not fit */)
ABOUT_STATEMENT(mysql_stmt_fetch, int, (void *made), (made), made, (void)0, IS_ROW, failed_mysql_statement(result == 1, made))
FORGETTING(mysql_stmt_close, char, made, statement_keep(made, 0))
FORGETTING(mysql_free_result, void, of, statement_keep(of, 0))
FORGETTING(mysql_close, void, on, statement_keep(on, 0))

/* --- Redis */

enum { LONGEST_WORD = 32 };

/* The first of the words, some of whose lengths may be given. */
static text first_word(char memory[LONGEST_WORD], int count, text const *words, const size_t *bytes)
{
    if (count <= 0 || !bytes)
        return count > 0 ? *words : NULL;
    size_t length = *bytes < LONGEST_WORD - 1 ? *bytes : LONGEST_WORD - 1;
    memory[length] = 0;
    return memcpy(memory, *words, length);
}

PLAIN(redisConnect, void *, (text host, int port), (host, port), NULL, 0, failed_if(!result))
PLAIN(redisCommandArgv, void *, (void *on, int count, text *words, const size_t *bytes), (on, count, words, bytes),
      first_word((char[LONGEST_WORD]){0}, count, words, bytes), 0, failed_reply(result))
PLAIN(redisvCommand, void *, (void *on, text format, va_list values), (on, format, values), format, 0, failed_reply(result))
PLAIN(redisGetReply, int, (void *on, void **reply), (on, reply), NULL, 0,
      result || !reply ? failed_if(result) : failed_reply(*reply))

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

/* --- */

#define FORGETTERS(X) \
    X(PQfinish) X(PQreset) X(sqlite3_finalize) X(mysql_stmt_close) X(mysql_free_result) X(mysql_close)

#define FIND(name, ...) {#name, NULL, &real_##name, true, NULL},
#define FORGET(name) {#name, (void *)program_##name, &real_##name, true, NULL},
#define NEED_OF(name) (DATABASE_##name == DATABASE_redisCommand ? &real_redisvCommand : NULL)
#define CALL(library, name, ...) {#name, (void *)program_##name, &databases[DATABASE_##name].real, true, NEED_OF(name)},

void program_exchange_databases(void)
{
    static const struct native_exchange calls[] = {SQL_CALLS(CALL)}, others[] = {TELLERS(FIND) FORGETTERS(FORGET)};
    for (unsigned each = 0; each < sizeof others / sizeof *others; each++)
        program_exchange(others[each]);
    for (unsigned each = 0; each < sizeof calls / sizeof *calls; each++)
        if (databases[each].slot.numbers)
            program_exchange(calls[each]);
}
