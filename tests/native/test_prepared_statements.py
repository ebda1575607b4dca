"""Statements of programs that are not Python, where the call has a name or a handle instead of a text:
against the real client libraries and servers."""

import re
import subprocess

import pytest
from clients import calls_in
from servers import need_server
from tracing import same_library

pytestmark = same_library

POSTGRESQL = """
#include <libpq-fe.h>
#include <stdlib.h>
#define ON "host=127.0.0.1 user=postgres dbname=test"
#define ALL(on) do { PGresult *each; while ((each = PQgetResult(on))) PQclear(each); } while (0)
int main(void)
{
    const char *one[] = {"1"};
    PGconn *on = PQconnectdb(ON);
    if (PQstatus(on) != CONNECTION_OK)
        return 1;
    %s
    PQfinish(on);
}
"""


def statements(work, *names):
    """The names of these calls, in their order, each with its statement and its error."""
    return [(call[0], call[1], call[3]) for call in calls_in(work) if call[0] in names]


@pytest.fixture
def postgresql(interpose, client, work):
    """Run statements in C on a connection `on`: the calls."""
    need_server("postgresql")

    def run(body, *names):
        command = client(POSTGRESQL % body, "-I/usr/include/postgresql", "-lpq")
        done = interpose("run", command)
        assert done.returncode == 0, done.stderr
        return statements(work, *names)

    return run


def test_what_a_prepared_statement_runs_has_the_text_that_was_prepared_under_its_name(postgresql):
    body = """
    PQclear(PQprepare(on, "a", "select 1 + $1::int", 0, NULL));
    PQclear(PQprepare(on, "b", "select 'x', $1::int", 0, NULL));
    PQclear(PQprepare(on, "a", "select 'already there'", 0, NULL));
    PQclear(PQexecPrepared(on, "a", 1, one, NULL, NULL, 0));
    PQclear(PQexecPrepared(on, "b", 1, one, NULL, NULL, 0));
    PQclear(PQexecPrepared(on, "missing", 0, NULL, NULL, NULL, 0));
    PQclear(PQexecParams(on, "select $1::int as last", 1, NULL, one, NULL, NULL, 0));
    PQclear(PQexecPrepared(on, "", 1, one, NULL, NULL, 0));
    PQclear(PQdescribePrepared(on, "b"));
"""
    assert postgresql(body, "PQexecPrepared", "PQdescribePrepared") == [
        ("PQexecPrepared", "select ? + $1::int", ""),
        ("PQexecPrepared", "select ?, $1::int", ""),
        ("PQexecPrepared", "", "SQLSTATE 26000"),
        ("PQexecPrepared", "select $1::int as last", ""),
        ("PQdescribePrepared", "select ?, $1::int", ""),
    ]


def test_names_on_another_connection_at_the_same_address_are_not_those_of_the_one_before(postgresql):
    body = """
    for (int each = 0; each < 8; each++) {
        PQclear(PQexec(on, "prepare a as select 2"));
        PQclear(PQexecPrepared(on, "a", 0, NULL, NULL, NULL, 0));
        PQfinish(on);
        on = PQconnectdb(ON);
        PQclear(PQprepare(on, "a", "select 1", 0, NULL));
        PQclear(PQexecPrepared(on, "a", 0, NULL, NULL, NULL, 0));
        PQreset(on);
    }
"""
    found = [text for _, text, error in postgresql(body, "PQexecPrepared") if not error]

    assert found == ["", "select ?"] * 8


def test_results_that_are_waited_for_have_the_statement_that_was_sent(postgresql):
    body = """
    PQsendPrepare(on, "a", "select 1 + $1::int", 0, NULL);
    ALL(on);
    PQsendQueryPrepared(on, "a", 1, one, NULL, NULL, 0);
    ALL(on);
    PQsendQueryParams(on, "select $1::int", 1, NULL, one, NULL, NULL, 0);
    ALL(on);
    PQsendQuery(on, "select 'text'");
    ALL(on);
"""
    texts = ["select ? + $1::int", "select ? + $1::int", "select $1::int", "select ?"]
    found = postgresql(body, "PQgetResult", "PQsendPrepare", "PQsendQueryPrepared", "PQsendQueryParams", "PQsendQuery")

    assert [text for _, text, _ in found] == [text for text in texts for _ in range(3)]


def test_results_of_a_pipeline_have_no_statement_rather_than_a_wrong_one(postgresql):
    body = """
    PQenterPipelineMode(on);
    PQsendQueryParams(on, "select $1::int as first", 1, NULL, one, NULL, NULL, 0);
    PQsendQueryParams(on, "select $1::int as second", 1, NULL, one, NULL, NULL, 0);
    PQpipelineSync(on);
    for (int each = 0; each < 5; each++)
        PQclear(PQgetResult(on));
"""
    found = postgresql(body, "PQsendQueryParams", "PQgetResult")

    assert [text for _, text, _ in found] == ["select $1::int as first", "select $1::int as second", *[""] * 5]


