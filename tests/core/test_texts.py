"""Texts are bounded as events are: those of dropped events are not kept; for what finds no room stands "(other)"."""

import json
import os
from collections import Counter

import pytest
from tracing import events_of

from interpose.experiments.metadata.control import Control

MIB_BYTES = 1 << 20
PATHS = 60_000
MANY = f"""
import os
LETTERS = str.maketrans("0123456789", "ghijklmnop")
for number in range({PATHS}):
    os.stat("/") if number % 100 == 0 else os.path.exists(f"/nonexistent/{{number:0100d}}".translate(LETTERS))
"""
# Paths of one shape, then something else that is done again and again.
OF_ONE_SHAPE = f"""
import os
from interpose import transaction
for number in range({PATHS}):
    with transaction(f"order {{number}}"):
        os.path.exists(f"/nonexistent/{{number:0100d}}/secret-{{number}}x")
for number in range(1_000):
    os.path.exists("/rare")
"""


def details_of(process, name="os.stat"):
    return Counter(process.string(each.detail) for each in events_of(process, name))


def size_bytes(done, name):
    return os.stat(f"{done.path}/{name}").st_size


@pytest.mark.long
def test_texts_take_a_part_of_the_ring_and_the_rest_is_other(traced, interpose):
    done = traced(MANY, INTERPOSE_RING="1MiB")

    founder = done.experiment.founder
    details = details_of(founder)
    assert size_bytes(done, "strings") <= MIB_BYTES // 4 + 64 * 1024
    assert details["(other)"] > 5_000
    assert details["/"] > 50
    assert founder.details_left_out > 50_000
    assert done.experiment.damages.found == []
    shown = interpose("report", done.path).stdout
    assert f"(other)  {founder.details_left_out:,} details: no room for their texts" in shown


@pytest.mark.long
def test_where_half_of_the_room_is_taken_texts_that_differ_in_numbers_are_one(traced):
    done = traced(OF_ONE_SHAPE, INTERPOSE_RING="1MiB", INTERPOSE_REDACT="secret-[0-9]+x")

    founder = done.experiment.founder
    details = details_of(founder)
    assert details["/rare"] == 1_000
    assert set(details) == {"/rare", "/nonexistent/*/?"}
    assert {founder.string(each.detail) for each in events_of(founder, "interpose.transaction")} == {"order *"}
    assert founder.details_left_out == 0
    assert size_bytes(done, "strings") <= MIB_BYTES // 8 + 64 * 1024
    assert not [text for _, text in founder.strings() if "secret" in text]


def test_texts_take_a_part_of_the_limit_and_what_they_take_counts(traced):
    done = traced(MANY, INTERPOSE_LIMIT="4MiB")

    page = Control(done.experiment.founder).read()
    assert MIB_BYTES <= page.other_bytes + 64 * 1024 <= MIB_BYTES + 128 * 1024
    assert page.taken_bytes + page.other_bytes <= 4 * MIB_BYTES
    assert page.full_drops > 0


def test_texts_of_dropped_events_are_not_kept(traced):
    many = f"""
import os
for number in range({PATHS}):
    os.stat("/")
for number in range({PATHS}):
    os.path.exists(f"/nonexistent/{{number:0100d}}")
"""
    done = traced(many, INTERPOSE_LIMIT="1MiB")

    founder = done.experiment.founder
    kept = [text for _, text in founder.strings() if "nonexistent" in text]
    assert len(kept) <= 1_000
    assert founder.details_left_out == 0
    assert size_bytes(done, "strings") <= 128 * 1024


@pytest.mark.long
def test_where_there_is_room_every_text_is_kept(traced):
    done = traced(MANY)

    founder = done.experiment.founder
    assert founder.details_left_out == 0
    assert "(other)" not in details_of(founder)
    assert len({text for text in details_of(founder) if "nonexistent" in text}) == PATHS * 99 // 100


def test_a_text_that_comes_back_after_hundreds_of_others_is_known(traced):
    done = traced(
        """
        import os

        for _ in range(2):
            for number in range(600):
                os.path.exists(f"/nonexistent/{number}")
        """
    )

    kept = Counter(text for _, text in done.experiment.founder.strings() if text.startswith("/nonexistent/"))
    assert len(kept) == 600
    assert kept.total() <= 602  # one in a thousand may be evicted and written again


def test_names_of_one_shape_are_one_where_the_user_says_so(traced):
    done = traced(
        """
        import interpose, os

        for number in range(500):
            with interpose.transaction(f"order {number}"):
                os.path.exists(f"/nonexistent/{number}")
        """,
        INTERPOSE_ARGUMENTS="logic=normalised,file=normalised",
    )

    founder = done.experiment.founder
    assert details_of(founder)["/nonexistent/*"] == 500
    assert {text for _, text in founder.strings() if text.startswith("order ")} == {"order *"}


NUMBERS = """
import ctypes, json
from pathlib import Path
import interpose.cext
library = ctypes.CDLL(str(Path(next(iter(interpose.cext.__path__)), "libinterpose.so")))
intern = library.interpose_stack_intern
print(json.dumps([intern(site, outer, cut) for site in range(1, 60) for outer in range(20) for cut in (0, 1)]))
"""


def test_stacks_that_differ_in_a_site_a_caller_or_in_being_cut_have_numbers_of_their_own(traced):
    numbers = json.loads(traced(NUMBERS).stdout)

    assert 0 not in numbers
    assert len(set(numbers)) == len(numbers) == 59 * 20 * 2
