"""Clients of databases that are not Python: their calls of libpq, SQLite, MySQL and Redis, without what is secret."""

import shutil
import subprocess
from pathlib import Path

import pytest
from clients import calls_in
from servers import need_server
from tracing import same_library

pytestmark = same_library

SECRET = "hush hush"


def secrets_in(work):
    """The files of the experiment that say what is secret."""
    files = [path for path in Path(work / "test.1.er").rglob("*") if path.is_file()]
    return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.fixture
def sqlite():
    return shutil.which("sqlite3") or pytest.skip("no sqlite3")


def test_statements_of_sqlite_are_told_without_their_values(interpose, work, sqlite):
    text = f"create table t(x); insert into t values ('{SECRET}'), ('b'); select x from t where x > 'a'; select nothing"

    done = interpose("run", sqlite, "data.db", text)

    steps = [call[1:] for call in calls_in(work) if call[0] == "sqlite3_step"]
    errors = [call[3] for call in calls_in(work) if call[0] == "sqlite3_prepare_v2"]
    assert done.stdout == f"{SECRET}\nb\n"
    assert steps == [
        ("create table t(x);", 0, ""),
        ("insert into t values (?), …;", 0, ""),
        *[("select x from t where x > ?;", rows, "") for rows in (1, 1, 0)],
    ]
    assert errors == ["", "", "", "SQLITE_ERROR"]
    assert [call[1] for call in calls_in(work) if call[0] == "sqlite3_open_v2"] == ["data.db"]
    assert secrets_in(work) == []


@pytest.mark.long
def test_what_the_disk_took_of_a_statement_is_within_it(interpose, work, sqlite):
    interpose("run", sqlite, "data.db", "create table t(x); insert into t values (1)")

    shown = interpose("report", "--by", "structure", variables={"COLUMNS": "200"}).stdout
    assert "libc.fdatasync" in shown.partition("sqlite3_step")[2]


def test_no_statement_is_kept_if_none_is_to_be(interpose, work, sqlite):
    interpose("run", "--arguments", "db=nothing", sqlite, "data.db", "create table t(x)")

    assert {call[1] for call in calls_in(work)} == {""}
    assert len(calls_in(work)) >= 3


def test_a_call_within_another_is_part_of_it(interpose, work, client):
    source = """
#include <stddef.h>
int sqlite3_open(const char *, void **), sqlite3_exec(void *, const char *, void *, void *, char **);
int sqlite3_close(void *);
int main(void)
{
    void *on;
    sqlite3_open("data.db", &on);
    for (int each = 0; each < 3; each++)
        sqlite3_exec(on, "create table if not exists t(x); insert into t values (7)", NULL, NULL, NULL);
    return sqlite3_close(on);
}
"""
    interpose("run", client(source, "-l:libsqlite3.so.0"))

    names = [call[0] for call in calls_in(work)]
    assert names == ["sqlite3_open", *["sqlite3_exec"] * 3, "sqlite3_close"]
    assert calls_in(work)[1][1] == "create table if not exists t(x); insert into t values (?)"


def test_calls_after_one_that_was_left_are_recorded(interpose, work, client):
    source = """
#include <setjmp.h>
#include <stddef.h>
typedef int row(void *, int, char **, char **);
int sqlite3_open(const char *, void **), sqlite3_exec(void *, const char *, row *, void *, char **);
static jmp_buf out;
static int leaves(void *data, int count, char **values, char **names)
{
    longjmp(out, 1);
}
int main(void)
{
    void *on, *other;
    sqlite3_open("data.db", &on);
    if (!setjmp(out))
        return sqlite3_exec(on, "select 1 as lost", leaves, NULL, NULL);
    sqlite3_open("other.db", &other);
    return sqlite3_exec(other, "select 1 as found", NULL, NULL, NULL);
}
"""
    done = interpose("run", client(source, "-l:libsqlite3.so.0"))

    assert done.returncode == 0
    assert [call[1] for call in calls_in(work)] == ["data.db", "other.db", "select ? as found"]


