"""SQL without its literals: what could be a value never stays."""

import ctypes
import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interpose.cext

LIBRARY = ctypes.CDLL(os.path.join(interpose.cext.__path__[0], "libinterpose.so"))
LIBRARY.statement_normalise.restype = ctypes.c_size_t
LIBRARY.statement_normalise.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def normalise(sql: bytes | str, room: int = 4096) -> str:
    """The normalised statement; fails where the library writes past the room it was given."""
    data = sql.encode() if isinstance(sql, str) else sql
    text = ctypes.create_string_buffer(b"\xa5" * (room + 8), room + 8)
    length = LIBRARY.statement_normalise(data, len(data), text, room)
    assert length <= room
    assert text.raw[room:] == b"\xa5" * 8
    return text.raw[:length].decode("utf-8", "replace")


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
        ('select "a" from "b c" as "d" where "b c"."e" = "secret"', 'select ? from "b c" as "d" where "b c"."e" = ?'),
        ("select [a b], `c d` from [e]", "select [a b], `c d` from [e]"),
        ("select a[1], a[1:2]", "select a[?], a[?:?]"),
        ("select 'not closed", "select ?"),
        ('insert into t values ("not closed', "insert into t values (?"),
        ("select 'a' 'b', 'it\\'s', 'x' from t", "select ? ?, ?"),
        ("insert into t values ('C:\\', 'my secret', 1)", "insert into t values (?"),
        ("select a is not distinct from \"secret\", b from \"t\"", "select a is not distinct from ?, b from \"t\""),
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


QUOTES = ["'{}'", "x'{}'", "E'{}'", "$${}$$", "$q${}$q$", "/*{}*/", "--{}\n", '"{}"']
PLAIN = st.text(string.ascii_lowercase + " ,()=<>*+-?:", max_size=20)
CANARY = "zqcanaryqz"


TEXT = st.text(string.ascii_letters + " \n%&\\\\", max_size=8)


@given(st.lists(st.tuples(PLAIN, st.sampled_from(QUOTES), TEXT), max_size=8))
def test_no_text_between_quotes_is_kept(parts):
    sql = "select " + "".join(f"{plain} = {quote.format(CANARY + text)} " for plain, quote, text in parts)

    assert CANARY not in normalise(sql)


@given(st.binary(max_size=300), st.integers(0, 400))
def test_whatever_is_given_it_stays_within_its_room(data, room):
    assert len(normalise(data, room).encode("utf-8", "replace")) <= 3 * room


@given(st.text(max_size=100))
def test_it_is_its_own_normal_form_for_statements_without_quotes(text):
    sql = "".join(c for c in text if c not in "'\"`[]$/-#\\")
    once = normalise(sql)

    assert normalise(once) == once
