"""SQL without its literals: what could be a value never stays."""

import ctypes
import re
import string

import pytest
from dialects import DIALECTS
from hypothesis import given
from hypothesis import strategies as st
from recorder_library import RecorderLibrary

LIBRARY = RecorderLibrary()
LIBRARY.statement_normalise.restype = ctypes.c_size_t
LIBRARY.statement_normalise.argtypes = [
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_bool),
]


def read(sql: bytes, text: ctypes.Array[ctypes.c_char], room: int, dialect: str = "any") -> tuple[int, bool]:
    """How long the normalised statement in `text` is, and whether there were literals."""
    literals = ctypes.c_bool()
    length = LIBRARY.statement_normalise(DIALECTS.index(dialect), sql, len(sql), text, room, ctypes.byref(literals))
    return length, literals.value


def normalise_bytes(data: bytes, room: int = 4096, dialect: str = "any") -> bytes:
    """The normalised statement; fails where the library writes past the room it was given."""
    text = ctypes.create_string_buffer(b"\xa5" * (room + 8), room + 8)
    length, _ = read(data, text, room, dialect)
    assert length <= room
    assert text.raw[room:] == b"\xa5" * 8
    return text.raw[:length]


def normalise(sql: bytes | str, room: int = 4096) -> str:
    """The normalised statement as text."""
    data = sql.encode() if isinstance(sql, str) else sql
    return normalise_bytes(data, room).decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("select * from t where a = 'it''s' and b=12.5e-3", "select * from t where a = ? and b=?"),
        ("select 0xFF, .5, 1., 1e10, -7, x'ff', N'n', E'a\\nb', _utf8'x'", "select ?, ?, ?, ?, -?, ?, ?, ?, ?"),
        ("select ?, ?2, :name, :1, %s, %(name)s, $1, @p1", "select ?, ?2, :name, :1, %s, %(name)s, $1, @p1"),
        ("select a::int, t1.c2, col3 from t4", "select a::int, t1.c2, col3 from t4"),
        ("select $$secret$$, $tag$se$cret$tag$, $1", "select ?, ?, $1"),
        ("select 1 -- secret\nfrom t /* secret */ where /* open", "select ? from t where"),
        ("select\n\t 1  ,\n2", "select ? , ?"),
        ('select "a" from "b c" as "d" where "b c"."e" = "secret"', 'select ? from ? as ? where "b c"."e" = ?'),
        ("select [a b], `c d` from [e]", "select [a b], `c d` from [e]"),
        ("select a[1], a[1:2]", "select a[?], a[?:?]"),
        ("select 'not closed", "select ?"),
        ('insert into t values ("not closed', "insert into t values (?"),
        ("select 'a' 'b', 'it\\'s', 'x' from t", "select ? ?, ?"),
        ("insert into t values ('C:\\', 'my secret', 1)", "insert into t values (?"),
        ('select a is not distinct from "secret", b from "t"', 'select a is not distinct from ?, b from ?'),
        ("select \x0042", "select \x00?"),
        ("select ARRAY[a, 'secret'], ARRAY['secret']", "select ARRAY[a, ?], ARRAY[?]"),
        ("select 5 # 'x\nsecret y'", "select ? ?"),
        ("select 5--'x\nsecret y'", "select ??"),
        ("select 5 -- it's a comment\n from t", "select ? from t"),
        ("", ""),
        ("select 'ü', ü from tä", "select ?, ü from tä"),
    ],
)
def test_literals_become_question_marks_and_the_rest_stays(sql, kept):
    assert normalise(sql) == kept


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("PRAGMA key=canary", "PRAGMA key= ?"),
        ("pragma main.hexrekey = canary", "pragma main.hexrekey = ?"),
        ("select 1; PRAGMA rekey (canary); select 2", "select ?; PRAGMA rekey ( ?"),
        ("pragma key", "pragma key"),
        ("PRAGMA foreign_keys; select 1", "PRAGMA foreign_keys; select ?"),
        ("PRAGMA cache_size = -2000", "PRAGMA cache_size = -?"),
        ("set x=c", "set x=?"),
    ],
)
def test_a_bare_key_is_not_kept(sql, kept):
    assert normalise(sql) == kept


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("select a from t where b in (1)", "select a from t where b in (?)"),
        ("select a from t where b in (1,-2 , 'x', N'y', .5) and c", "select a from t where b in (?, …) and c"),
        ("select a from t where b NOT IN(?, ?, ?)", "select a from t where b NOT IN(?, …)"),
        ("where b in ( %s,%s )", "where b in (%s, …)"),
        ("where b in (:id_1, :id_2)", "where b in (:id_1, …)"),
        ("where b in (%(id_1)s, %(id_2)s)", "where b in (%(id_1)s, …)"),
        ("where b in ($1, $2, ?3, @p)", "where b in ($1, …)"),
        ("where b in ($1::INTEGER, $2::INTEGER)", "where b in ($1::INTEGER, …)"),
        ("where b in (1::int4, 2::int4) and c = 3", "where b in (?::int4, …) and c = ?"),
        ("where b in (%s::timestamp  with\n time zone, %s::date )", "where b in (%s::timestamp with time zone, …)"),
        ("where b in (%s::text 'secret', 2)", "where b in (%s::text ?, ?)"),
        ("where b in (1::, 2)", "where b in (?::, ?)"),
        ('where b in ("x", "y")', "where b in (?, …)"),
        ("where b in ($$x$$, $q$y$q$)", "where b in (?, …)"),
        ("where b in (1, 2, NULL, 3, 4)", "where b in (?, …, NULL, ?, ?)"),
        ("where b in (1, 2 + c, 3)", "where b in (?, ? + c, ?)"),
        ("where b in (1, 2, 'not closed", "where b in (?, …, ?"),
        ("where b in (%('x')s, 1)", "where b in (%(?)s, ?)"),
        ("where b in (@1, @2)", "where b in (@?, @?)"),
        ("where margin (1, 2) in (select 1, 2)", "where margin (?, ?) in (select ?, ?)"),
        ("select f(1, 2), ARRAY[1, 2], a[1]", "select f(?, ?), ARRAY[?, …], a[?]"),
        ("insert into t values (1, 'x', NULL)", "insert into t values (?, ?, NULL)"),
        (
            "insert into t values (1, f('x')), (2, NULL) ,(3, ')') on conflict do nothing",
            "insert into t values (?, f(?)), … on conflict do nothing",
        ),
        ("insert into t values (?, ?), (?, ?)", "insert into t values (?, ?), …"),
        ("update t set a = values(a), b = values(b)", "update t set a = values(a), b = values(b)"),
        ("where (a, b) in ((1, 2), (3, 4)) and c in (5, 6)", "where (a, b) in ((?, ?), …) and c in (?, …)"),
        ("values (1), (2 /* ) */, -- )\n 'it''s'), (x'00'), (3", "values (?), …"),
        ("values (1), ('C:\\', 'my secret', 1), (2) returning a", "values (?), …"),
    ],
)
def test_a_list_is_the_same_text_however_long_it_is(sql, kept):
    assert normalise(sql) == kept