def test_a_library_that_is_loaded_by_name_is_seen(interpose, work, client):
    source = """
#include <dlfcn.h>
int main(void)
{
    void *on, *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    int (*opens)(const char *, void **) = (int (*)(const char *, void **))dlsym(library, "sqlite3_open");
    int (*closes)(void *) = (int (*)(void *))dlsym(library, "sqlite3_close");
    return opens("data.db", &on) || closes(on);
}
"""
    done = interpose("run", client(source, "-l:libsqlite3.so.0", "-ldl", "-Wl,--as-needed"))

    assert done.returncode == 0
    assert [call[0] for call in calls_in(work)] == ["sqlite3_open", "sqlite3_close"]


def test_a_library_that_a_plug_in_brings_is_seen(interpose, work, client, compiler):
    (work / "plug.c").write_text("""
int sqlite3_open(const char *, void **), sqlite3_close(void *);
int works(void)
{
    void *on;
    return sqlite3_open("data.db", &on) || sqlite3_close(on);
}
""")
    words = [compiler, "-shared", "-fPIC", "-o", work / "plug.so", work / "plug.c", "-l:libsqlite3.so.0"]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no libsqlite3")
    source = """
#include <dlfcn.h>
int main(void)
{
    int (*works)(void) = (int (*)(void))dlsym(dlopen("./plug.so", RTLD_NOW | RTLD_LOCAL), "works");
    return works();
}
"""
    done = interpose("run", client(source, "-ldl"))

    assert done.returncode == 0
    assert [call[0] for call in calls_in(work)] == ["sqlite3_open", "sqlite3_close"]


def test_a_library_that_is_loaded_again_elsewhere_is_seen(interpose, work, client):
    source = """
#include <dlfcn.h>
#include <sys/mman.h>
int main(void)
{
    for (int times = 0; times < 3; times++) {
        void *on, *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
        int (*opens)(const char *, void **) = (int (*)(const char *, void **))dlsym(library, "sqlite3_open");
        int (*closes)(void *) = (int (*)(void *))dlsym(library, "sqlite3_close");
        if (opens("data.db", &on) || closes(on) || dlclose(library))
            return 1;
        for (int each = 0; each < 64; each++) /* where it was */
            mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return 0;
}
"""
    done = interpose("run", client(source, "-l:libsqlite3.so.0", "-ldl", "-Wl,--as-needed"))

    assert done.returncode == 0
    assert [call[0] for call in calls_in(work)] == ["sqlite3_open", "sqlite3_close"] * 3


def test_statements_of_psql_are_those_that_the_server_logs(interpose, work):
    need_server("postgresql")
    if shutil.which("psql") is None:
        pytest.skip("no psql")
    before = ["set client_min_messages = log", "set log_statement = 'all'"]
    texts = [*before, f"select '{SECRET}'", "select 1 + 1", "select nothing"]
    server = ("-h", "127.0.0.1", "-U", "postgres", "-d", "test")

    done = interpose("run", "psql", *server, *[f"-c{text}" for text in texts])

    logged = [line for line in done.stderr.splitlines() if line.startswith("LOG:  statement: ")]
    sent = [call[1] for call in calls_in(work) if call[0] == "PQsendQuery"]
    errors = {call[1:4:2] for call in calls_in(work) if call[0] == "PQgetResult" and call[3]}
    assert len(sent[2:]) == len(logged) == 3
    assert sent[2:] == ["select ?", "select ? + ?", "select nothing"]
    assert errors == {("select nothing", "SQLSTATE 42703")}
    assert secrets_in(work) == []


def test_statements_of_mysql_are_as_many_as_the_server_counts(interpose, work, client):
    need_server("mysql")
    source = f"""
#include <mariadb/mysql.h>
#include <stdio.h>
#include <stdlib.h>
static long questions(MYSQL *on)
{{
    mysql_query(on, "show session status like 'Questions'");
    MYSQL_RES *found = mysql_store_result(on);
    long number = atol(mysql_fetch_row(found)[1]);
    mysql_free_result(found);
    return number;
}}
int main(void)
{{
    MYSQL *on = mysql_init(NULL);
    if (!mysql_real_connect(on, "127.0.0.1", "root", "", NULL, 3306, NULL, 0))
        return 1;
    long before = questions(on);
    for (int each = 0; each < 10; each++) {{
        mysql_query(on, "select '{SECRET}', 5");
        mysql_free_result(mysql_store_result(on));
    }}
    mysql_query(on, "select nothing");
    printf("%ld", questions(on) - before);
    mysql_close(on);
}}
"""
    done = interpose("run", client(source, "-lmariadb"))

    queries = [call for call in calls_in(work) if call[0] == "mysql_query"]
    assert len(queries) == int(done.stdout) + 1
    assert [call[1] for call in queries[1:11]] == ["select ?, ?"] * 10
    assert queries[11][3] == "error 1054"
    assert secrets_in(work) == []


