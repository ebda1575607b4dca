"""The system library's files: what is recorded of each call, and of what kind it is."""

import inspect
import os

import pytest
from exercises import assert_program_is_recorded

from interpose.instrumentation.system_library import files


def test_every_call_of_a_file_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "files")


def test_a_call_is_of_the_kind_of_what_lies_behind_its_descriptor(traced):
    assert_program_is_recorded(traced, "descriptors")


def test_what_may_be_given_by_name_is_known_by_it():
    told = [each for each in files.DESCRIPTORS + files.PATHS if each.module == "posix" and each.detail]
    wanted = {each.name: name_of(each, getattr(os, each.qualified)) for each in told if hasattr(os, each.qualified)}
    known = {each.name: each.keyword for each in told if wanted.get(each.name) is not None}

    assert known == {name: word for name, word in wanted.items() if word is not None}
    assert known["os.sendfile"] == "out_fd"
    assert known["os.rename"] == "dst"
    assert known["os.read"] == ""


def name_of(intrinsic, function):
    """By which name its detail may be given; none where it may not. None where the function does not tell."""
    try:
        kept = list(inspect.signature(function).parameters.values())[intrinsic.argument]
    except ValueError:
        return None
    return "" if kept.kind is kept.POSITIONAL_ONLY else kept.name


def test_calls_of_buffers_are_recorded_where_they_are_wanted(traced):
    assert_program_is_recorded(traced, "buffered", INTERPOSE_FILES="buffered")


def test_every_file_of_a_line_editor_is_recorded_as_it_was(traced):
    pytest.importorskip("readline")
    assert_program_is_recorded(traced, "history")


def test_a_pipe_with_a_name_is_a_pipe(traced):
    assert_program_is_recorded(traced, "named_pipe")


def test_a_number_that_was_freed_unseen_means_what_it_was_given_to(traced):
    assert_program_is_recorded(traced, "reused_numbers")
