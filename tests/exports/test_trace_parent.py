"""A program that was started within a trace (TRACEPARENT, W3C Trace Context) has its spans in it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.cli.main import main
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.experiment import Experiment
from interpose.timing.shims import trace_parent
from tests.build import SECOND, START_NS, Build, event
from tests.exports.test_spans import spans, spans_in

pytestmark = pytest.mark.every_python

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
PROGRAM = """
import os, subprocess, sys
import interpose
print(os.environ["TRACEPARENT"])
os.stat("/")
with interpose.transaction("order"):
    os.stat("/tmp")
subprocess.run([sys.executable, "-c", "import os; os.stat('/'); print(os.environ['TRACEPARENT'])"], check=True)
"""
WRONG = (
    "",
    "1",
    PARENT.upper(),
    PARENT[:-1],
    PARENT + "0",
    PARENT + "\n",
    f" {PARENT[1:]}",
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE[:-1]}g-{SPAN}-01",
    f"00-{TRACE}-{SPAN}--1",
    PARENT.replace("-", "\u2010"),
    PARENT.replace("0", "\u0660", 1),
)


@pytest.fixture
def nested(traced):
    return traced(PROGRAM, TRACEPARENT=PARENT)


def test_the_experiment_is_in_the_trace_that_the_program_was_started_in(nested, tmp_path):
    found = spans(nested.path, tmp_path)

    processes = [each for each in found if "attributes" not in each]
    founder, child = sorted(processes, key=lambda each: int(each["startTimeUnixNano"]))
    assert (founder["traceId"], founder["parentSpanId"]) == (TRACE, SPAN)
    assert (child["traceId"], child["parentSpanId"]) == (TRACE, founder["spanId"])
    known = {(each["traceId"], each["spanId"]) for each in found} | {(TRACE, SPAN)}
    assert all((each["traceId"], each["parentSpanId"]) in known for each in found if "parentSpanId" in each)
    [root] = [each for each in found if "parentSpanId" not in each]
    assert root["name"] == "order" and root["traceId"] != TRACE
    assert sum(each["traceId"] == root["traceId"] for each in found) == 2
    assert len({each["spanId"] for each in found}) == len(found)


def test_programs_in_one_trace_share_no_identity(traced, tmp_path):
    first, second = (spans(traced("import os; os.stat('/')", TRACEPARENT=PARENT).path, tmp_path) for _ in range(2))

    ids = [{each["spanId"] for each in found} for found in (first, second)]
    assert {each["traceId"] for each in (*first, *second)} == {TRACE}
    assert not ids[0] & ids[1]
    assert all(len(each) == 16 and int(each, 16) for each in ids[0] | ids[1])


def test_the_environment_stays_as_it_was(nested):
    assert nested.stdout.split() == [PARENT, PARENT]
    assert nested.stderr == ""


@pytest.mark.parametrize("value", [each for each in WRONG if each.isascii()])
def test_what_is_none_is_not_recorded(traced, tmp_path, value):
    done = traced("import os; os.stat('/')", TRACEPARENT=value).ended_well()

    assert done.experiment.founder.log.trace_parent is None
    assert "<trace" not in Path(done.path, "log.xml").read_text()
    [root] = [each for each in spans(done.path, tmp_path) if "parentSpanId" not in each]
    assert root["traceId"] != TRACE


@pytest.mark.any_python
@given(st.sampled_from((*WRONG, PARENT)) | st.text(max_size=60) | st.from_regex(r"[0-9a-f-]{55}", fullmatch=True))
def test_only_what_a_reader_takes_is_written(text):
    written = trace_parent(text.encode("utf-8", "surrogatepass"))
    read = Log(trace={"parent": text}).trace_parent

    assert written[2:52] == (text[2:52] if read else "")
    assert Log(trace={"parent": written}).trace_parent == read
    assert text not in WRONG or not written
    assert text != PARENT or read == (TRACE, SPAN)


@pytest.mark.any_python
@pytest.mark.parametrize("value", ["", "x", f"00-{TRACE}-{SPAN}", PARENT + '"}', f"00-{'0' * 32}-{SPAN}-01"])
def test_a_damaged_experiment_has_a_trace_of_its_own(tmp_path, value, capsys):
    build = Build(tmp_path / "t.1.er")
    build.events([event(1000, 500, intrinsic=build.intrinsic("os.stat", "file"), call=1)])
    build.thread(end_ns=START_NS + SECOND, recorded=1, main=1)
    build.ended(SECOND, 0)
    log = Path(build.write()) / "log.xml"
    escaped = value.replace('"', "&quot;")
    log.write_text(log.read_text().replace("<settings>", f'<trace parent="{escaped}"/><settings>', 1))

    assert Experiment(str(log.parent)).founder.log.trace["parent"] == value
    assert main(["export", str(log.parent), "--to", "otlp"]) == 0

    [line] = capsys.readouterr().out.splitlines()
    whole, *_ = spans_in([json.loads(line)])
    assert TRACE not in line and "parentSpanId" not in whole