@pytest.mark.parametrize(
    ("sql", "literals"),
    [
        (b"select a from t1 where b = ?", False),
        (b"select a from t where b in (:x, :y)", False),
        (b"select a from t where b in (:x, 1)", True),
        (b"select 'x'", True),
        (b"", False),
    ],
)
def test_it_is_told_whether_there_were_literals(sql, literals):
    assert read(sql, ctypes.create_string_buffer(100), 100)[1] is literals


QUOTES = ["'{}'", "x'{}'", "E'{}'", "$${}$$", "$q${}$q$", "/*{}*/", "--{}\n", '"{}"']
PLAIN = st.text(string.ascii_lowercase + " ,()=<>*+-?:", max_size=20)
CANARY = "zqcanaryqz"


TEXT = st.text(string.ascii_letters + " \n%&\\\\", max_size=8)


@given(st.lists(st.tuples(PLAIN, st.sampled_from(QUOTES), TEXT), max_size=8))
def test_no_text_between_quotes_is_kept(parts):
    sql = "select " + "".join(f"{plain} = {quote.format(CANARY + text)} " for plain, quote, text in parts)

    assert CANARY not in normalise(sql)


VALUES = st.one_of(
    st.sampled_from(["'{}'", "x'{}'", "E'{}'", "$${}$$", "$q${}$q$", '"{}"']).map(lambda quote: quote.format(CANARY)),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
)


@given(st.lists(VALUES, min_size=2), st.sampled_from([",", ", ", " ,\n"]))
def test_lists_of_any_values_are_one_text(values, comma):
    assert normalise(f"select a from t where b in ({comma.join(values)}) or c", 65536) == (
        "select a from t where b in (?, …) or c"
    )