SQLITE = """
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
static sqlite3 *on;
static sqlite3_stmt *made, *before;
static sqlite3_stmt *prepared(const char *sql)
{
    sqlite3_prepare_v2(on, sql, -1, &made, NULL);
    return made;
}
/* By a function that is not of those recorded. */
static sqlite3_stmt *prepared16(const char *sql)
{
    unsigned short wide[200];
    for (size_t each = 0; each <= strlen(sql); each++)
        wide[each] = (unsigned char)sql[each];
    sqlite3_prepare16_v2(on, wide, -1, &made, NULL);
    return made;
}
int main(void)
{
    sqlite3_open(":memory:", &on);
    %s
    sqlite3_close(on);
}
"""


@pytest.fixture
def sqlite_steps(interpose, client, work):
    """Run statements in C on a database `on`: the texts of the steps."""

    def run(body):
        done = interpose("run", client(SQLITE % body, "-lsqlite3"))
        assert done.returncode == 0, done.stderr
        return done, [text for _, text, _ in statements(work, "sqlite3_step")]

    return run


def test_a_statement_at_the_address_of_one_that_ended_has_its_own_text(sqlite_steps):
    body = """
    for (int each = 0; each < 4; each++) {
        before = prepared("select 'first'");
        sqlite3_step(before);
        sqlite3_finalize(before);
        sqlite3_step(prepared16("select 'x' as other"));
        printf("%d", made == before);
        sqlite3_finalize(made);
    }
"""
    done, texts = sqlite_steps(body)

    assert "1" in done.stdout
    assert texts == ["select ?", "select ? as other"] * 4


def test_each_of_many_statements_that_are_there_at_once_has_its_text(sqlite_steps):
    body = """
    static sqlite3_stmt *all[3000];
    for (int each = 0; each < 3000; each++) {
        char text[64];
        sprintf(text, "select 7 as c%d", each);
        all[each] = prepared(text);
    }
    for (int each = 0; each < 3000; each++)
        sqlite3_step(all[each]);
    for (int each = 0; each < 3000; each++)
        sqlite3_finalize(all[each]);
"""
    _, texts = sqlite_steps(body)

    assert texts == [f"select ? as c{each}" for each in range(3000)]


def test_a_step_of_what_is_no_statement_is_the_programs_error(interpose, client, work):
    body = "return sqlite3_step(NULL) == SQLITE_MISUSE ? 7 : 1;"

    done = interpose("run", client(SQLITE % body, "-lsqlite3"))

    assert done.returncode == 7
    assert statements(work, "sqlite3_step") == [("sqlite3_step", "", "SQLITE_MISUSE")]


MYSQL = """
#include <mariadb/mysql.h>
#include <stdio.h>
#include <string.h>
static MYSQL *on;
static MYSQL_STMT *prepared(const char *sql)
{
    MYSQL_STMT *made = mysql_stmt_init(on);
    if (sql)
        mysql_stmt_prepare(made, sql, strlen(sql));
    return made;
}
int main(void)
{
    on = mysql_init(NULL);
    if (!mysql_real_connect(on, "127.0.0.1", "root", "", NULL, 3306, NULL, 0))
        return 1;
    %s
    mysql_close(on);
}
"""


@pytest.fixture
def mysql(interpose, client, work):
    """Run statements in C on a connection `on`: the calls."""
    need_server("mysql")

    def run(body, *names):
        done = interpose("run", client(MYSQL % body, "-lmariadb"))
        assert done.returncode == 0, done.stderr
        return statements(work, *names)

    return run


def test_prepared_statements_of_mysql_have_their_texts_while_they_last(mysql):
    body = """
    for (int each = 0; each < 3; each++) {
        MYSQL_STMT *made = prepared("select 'x' union select 'y'");
        mysql_stmt_execute(made);
        while (mysql_stmt_fetch(made) != MYSQL_NO_DATA)
            ;
        mysql_stmt_close(made);
        made = prepared(NULL);
        mysql_stmt_execute(made);
        mysql_stmt_close(made);
    }
"""
    found = mysql(body, "mysql_stmt_execute", "mysql_stmt_fetch")
    text = "select ? union select ?"
    one = [("mysql_stmt_execute", text, ""), *[("mysql_stmt_fetch", text, "")] * 3]

    assert [each for each in found if not each[2]] == one * 3
    assert [text for _, text, error in found if error] == [""] * 3
    assert all(re.fullmatch(r"error 20\d\d", error) for _, _, error in found if error)


