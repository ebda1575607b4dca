"""Statements that are found by an earlier one have the same normalised text."""

import ctypes
import random
import re

import pytest
from dialects import DIALECTS, Statements
from further_dialects import FURTHER, FurtherStatements
from hypothesis import assume, given
from hypothesis import strategies as st
from recorder_library import RecorderLibrary

LIBRARY = RecorderLibrary()
LIBRARY.statement_normalise_noting.restype = ctypes.c_size_t
SHORT, ROOM, SERIAL, NUMBER = 512, 4096, 3, 7
UUID = "facade99-12ab-1234-1234-123456789012"


class Literal(ctypes.Structure):
    _fields_ = (("begin", ctypes.c_uint16), ("end", ctypes.c_uint16), ("is_text", ctypes.c_bool))


class Literals(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("at", Literal * 15))


def noted(sql: bytes, dialect: str) -> tuple[bytes, Literals]:
    """The normalised statement, and the literals that others may stand in place of."""
    text, found, literals = ctypes.create_string_buffer(ROOM), Literals(), ctypes.c_bool()
    length = LIBRARY.statement_normalise_noting(
        DIALECTS.index(dialect),
        sql,
        ctypes.c_size_t(len(sql)),
        text,
        ctypes.c_size_t(ROOM),
        ctypes.byref(literals),
        ctypes.byref(found),
    )
    return text.raw[:length], found


class Patterns:
    """What a thread remembers of its statements."""

    def __init__(self) -> None:
        self.memory = ctypes.create_string_buffer(16 * 1024)

    def keep(self, sql: bytes, dialect: str = "any", number: int = NUMBER) -> bytes:
        text, literals = noted(sql, dialect)
        LIBRARY.pattern_keep(
            self.memory, SERIAL, DIALECTS.index(dialect), sql, ctypes.c_size_t(len(sql)), ctypes.byref(literals), number
        )
        return text

    def like(self, sql: bytes, dialect: str = "any", serial: int = SERIAL) -> int:
        found: int = LIBRARY.pattern_find(self.memory, serial, DIALECTS.index(dialect), sql, ctypes.c_size_t(len(sql)))
        return found


def is_like(one: bytes, other: bytes, dialect: str = "any") -> bool:
    patterns = Patterns()
    patterns.keep(one, dialect)
    return patterns.like(other, dialect) == NUMBER


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from t where id = 5 and b = 'it is'", "select a from t where id = 1234567 and b = ''"),
        ("insert into t values (1, 'a'), (2, 'b')", "insert into t values (3, 'c d'), (44, 'müßig')"),
        ("select 'a' 'b', -5 limit 1", "select '' '-- x', -0 limit 20"),
        ("5", "6"),
        ("select N'a', t1.c2 from t1 where x=1;", "select N'b', t1.c2 from t1 where x=22;"),
    ],
)
def test_other_literals_are_like_it(one, other):
    assert is_like(one.encode(), other.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from t where id = 5", "select b from t where id = 5"),
        ("select a from t where id = 5", "select a from t where id = 'x'"),
        ("select a from t where id = 5", "select a from t where id = 5.5"),
        ("select a from t where id = 5", "select a from t where id = 0x5"),
        ("select a from t where id = 5", "select a from t where id = "),
        ("select a from t where id = 5", "select a from t where id = 5 "),
        ("select a from t where id = 5 ", "select a from t where id = 5"),
        ("select 'a'5 from t", "select 'a'x from t"),
        ("select 'a', b from t", "select 'it''s', b from t"),
        ("select 'a', b from t", "select 'a\\', b from t where c = ', b from t"),
        ("select 'a' from t", "select 'a"),
        ("select 'a' from t", "select 'a'"),
        ("select t5 from t", "select t6 from t"),
        ("select ?5 from t where a = 1", "select ?6 from t where a = 1"),
        ("select q'a' from t", "select q'b' from t"),
        ("select [a from t where b = 'c'", "select [a from t where b = 'c]d'"),
    ],
)
def test_what_is_more_than_another_literal_is_not(one, other):
    assert not is_like(one.encode(), other.encode())


def test_a_statement_without_such_literals_is_not_kept():
    assert not is_like(b"select a from t", b"select a from t")


