"""SQL of dialects that interpose does not know, made at random as tests/dialects.py makes that of those it knows.

What no driver of its own brings comes through libraries of users, whose statements are read as of any dialect.
"""

from __future__ import annotations

from collections.abc import Callable

from dialects import CANARY, NUMBER, SAFE, Statements

FURTHER = ("sqlserver", "duckdb", "snowflake", "clickhouse", "bigquery", "spark", "cassandra", "hana")
HEX = "0123456789abcdef"
UUID = "facade99"  # how each begins, and nothing else


class FurtherStatements(Statements):
    """Statements of one of these dialects, always the same for a seed."""

    def __init__(self, dialect: str, seed: int) -> None:
        super().__init__(dialect, seed, BARE[dialect])

    # --- texts

    def _dollars(self) -> str:
        return f"$${self._text('$')}_$$"

    def _curly(self) -> str:
        return f"\u2018{self._text(among=SAFE)}\u2019"

    def _raw(self) -> str:
        return f"r'{self._text(chr(39)).replace(chr(92), '')}\\'{CANARY}_'"

    def _tripled(self, quote: str = "'") -> str:
        return f"{quote * 3}{self._text(quote * 2).strip(quote)}_{quote * 3}"

    def _uuid(self) -> str:
        """A literal without quotes; what is a number at the beginning of a word is hidden anyway."""
        parts = ("".join(self.random.choice(HEX) for _ in range(count)) for count in (4, 4, 4, 12))
        return "-".join([UUID, *parts])

    def _money(self) -> str:
        return self.random.choice("$\u00a3\u20ac\u00a5") + f"{NUMBER}.{NUMBER}"

    def _texts_of_sqlserver(self) -> list[Callable[[], str]]:
        prefixed = lambda: self._doubled("N")  # noqa: E731
        return [self._doubled, prefixed, lambda: self._doubled(quote='"'), lambda: f"0x{CANARY}", self._money]

    def _texts_of_duckdb(self) -> list[Callable[[], str]]:
        return [self._doubled, lambda: self._escaped("e"), self._dollars, lambda: self._doubled("x", among=SAFE)]

    def _texts_of_snowflake(self) -> list[Callable[[], str]]:
        return [self._escaped, self._dollars, lambda: self._doubled(among=SAFE), lambda: self._escaped("x")]

    def _texts_of_clickhouse(self) -> list[Callable[[], str]]:
        return [self._escaped, self._dollars, self._curly, lambda: self._doubled(among=SAFE)]

    def _texts_of_bigquery(self) -> list[Callable[[], str]]:
        doubled = lambda: self._tripled('"')  # noqa: E731
        return [self._backslashed, lambda: self._backslashed('"'), self._tripled, doubled, self._raw]

    def _texts_of_spark(self) -> list[Callable[[], str]]:
        return [self._backslashed, lambda: self._backslashed('"'), self._raw, lambda: self._backslashed(prefix="X")]

    def _texts_of_cassandra(self) -> list[Callable[[], str]]:
        return [self._doubled, self._dollars, lambda: f"0x{CANARY}", self._uuid]

    def _texts_of_hana(self) -> list[Callable[[], str]]:
        return [self._doubled, lambda: self._doubled("N"), lambda: self._doubled("x", among=SAFE)]

    def _backslashed(self, quote: str = "'", prefix: str = "") -> str:
        """A text in which a quote is never doubled: two texts beside each other are one of BigQuery's and Spark's."""
        text = self._text().replace("\\", "\\\\").replace(quote, "\\" + quote).replace("\n", "\\n")
        return f"{prefix}{quote}{text}{quote}"

    # --- names

    def _bracketed(self) -> str:
        return f"[{self._inner_name(']')}]"

    def _names_of_sqlserver(self) -> list[Callable[[], str]]:
        return [self._plain_name, self._bracketed, lambda: self._quoted_name('"'), lambda: "#temporary", lambda: "@t"]

    def _names_of_duckdb(self) -> list[Callable[[], str]]:
        return [self._plain_name, lambda: self._quoted_name('"')]

    def _names_of_snowflake(self) -> list[Callable[[], str]]:
        return [*self._names_of_duckdb(), lambda: "@%stage", lambda: "a$b"]

    def _names_of_clickhouse(self) -> list[Callable[[], str]]:
        return [self._plain_name, lambda: self._quoted_name('"').replace("\\", ""), self._backticked]

    def _backticked(self) -> str:
        return self._quoted_name("`").replace("\\", "")

    def _names_of_bigquery(self) -> list[Callable[[], str]]:
        return [self._plain_name, self._backticked, lambda: "`my-project.a.b`"]

    _names_of_spark = _names_of_bigquery
    _names_of_cassandra = _names_of_duckdb
    _names_of_hana = _names_of_duckdb

    # --- comments

    def _comments_of_sqlserver(self) -> list[Callable[[], str]]:
        return [self._line, self._block, lambda: f"/* {self._block()} {CANARY} {self._block()}*/"]

    def _comments_of_duckdb(self) -> list[Callable[[], str]]:
        return [self._line, self._block]

    def _comments_of_snowflake(self) -> list[Callable[[], str]]:
        return [self._line, self._block, lambda: self._line("//")]

    def _comments_of_clickhouse(self) -> list[Callable[[], str]]:
        return [self._line, self._block, lambda: self._line("# "), lambda: self._line("#!")]

    def _comments_of_bigquery(self) -> list[Callable[[], str]]:
        return [self._line, self._block, lambda: self._line("#")]

    _comments_of_spark = _comments_of_duckdb
    _comments_of_cassandra = _comments_of_snowflake
    _comments_of_hana = _comments_of_duckdb


