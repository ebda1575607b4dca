"""The statement table of a source: what counts, on which line, what is left out; and where a position belongs."""

from __future__ import annotations

import re
import sys
import textwrap

import pytest

from interpose.analysis.coverage.exclusion import DEFAULTS
from interpose.analysis.coverage.statements import NONE
from interpose.analysis.coverage.table import Table, Unreadable, statement_table


def table(source: str, *patterns: str) -> Table:
    return statement_table(textwrap.dedent(source), [re.compile(each, re.MULTILINE) for each in (*DEFAULTS, *patterns)])


def lines(source: str, *patterns: str) -> list[int]:
    """The line of each statement that counts."""
    found = table(source, *patterns)
    return [found.statements.lines[number] for number in found.counted]


def text_at(found: Table, line: int, column: int) -> int:
    number = found.statements.at(line, column)
    return NONE if number == NONE else found.statements.lines[number]


def test_several_statements_on_a_line_are_told_apart():
    found = lines("a = 1; b = 2\nif a: b = 3\nelse: b = 4\n")

    assert found == [1, 1, 2, 2, 3]


def test_a_statement_over_several_lines_counts_on_its_first():
    found = lines(
        """\
        a = [
            1,
            len("x"),
        ]
        b = 1; c = (
            2 + len("y"))
        if (a and
                b):
            c = \\
                a
        """
    )

    assert found == [1, 5, 5, 7, 9]


def test_decorators_handlers_and_cases_are_statements_and_bodies_are_not_of_their_heads():
    found = lines(
        """\
        @str
        @(
            repr)
        def f(x: int = 1,
              y=2):
            try:
                pass
            except (ValueError,
                    TypeError):
                return 1
            finally:
                x = 2
            match x:
                case [1, 2]:
                    return 2
                case _:
                    return 3
        """
    )

    assert found == [1, 2, 4, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17]


def test_docstrings_declarations_and_what_the_compiler_leaves_out_do_not_count():
    found = lines(
        '''\
        """Doc."""
        def f():
            """Doc,
            of two lines."""
            global g
            g = 1
            return g
            g = 2
        if 0:
            g = 3
        class C:
            """Doc."""
            x: int
        '''
    )

    assert found == [2, 6, 7, 9, 11] + [13] * (sys.version_info < (3, 14))  # whose annotations are put off


def test_what_is_remarked_so_is_left_out_with_what_stands_below_it():
    source = """\
        def f(a):  # pragma: no cover
            return 1
        if f:
            a = 1
        else:  # pragma: no cover
            a = 2
            a = 3
        b = 1  # pragma:no cover
        @str  # pragma: no cover
        def g():
            return 2
        c = 1
        """

    assert lines(source) == [3, 4, 12]
    assert sorted(table(source).excluded) == [1, 2, 6, 7, 8, 9, 10, 11]


def test_imports_for_type_checkers_and_bodies_of_dots_are_left_out():
    found = lines(
        """\
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import os
        def f(a): ...
        def g(
            b
        ) -> int: ...
        def h(): return 1
        """
    )

    assert found == [1, 8, 8]


def test_more_is_left_out_where_an_expression_says_so():
    found = lines("a = 1\ndef __repr__(self):\n    return 1\nraise NotImplementedError\n", "def __repr__", "^raise N")

    assert found == [1]


def test_a_case_for_all_goes_with_its_body():
    found = lines("match 1:\n    case 2:\n        a = 1\n    case _:\n        a = 2  # pragma: no cover\n")

    assert found == [1, 2, 3]


def test_a_position_is_of_the_innermost_statement_and_leading_space_of_the_first_on_the_line():
    found = table("if a:\n    b = [\nf()]; c = 2\nelse:\n    d = lambda: e\n")

    assert [text_at(found, *at) for at in ((1, 3), (2, 8), (2, 0), (3, 0), (5, 16))] == [1, 2, 2, 2, 5]
    assert found.statements.at(3, 10) == found.statements.at(3, 6) != found.statements.at(3, 0)
    assert text_at(found, 99, 0) == text_at(found, 0, 0) == NONE


def test_columns_are_in_bytes():
    found = table('a = "äöü"; b = 1\n')

    assert found.statements.at(1, 4) != found.statements.at(1, len('a = "äöü"; b = '.encode()))


def test_form_feeds_and_other_separators_end_no_line():
    assert lines("a = 1\n\x0c\nb = '\x1c'\r\nc = 1\rd = 1\n") == [1, 3, 4, 5]


def test_a_long_chain_of_conditions_is_read():
    source = "if a == 0: pass\n" + "".join(f"elif a == {n}: b = {n}\n" for n in range(1, 400))

    assert len(lines(source)) == 800


@pytest.mark.parametrize("source", ["def f(:\n", "a = 'x\n", "(" * 500 + ")" * 500, "a\0b", "  a = 1\n b = 2\n"])
def test_what_is_no_python_is_refused(source):
    with pytest.raises(Unreadable, match="not Python"):
        statement_table(source)