def test_commands_of_redis_are_told_by_their_first_word(interpose, work, client):
    need_server("redis")
    source = f"""
#include <stddef.h>
void *redisConnect(const char *, int), *redisCommand(void *, const char *, ...),
    *redisCommandArgv(void *, int, const char **, const size_t *);
int main(void)
{{
    const char *words[] = {{"GET", "interpose:test"}};
    void *on = redisConnect("127.0.0.1", 6379);
    redisCommand(on, "SET %s %s", "interpose:test", "{SECRET}");
    redisCommandArgv(on, 2, words, NULL);
    redisCommand(on, "LPUSH interpose:test 1");
    redisCommand(on, "DEL interpose:test");
}}
"""
    done = interpose("run", client(source, "-l:libhiredis.so.0.14"))

    assert done.returncode == 0
    assert [(*call[:2], call[3]) for call in calls_in(work)] == [
        ("redisConnect", "", ""),
        ("redisCommand", "SET", ""),
        ("redisCommandArgv", "GET", ""),
        ("redisCommand", "LPUSH", "error"),
        ("redisCommand", "DEL", ""),
    ]
    assert secrets_in(work) == []


def test_a_reply_of_redis_that_is_not_made_is_not_read(interpose, work, client):
    # Where the reader has no functions that make replies, hiredis returns their type alone.
    source = """
#include <stdarg.h>
#include <stdint.h>
void *redisvCommand(void *on, const char *format, va_list values) { return (void *)(intptr_t)*format; }
"""
    (work / "library.c").write_text(f"{source}void *redisCommand(void *on, const char *format, ...) {{ return 0; }}\n")
    words = ["gcc", "-shared", "-fPIC", "-o", work / "libreplies.so", work / "library.c"]
    subprocess.run(words, check=True, capture_output=True)
    source = """
void *redisCommand(void *, const char *, ...);
int main(void)
{
    return redisCommand(0, "\\5") == (void *)5 && redisCommand(0, "\\6") == (void *)6 ? 3 : 4;
}
"""
    done = interpose("run", client(source, f"{work}/libreplies.so"))

    assert done.returncode == 3
    assert [call[3] for call in calls_in(work)] == ["", "error"]


def test_errno_is_as_the_library_left_it(interpose, work, client):
    # What tells of an error may change errno: the program did not call it.
    source = """
#include <errno.h>
#include <stdarg.h>
void *PQexec(void *on, const char *sql) { errno = 5; return "failed"; }
int PQresultStatus(const void *result) { errno = 1; return 7; }
char *PQresultErrorField(const void *result, int field) { errno = 1; return "42P01"; }
int mysql_query(void *on, const char *sql) { errno = 6; return 1; }
unsigned mysql_errno(void *on) { errno = 1; return 1146; }
"""
    (work / "library.c").write_text(source)
    words = ["gcc", "-w", "-shared", "-fPIC", "-o", work / "liberrors.so", work / "library.c"]
    subprocess.run(words, check=True, capture_output=True)
    source = """
#include <errno.h>
void *PQexec(void *, const char *);
int mysql_query(void *, const char *);
int main(void)
{
    int first = (PQexec("on", "select 1"), errno), second = (mysql_query("on", "select 1"), errno);
    return 10 * first + second;
}
"""
    done = interpose("run", client(source, f"{work}/liberrors.so"))

    assert done.returncode == 56
    assert [call[3] for call in calls_in(work)] == ["SQLSTATE 42P01", "error 1146"]