def test_more_literals_than_are_noted_are_not_kept():
    fifteen, sixteen = (b"select " + b", ".join([b"1"] * count) for count in (15, 16))

    assert is_like(fifteen, fifteen)
    assert not is_like(sixteen, sixteen)


def test_another_dialect_or_recording_does_not_find_it():
    patterns = Patterns()
    patterns.keep(b"select 5", "sqlite")

    assert patterns.like(b"select 6", "sqlite") == NUMBER
    assert patterns.like(b"select 6", "mysql") == 0
    assert patterns.like(b"select 6", "sqlite", SERIAL + 1) == 0


def test_the_last_eight_are_found():
    patterns = Patterns()
    for number in range(1, 10):
        patterns.keep(b"select 5 from t" + b"x" * number, number=number)

    found = [patterns.like(b"select 77 from t" + b"x" * number) for number in range(1, 10)]

    assert found == [0, *range(2, 10)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select ?1, $2, :3", "select ?1, $2, :3"),
        ("select $123456 from t", "select $5 from t"),
        ("select a from t where b = 12345678 -1234", "select a from t where b = 5 -1234"),
        ("select 5-1234-1234-1234-123456789012", "select 12345678-1234-1234-1234-123456789012"),
        ("select facade99-1234-1234-12-5", "select facade99-1234-1234-1234-5"),
        ("select facade99-1234-1234-1234-5", "select facade99-1234-1234-1234-123456789012"),
        ("select 'a', b", "select 'a facade99-1234-1234-1234-123456789012', b"),
        ("select 'a', b", "select '\u2018a', b"),
        ("select 'a', b", "select '\u20ac5', b"),
        ("select 'a', b", "select '\ufeffa', b"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_more_is_like_it_than_has_the_same_text(one, other, dialect):
    assert_same(one.encode(), other.encode(), dialect)
    assert_same(other.encode(), one.encode(), dialect)


NUMBERS = ("0", "5", "77", "1234", "12345678", "123456789012", "65536", "1" * 40)
OTHER_NUMBERS = ("1e5", "1e-5", "0x1F", "1_000", ".5", "-1", "1.", "1.5", "7é", "")
TEXTS = (
    "",
    "a",
    "it is",
    "müßig",
    "-- x",
    "*",
    "1",
    "2024-01-01 10:00",
    "ab12" * 30,
    "?",
    "%s",
    ":a",
    "a;b",
    "=",
    "\0",
)
OTHER_TEXTS = (
    *(
        "it''s",
        "''",
        "a]",
        "\\",
        "a\\''",
        '"',
        "`",
        "$",
        "$a$",
        "/*",
        "*/",
        "#",
        "(",
        ")",
        "\n",
        "\r",
        "//",
        "[",
        "'",
        "','",
    ),
    *("\ufeff", "\u2018", "\u20ac5", "\xa35", f"x {UUID}", f" {UUID}", f"={UUID}", f"{UUID}", f"x{UUID}", f"é {UUID}"),
)
DIGITS, QUOTED = r"\d+", r"'[^']*'"


def other_literal(choice: random.Random, literal: str) -> str:
    """What may stand in the place of a literal, and at times what may not."""
    is_text = literal.startswith("'")
    plain, others = (TEXTS, OTHER_TEXTS) if is_text else (NUMBERS, OTHER_NUMBERS)
    content = choice.choice(plain if choice.random() < 0.95 else others)
    return f"'{content}'" if is_text else content


def with_other_literals(choice: random.Random, sql: str) -> bytes:
    """The statement with other contents in some of what looks like its literals."""
    share = choice.choice([0.2, 0.6, 1.0])
    other = lambda found: other_literal(choice, found[0]) if choice.random() < share else found[0]  # noqa: E731
    return re.sub(f"{QUOTED}|{DIGITS}", other, sql).encode()


def with_other_noted(choice: random.Random, sql: bytes, dialect: str) -> bytes:
    """The statement with other contents in all literals that others may stand in place of."""
    literals, pieces, end = noted(sql, dialect)[1], [], 0
    for literal in literals.at[: min(literals.count, len(literals.at))]:
        pieces.append(sql[end : literal.begin])
        pieces.append(other_literal(choice, "''" if literal.is_text else "5").strip("'").encode())
        end = literal.end
    return b"".join([*pieces, sql[end:]])


def assembled(choice: random.Random, statement: str) -> str:
    """Parts and literals in any order, or a statement with a few of them within."""
    pieces = [choice.choice(PARTS) + choice.choice(["'a'", "5", "", ""]) for _ in range(choice.randint(1, 8))]
    if choice.random() < 0.5:
        return "".join(pieces)
    words = statement.split(" ")
    for piece in pieces[: choice.randint(0, 3)]:
        words.insert(choice.randint(0, len(words)), piece)
    return " ".join(words)


def assert_same(one: bytes, other: bytes, dialect: str) -> bool:
    """Whether the other statement is found by the one; its text must then be that of the other."""
    found = is_like(one, other, dialect)
    assert not found or noted(one, dialect)[0] == noted(other, dialect)[0], (dialect, one, other)
    return found


def share_found(dialect: str, seed: int, count: int) -> float:
    """How many of so many statements are found by another; fails if their texts differ."""
    choice, found = random.Random(f"{dialect} {seed}"), 0
    statements = FurtherStatements(dialect, seed) if dialect in FURTHER else Statements(dialect, seed)
    for statement in statements.take(count):
        known = choice.choice([dialect, "any"]) if dialect in DIALECTS else "any"
        sql = assembled(choice, statement)
        one = with_other_literals(choice, sql)
        other = with_other_noted(choice, one, known) if choice.random() < 0.8 else with_other_literals(choice, sql)
        if max(len(one), len(other)) <= SHORT:
            found += assert_same(one, other, known) and one != other
    return found / count


EVERY = (*DIALECTS[1:], *FURTHER)


@pytest.mark.parametrize("dialect", EVERY)
def test_what_is_found_has_the_same_normalised_text(dialect):
    assert share_found(dialect, seed=1, count=1000) > 0.1


@pytest.mark.slow
@pytest.mark.reach
@pytest.mark.parametrize("dialect", EVERY)
def test_of_many_statements_what_is_found_has_the_same_normalised_text(dialect, tally):
    assert share_found(dialect, seed=2, count=tally.times(200_000)) > 0.1


PARTS = (
    *"'\"`[]()$#-/*\\;:?,=.q@%\n\r ",
    *(
        "--",
        "-- ",
        "/*",
        "*/",
        "/*!",
        "/*M!",
        "//",
        "$$",
        "$a$",
        "q'[",
        "nq'",
        "]'",
        "E",
        "e",
        "x",
        "N",
        "U&",
        "_utf8",
        "''",
    ),
    *(
        "a",
        "t1",
        "1",
        "é",
        "1e",
        "::",
        "[1:",
        "[ :",
        "a[",
        "\ufeff",
        "\u2018",
        "\u20ac",
        "\xa3",
        UUID,
        UUID[:-12],
        UUID[:-7],
    ),
    *("12345678-1234-1234-1234-", "-1234-1234-1234-123456789012", "facade99-", "-", "--", "5-", "a-", "\t"),
    *("select ", " from ", " in (", " in ((", "values (", "), (", "array[", " as ", " into ", "is distinct from "),
    *(
        "pragma key = ",
        "pragma ",
        "set x = ",
        "set ",
        " password ",
        " identified by ",
        "create user ",
        "alter ",
        "attach ",
    ),
    *(
        " key ",
        "; ",
        "exec ",
        "exec dbo.f ",
        "insert into t format ",
        "create secret s (",
        "connect ",
        "explain ",
        "copy ",
    ),
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(PARTS),
            *[st.sampled_from([*NUMBERS, *OTHER_NUMBERS, *(f"'{text}'" for text in (*TEXTS, *OTHER_TEXTS))])] * 2,
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(DIALECTS),
)
def test_whatever_stands_beside_literals_the_text_is_the_same(parts, dialect):
    one, other = ("".join(part[0] + part[which] for part in parts).encode() for which in (1, 2))
    assume(max(len(one), len(other)) <= SHORT)

    assert_same(one, other, dialect)