BARE = {
    "sqlserver": [
        f"exec sp_addlogin bob , {CANARY}",
        f"execute dbo.add_user @name = bob , @pw = {CANARY}",
        f"sp_password null , {CANARY} , bob",
        f"declare @rc int exec @rc = master..sp_addlogin NAME , {CANARY}",
        f"[dbo].[add user] {CANARY}",
        f"use master exec xp_cmdshell {CANARY}",
    ],
    "duckdb": [
        f"create secret s ( type s3 , key_id x , secret {CANARY} )",
        f"create or replace persistent secret NAME ( type s3 , secret {CANARY} )",
        f"attach 'x' as NAME ( type sqlite , encryption_key {CANARY} )",
        f"set s3_secret_access_key = {CANARY}",
        f"set variable x = {CANARY}",
        f"copy t to 'x' ( encryption_key = {CANARY} )",
    ],
    "snowflake": [
        f"create stage s credentials = ( aws_key_id = {CANARY} aws_secret_key = {CANARY} )",
        f"copy into NAME from @s credentials = ( aws_token = {CANARY} )",
        f"create user NAME password = {CANARY}",
        f"alter user NAME set password = {CANARY}",
        f"set ( a , b ) = ( {CANARY} , 1 )",
    ],
    "clickhouse": [
        f"insert into NAME format CSV {CANARY} , 1",
        f'insert into t ( a , b ) format JSONEachRow {{"a":"{CANARY}"}}',
        f"create user u identified with plaintext_password by {CANARY}",
        f"alter user NAME identified by {CANARY}",
    ],
    "bigquery": [f"set x = {CANARY}", f"export data options ( secret = {CANARY} )"],
    "spark": [f"set fs.s3a.secret.key = {CANARY}", f"set fs.s3a.secret.key {CANARY}"],
    "cassandra": [f"create role r with password = {CANARY}"],
    "hana": [
        f"create user u password {CANARY}",
        f'create user u password "{CANARY}"',
        f"alter user u password {CANARY}",
        f"connect u password {CANARY}",
        f"modify user u as password = {CANARY}",
        f"backup data using x with encryption_passphrase = {CANARY}",
    ],
}
