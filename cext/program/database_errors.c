#include "program/database_errors.h"

#include <stdio.h>
#include <string.h>

#include "core/interning.h"
#include "core/readable.h"

#define DEFINE_TELLER(name, ...) void *real_##name;
TELLERS(DEFINE_TELLER)

static uint32_t name_error(const char *form, const char *text, unsigned number)
{
    char name[64];
    int bytes = text ? snprintf(name, sizeof name, form, text) : snprintf(name, sizeof name, form, number);
    return bytes > 0 && bytes < (int)sizeof name ? string_intern(name, (size_t)bytes) : 0;
}

uint32_t failed_if(bool failed)
{
    return failed ? name_error("%s", "error", 0) : 0;
}

uint32_t failed_result(const void *result)
{
    enum { BAD_RESPONSE = 5, FATAL_ERROR = 7 };
    int status = result && real_PQresultStatus ? TELL(PQresultStatus, result) : 0;
    if (status != BAD_RESPONSE && status != FATAL_ERROR)
        return 0;
    const char *state = real_PQresultErrorField ? TELL(PQresultErrorField, result, 'C') : NULL;
    return name_error("SQLSTATE %s", state ? state : "?", 0);
}

uint32_t failed_command(const void *result)
{
    return result ? failed_result(result) : failed_if(true);
}

uint32_t failed_sqlite(int result)
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

static uint32_t failed_with(bool failed, unsigned number)
{
    return failed && number ? name_error("error %u", NULL, number) : failed_if(failed);
}

uint32_t failed_mysql(bool failed, void *connection)
{
    return failed_with(failed, failed && connection && real_mysql_errno ? TELL(mysql_errno, connection) : 0);
}

uint32_t failed_mysql_statement(bool failed, void *statement)
{
    return failed_with(failed, failed && statement && real_mysql_stmt_errno ? TELL(mysql_stmt_errno, statement) : 0);
}

/* --- replies of Redis */

/* How a reply of hiredis begins; from version 1.0 on a number is between. */
struct reply {
    int type;
    long long integer;
    struct {
        size_t bytes;
        const char *text;
    } before_1_0;
    const char *text_since_1_0;
};

/* Errors begin with a word in capitals, and have the length that is said. */
static bool is_error_text(const char *text, size_t bytes)
{
    enum { LONGEST = 64 * 1024 };
    char first, end;
    return bytes && bytes < LONGEST && readable_copy(&first, text, 1) && first >= 'A' && first <= 'Z' &&
           readable_copy(&end, text + bytes, 1) && !end;
}

/* The program may have replies made by functions of its own, and then this may be anything: or, where it has none made, the
   type alone. */
uint32_t failed_reply(const void *reply)
{
    enum { REPLY_ERROR = 6, MOST_TYPES = 256 };
    struct reply read;
    if (!reply || (uintptr_t)reply < MOST_TYPES)
        return failed_if(!reply || (uintptr_t)reply == REPLY_ERROR);
    if (!readable_copy(&read, reply, sizeof read) || read.type != REPLY_ERROR)
        return 0;
    return failed_if(is_error_text(read.before_1_0.text, read.before_1_0.bytes) ||
                     is_error_text(read.text_since_1_0, (size_t)(uintptr_t)read.before_1_0.text));
}
