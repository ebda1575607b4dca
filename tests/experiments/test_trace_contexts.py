"""Trace contexts as they are read: nothing that is no context, and no more of them than there is room for."""

import json

import pytest

from interpose.cli.main import main
from interpose.experiments.format import trace_contexts
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event
from tests.exports.test_spans import spans_in

TRACE = 0x0AF7651916CD43DD8448EB211C80319C


def built(tmp_path, fill):
    build = Build(tmp_path / "t.1.er")
    handle = build.intrinsic("app.handle", "logic", transaction="is")
    build.events([event(1000, 500, intrinsic=handle, call=1), event(2000, 500, intrinsic=handle, call=2)])
    build.thread(end_ns=START_NS + SECOND, recorded=2, made=2, main=1)
    build.ended(SECOND, 0)
    fill(build)
    return build.write()


def contexts(path):
    experiment = Experiment(str(path))
    return experiment.founder.trace_contexts, experiment.damages.found


def test_records_that_are_no_context_are_left_out(tmp_path):
    def fill(build):
        build.context(TRACE, 5, call=1)
        build.context(0, 5, call=2)
        build.context(TRACE, 0, call=2)
        build.context(TRACE, 5, call=0)
        build.context(TRACE, 5, call=2, flags=256)

    found, damages = contexts(built(tmp_path, fill))

    assert {key: each.as_header() for key, each in found.items()} == {(1, 1): f"00-{TRACE:032x}-{5:016x}-01"}
    assert not damages


def test_a_span_has_the_parent_that_its_request_came_from(tmp_path, capsys):
    path = built(tmp_path, lambda build: build.context(TRACE, 5, call=2))

    assert main(["export", str(path), "--to", "otlp"]) == 0

    found = spans_in(map(json.loads, capsys.readouterr().out.splitlines()))
    first, second = (each for each in found if "attributes" in each)
    assert (second["traceId"], second["parentSpanId"]) == (f"{TRACE:032x}", f"{5:016x}")
    assert "parentSpanId" not in first and first["traceId"] != second["traceId"]


@pytest.mark.parametrize("cut", [0, 10, 64, 100])
def test_a_file_that_is_cut_short_gives_what_is_whole(tmp_path, cut):
    path = built(tmp_path, lambda build: build.context(TRACE, 5, call=1))
    whole = (path / "trace_contexts").read_bytes()
    (path / "trace_contexts").write_bytes(whole[:cut])

    found, damages = contexts(path)

    assert not found
    assert bool(damages) == (cut != 64)


def test_of_too_many_the_rest_is_not_read_and_this_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_contexts, "CONTEXTS_AT_MOST", 1)

    found, damages = contexts(built(tmp_path, lambda build: [build.context(TRACE, 5, call=call) for call in (1, 2)]))

    assert list(found) == [(1, 1)]
    assert any("more than 1 records" in str(each) for each in damages)