@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=2))
def test_rows_of_any_values_are_one_text(rows):
    text = ", ".join(f"({', '.join(row)})" for row in rows)
    first = ", ".join(f"-{'?'}" if value.startswith("-") else "?" for value in rows[0])

    assert normalise(f"insert into t values {text} returning a", 65536) == (
        f"insert into t values ({first}), … returning a"
    )


@given(st.binary(max_size=300), st.integers(0, 400))
def test_whatever_is_given_it_stays_within_its_room(data, room):
    assert len(normalise(data, room).encode("utf-8", "replace")) <= 3 * room


@pytest.mark.long
@given(st.text(max_size=100))
def test_it_is_its_own_normal_form_for_statements_without_quotes(text):
    sql = "".join(c for c in text if c not in "'\"`[]$/-#\\")
    once = normalise(sql)

    assert normalise(once) == once


# --- the rules of SQLite once more, in Python and without lists

W = r"[0-9A-Za-z_\x80-\xff]"
TOKEN = re.compile(
    rf"""(?P<space>[ \t-\r]+)
    | (?P<string>(?:(?!\d){W}+)?')
    | (?P<double>")
    | (?P<name>`(?:[^`]|``)*+(?:`|\Z) | \[[^]]*(?:\]|\Z))
    | (?P<line>--)
    | (?P<block>/\*.*?(?:\*/|\Z))
    | (?P<number>\.?\d(?:[eE][+-](?=\d)|{W}|\.)*)
    | (?P<word>{W}+)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
NAME_FOLLOWS = re.compile(
    rf"\.\Z|(?<![.])(?<!{W})(?:from|join|into|update|table|index|as|view|exists|column|trigger|references"
    r"|constraint|schema|only)\Z",
    re.IGNORECASE,
)
VALUE_FOLLOWS = re.compile(rf"(?<!{W})distinct{W}*[ ]{W}+\Z", re.IGNORECASE)
NUMBERED = re.compile(r"(?:[?$]|(?:^|[ \t-\r(,=]):)\Z")


def quoted_end(sql: str, at: int, quote: str) -> int:
    """Where a text ends whose quote stands at `at`; behind the end of all where it does not."""
    found = re.compile(rf"{quote}(?:[^{quote}]|{quote}{quote})*+({quote}?)", re.DOTALL).match(sql, at)
    assert found is not None
    return found.end() if found[1] else len(sql) + 1


def take(sql: str, found: re.Match[str], text: str) -> tuple[str, int]:
    """What stays of the token that was found behind `text`, and where the next one begins."""
    at, end, kept = found.start(), found.end(), found.group()
    match found.lastgroup:
        case "space" | "block":
            return " ", end
        case "string":
            return "?", quoted_end(sql, end - 1, "'")
        case "double":
            end = quoted_end(sql, at, '"')
            named = NAME_FOLLOWS.search(text) and (text.endswith(".") or not VALUE_FOLLOWS.search(text))
            is_name = end <= len(sql) and (named or sql[end : end + 1] == ".")
            return sql[at:end] if is_name else "?", end
        case "name":
            is_whole = kept[-1] == "]" if kept[0] == "[" else kept.count("`") % 2 == 0
            return (kept, end) if is_whole else ("?", len(sql))
        case "line":
            return " ", at + len(sql[at:].partition("\n")[0])
        case "number":
            is_placeholder = NUMBERED.search(sql[:at]) and len(kept) <= 5 and "." not in kept
            return (kept if is_placeholder else "?"), end
    return kept, end


def expected(sql: str) -> str:
    """The normal form by these rules."""
    text, space, at = "", "", 0
    while at < len(sql):
        found = TOKEN.match(sql, at)
        assert found is not None
        kept, at = take(sql, found, text)
        if kept != " ":
            text += (space if text else "") + kept
        space = " " if kept == " " else ""
    return text


PIECES = (
    "' '' \" \\ -- - /* */ / * # $ $$ $a$ $1 [ ] [a` ` ( ) , . .. 1 12.5e-3 .5 1. 0xff e+5 x N _utf8 from FROM as table"
    " is distinct a t1 col3 \xfc : :1 :: ? ?2 %s @p1 = < \0 ! 'x' 'secret' \"s\" where select"
)


@given(st.lists(st.sampled_from([*PIECES.split(" "), *" " * 8, "\n", "[a b]", "is distinct from "]), max_size=16))
def test_what_is_no_list_is_normalised_by_the_rules(pieces):
    sql = "".join(pieces)

    kept = normalise_bytes(sql.encode("latin-1"), dialect="sqlite")

    assert kept.decode("latin-1").rstrip(" ") == expected(sql).rstrip(" ")