def test_rows_that_come_from_the_server_one_by_one_are_fetched_in_calls_and_those_in_memory_are_not(mysql, work):
    body = """
    MYSQL_RES *result;
    mysql_query(on, "select 'x' union select 'y'");
    result = mysql_store_result(on);
    while (mysql_fetch_row(result))
        ;
    mysql_free_result(result);
    mysql_query(on, "select 'z' union select 'y'");
    result = mysql_use_result(on);
    while (mysql_fetch_row(result))
        ;
    mysql_free_result(result);
    mysql_query(on, "select nothing");
    mysql_query(on, "do 0");
    mysql_store_result(on);
"""
    mysql(body)
    found = [call for call in calls_in(work) if call[0] not in ("mysql_real_connect", "mysql_query")]
    text = "select ? union select ?"

    assert found == [
        ("mysql_store_result", text, 0, ""),
        ("mysql_use_result", text, 0, ""),
        *[("mysql_fetch_row", text, rows, "") for rows in (1, 1, 0)],
        ("mysql_store_result", "do ?", 0, ""),
    ]


REDIS = """
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
/* Replies of the program's own, each at the very end of what can be read, which begin as an error of hiredis does. */
static void *reply_of(void)
{
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    *(int *)(page + 4092) = REDIS_REPLY_ERROR;
    return page + 4092;
}
static void *of_text(const redisReadTask *task, char *text, size_t bytes) { return reply_of(); }
static void *of_number(const redisReadTask *task, long long number)
{
    redisReply *reply = calloc(1, sizeof *reply);
    reply->type = REDIS_REPLY_ERROR;
    reply->len = 7;
    reply->str = (char *)1;
    return reply;
}
static void *of_nothing(const redisReadTask *task) { return reply_of(); }
static void left(void *reply) { }
static redisReplyObjectFunctions own = {of_text, NULL, of_number, of_nothing, left};
int main(void)
{
    const char *words[] = {"GETX", "interpose:test"};
    size_t bytes[] = {3, 14};
    void *reply;
    redisContext *on = redisConnect("127.0.0.1", 6379);
    redisCommand(on, "NONSENSE");
    redisCommand(on, "SET interpose:test x");
    redisCommandArgv(on, 2, words, bytes);
    redisAppendCommand(on, "LPUSH interpose:test 1");
    redisGetReply(on, &reply);
    on->reader->fn = &own;
    if (*(int *)redisCommand(on, "GET interpose:test") != REDIS_REPLY_ERROR)
        return 1;
    redisCommand(on, "DEL interpose:test");
    return 0;
}
"""


def test_replies_of_redis_that_a_program_makes_itself_are_no_errors(interpose, client, work):
    need_server("redis")

    done = interpose("run", client(REDIS, "-lhiredis"))

    assert done.returncode == 0
    assert [(call[0], call[1], call[3]) for call in calls_in(work)[1:]] == [
        ("redisCommand", "NONSENSE", "error"),
        ("redisCommand", "SET", ""),
        ("redisCommandArgv", "GET", ""),
        ("redisGetReply", "", "error"),
        ("redisCommand", "GET", ""),
        ("redisCommand", "DEL", ""),
    ]


REFUSED = """
#include <libpq-fe.h>
#include <sqlite3.h>
int main(void)
{
    const char *nowhere = (const char *)8;
    sqlite3 *on = 0;
    PGconn *bad = PQconnectdb("host=127.0.0.1 port=1");
    int refused = !PQexec(NULL, nowhere);
    refused += !PQexecPrepared(NULL, nowhere, 0, 0, 0, 0, 0);
    refused += !PQsendQuery(bad, "select 1");
    refused += !PQprepare(NULL, nowhere, nowhere, 0, 0);
    refused += sqlite3_open("/missing/file", &on) != 0;
    PQfinish(bad);
    PQfinish(NULL);
    return refused;
}
"""


def test_what_a_library_refuses_unread_is_not_read(interpose, client, work):
    done = interpose("run", client(REFUSED, "-I/usr/include/postgresql", "-lpq", "-lsqlite3"))

    assert done.returncode == 5
    assert [(call[0], call[1], call[3]) for call in calls_in(work)] == [
        ("PQconnectdb", "", ""),
        ("PQexec", "", "error"),
        ("PQexecPrepared", "", "error"),
        ("PQsendQuery", "select ?", "error"),
        ("PQprepare", "", "error"),
        ("sqlite3_open", "/missing/file", "SQLITE_CANTOPEN"),
    ]


def test_a_function_that_only_has_the_name_of_one_is_called_as_it_is(interpose, client, work, compiler):
    (work / "own.c").write_text("int redisCommand(int first, int second) { return first + second; }\n")
    words = [compiler, "-shared", "-fPIC", "-o", work / "libown.so", work / "own.c"]
    subprocess.run(words, check=True, capture_output=True)
    source = "int redisCommand(int, int);\nint main(void) { return redisCommand(3, 4); }\n"

    done = interpose("run", client(source, f"{work}/libown.so"))

    assert done.returncode == 7
