"""What is exported is read by others' code: schemas and libraries of the tools that it is for."""

import errno
import gzip
import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict

import pytest
from tracing import environment

from interpose.cli.main import main
from interpose.experiments.format.children import SPAWN
from tests import build as built
from tests.analysis.test_counts import build_in
from tests.build import SECOND, START_NS, Build
from tests.exports.test_exports import events, exported, hostile, recorded, total  # noqa: F401

pytestmark = pytest.mark.packages
SPEEDSCOPE = "speedscope@1.25.0"


# Messages of google/pprof, proto/profile.proto, as far as they are read here: fields with their numbers and types.
PPROF = {
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Label": [("key", 1, "int64"), ("str", 2, "int64")],
    "Sample": [("location_id", 1, "uint64 *"), ("value", 2, "int64 *"), ("label", 3, "Label *")],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64")],
    "Location": [("id", 1, "uint64"), ("line", 4, "Line *")],
    "Function": [("id", 1, "uint64"), ("name", 2, "int64"), ("filename", 4, "int64")],
    "Profile": [("sample_type", 1, "ValueType *"), ("sample", 2, "Sample *"), ("location", 4, "Location *"),
                ("function", 5, "Function *"), ("string_table", 6, "string *"), ("duration_nanos", 10, "int64")],
}  # fmt: skip


def pprof_class():
    """The class of a profile, which protobuf's own code makes from the schema."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="pprof", syntax="proto3")
    for name, fields in PPROF.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            word = kind.removesuffix(" *")
            made = message.field.add(name=field, number=number, label=3 if kind.endswith(" *") else 1)
            if word in PPROF:
                made.type, made.type_name = made.TYPE_MESSAGE, f".pprof.{word}"
            else:
                made.type = getattr(made, f"TYPE_{word.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))


def test_pprof_has_the_sums_of_the_report(recorded, tmp_path):  # noqa: F811
    made = pprof_class().FromString(gzip.decompress(exported(recorded, "pprof", tmp_path).read_bytes()))

    strings = made.string_table
    measured = [f"{strings[each.type]} {strings[each.unit]}" for each in made.sample_type]
    assert measured == ["wall nanoseconds", "cpu nanoseconds", "wait nanoseconds", "calls count", "bytes bytes"]
    sums = [sum(each.value[place] for each in made.sample) for place in range(5)]
    assert sums[:2] == [total(recorded).wall_ns, total(recorded).cpu_ns]
    assert sums[3] == len(events(recorded))
    functions = {each.id: strings[each.name] for each in made.function}
    lines = {each.id: (functions[each.line[0].function_id], each.line[0].line) for each in made.location}
    stacks = [[lines[each] for each in sample.location_id] for sample in made.sample]
    assert any([name for name, _ in stack][:2] == ["sqlite3.Connection.execute", "load"] for stack in stacks)
    assert ("load", 5) in lines.values()
    kinds = {strings[label.str] for sample in made.sample for label in sample.label if strings[label.key] == "kind"}
    assert {"db", "file", "process"} <= kinds


def packets(path):
    pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    return pb2, pb2.Trace.FromString(gzip.decompress(path.read_bytes())).packet


class Replay:
    """Takes a trace apart as trace_processor does: tracks, names by number within a sequence, slices by track."""

    def __init__(self, path):
        pb2, found = packets(path)
        self.names = defaultdict(dict)
        self.tracks = {}
        self.slices = []
        self.open = defaultdict(list)
        self.counters = Counter()
        self.texts = defaultdict(dict)
        self.sites = defaultdict(dict)
        edges = []
        for number, each in enumerate(found):
            of = each.trusted_packet_sequence_id
            for name in each.interned_data.event_names:
                assert name.iid not in self.names[of]
                self.names[of][name.iid] = name.name
            for text in each.interned_data.debug_annotation_string_values:
                self.texts[of][text.iid] = text.str.decode()
            for site in each.interned_data.source_locations:
                self.sites[of][site.iid] = (site.file_name.rpartition("/")[2], site.line_number, site.function_name)
            if each.HasField("track_descriptor"):
                self.tracks[each.track_descriptor.uuid] = each.track_descriptor
            if each.HasField("track_event"):
                edges.append((each.timestamp, number, of, each.track_event))
        for time_ns, _, of, event in sorted(edges, key=lambda edge: edge[:2]):
            assert event.track_uuid in self.tracks
            if event.type == pb2.TrackEvent.TYPE_SLICE_BEGIN:
                self.open[event.track_uuid].append((time_ns, of, event))
            elif event.type == pb2.TrackEvent.TYPE_SLICE_END:
                begin_ns, of, begun = self.open[event.track_uuid].pop()
                self.slices.append((self.name(of, begun), time_ns - begin_ns, of, begun))
            else:
                self.counters[self.tracks[event.track_uuid].name] += 1

    def calls(self):
        """The slices but those of processes."""
        return [each for each in self.slices if not self.tracks[each[3].track_uuid].HasField("process")]

    def flows(self):
        """The names of the slices that each flow leads from, and to."""
        begun = {flow: name for name, _, _, event in self.slices for flow in event.flow_ids}
        return begun, {flow: name for name, _, _, event in self.slices for flow in event.terminating_flow_ids}

    def name(self, of, event):
        return event.name or self.names[of][event.name_iid]


def test_perfetto_has_each_call_as_a_slice_of_its_length(recorded, tmp_path):  # noqa: F811
    replay = Replay(exported(recorded, "perfetto", tmp_path))

    found = events(recorded)
    assert not any(replay.open.values())
    assert sorted(wall_ns for _, wall_ns, _, _ in replay.calls()) == sorted(each.wall_ns for each in found)
    told = [each for _, _, _, event in replay.slices for each in event.debug_annotations]
    assert sum(each.uint_value for each in told if each.name_iid == 1) == sum(each.cpu_ns for each in found)
    assert replay.counters.keys() == {"processors in use", "largest memory"}


def test_perfetto_knows_processes_threads_tasks_lines_and_errors(recorded, tmp_path):  # noqa: F811
    replay = Replay(exported(recorded, "perfetto", tmp_path))

    tracks = replay.tracks.values()
    assert sum(each.HasField("process") for each in tracks) == 2
    assert {"MainThread", "Thread-1 (work)"} <= {each.thread.thread_name for each in tracks}
    assert sum(each.name.startswith("task ") and each.parent_uuid in replay.tracks for each in tracks) >= 4
    sites = {(name, replay.sites[of].get(event.source_location_iid)) for name, _, of, event in replay.slices}
    assert ("sqlite3.Connection.execute", ("app.py", 5, "load")) in sites
    errors = {replay.texts[of][each.string_value_iid] for _, _, of, event in replay.slices
              for each in event.debug_annotations if each.name_iid == 4}  # fmt: skip
    assert "FileNotFoundError errno 2" in errors


def test_perfetto_has_a_track_for_each_counter(tmp_path):
    build = build_in(tmp_path / "test.1.er")

    path = exported(str(build.write()), "perfetto", tmp_path)

    pb2, found = packets(path)
    tracks = {each.track_descriptor.uuid: each.track_descriptor for each in found if each.HasField("track_descriptor")}
    sums = defaultdict(list)
    for each in found:
        if each.track_event.type == pb2.TrackEvent.TYPE_COUNTER:
            second = (each.timestamp - START_NS) // SECOND
            sums[tracks[each.track_event.track_uuid].name].append((second, each.track_event.counter_value))
    assert sums["faults"] == [*((second, 200 * second) for second in range(1, 7)), (7, 1500), (8, 1900)]
    assert sums["migrations"] == [(2, 3)]
    units = {each.name: each.counter.unit for each in tracks.values() if each.HasField("counter")}
    assert units["faults"] == pb2.CounterDescriptor.UNIT_COUNT


REQUESTING = """
import http.client, subprocess, sys
open("server.py", "w").write(sys.argv[1])
server = subprocess.Popen([sys.executable, "server.py"], stdout=subprocess.PIPE, text=True)
port = int(server.stdout.readline())
for number in range(3):
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.request("GET", f"/{number}")
    client.getresponse().read()
    client.close()
server.wait()
"""
SERVING = """
from wsgiref.simple_server import WSGIRequestHandler, make_server
class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass
def application(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
    print(server.server_port, flush=True)
    for _ in range(3):
        server.handle_request()
"""


def test_flows_of_perfetto_lead_from_a_call_to_the_process_and_the_request_that_it_made(tmp_path):
    (tmp_path / "app.py").write_text(REQUESTING)
    told = environment(INTERPOSE="1", INTERPOSE_PROPAGATE="1")
    subprocess.run([sys.executable, "app.py", SERVING], cwd=tmp_path, env=told, check=True)

    replay = Replay(exported(str(tmp_path / "test.1.er"), "perfetto", tmp_path))

    begun, ended = replay.flows()
    assert begun.keys() == ended.keys()
    arrows = Counter((begun[flow], ended[flow]) for flow in begun)
    [(started, process)] = [arrow for arrow in arrows if "server.py" in arrow[1]]
    # By the second since CPython 3.13.
    assert started in ("subprocess.fork_exec", "os.posix_spawn") and process.endswith("server.py")
    del arrows[started, process]
    assert arrows == {("http.client.HTTPConnection.request", "wsgiref.simple_server.WSGIRequestHandler.handle"): 3}


class ReplayOfChrome:
    """Takes a trace of the Trace Event Format apart: slices by name and length, the slices at both ends of each flow,
    and the values of counters."""

    def __init__(self, path):
        self.entries = json.loads(path.read_text())["traceEvents"]
        self.slices = Counter((each["name"], self.ns(each["dur"])) for each in self.entries if each["ph"] == "X")
        self.counters = defaultdict(list)
        for each in self.entries:
            if each["ph"] == "C":
                self.counters[each["name"]] += each["args"].values()

    def ns(self, microseconds):
        return round(microseconds * 1000)

    def flows(self):
        """The names of the slices that each flow leads from, and to: the innermost ones that begin there."""
        shortest = {}
        for each in sorted((each for each in self.entries if each["ph"] == "X"), key=lambda each: -each["dur"]):
            shortest[each["pid"], each["tid"], each["ts"]] = each["name"]
        ends = [
            {each["id"]: shortest[each["pid"], each["tid"], each["ts"]] for each in self.entries if each["ph"] == phase}
            for phase in "sf"
        ]
        return tuple(ends)


def test_chrome_has_the_slices_flows_and_counters_of_perfetto_in_the_order_of_time(tmp_path):
    (tmp_path / "app.py").write_text(REQUESTING)
    told = environment(INTERPOSE="1", INTERPOSE_PROPAGATE="1", INTERPOSE_SAMPLE="0.01")
    subprocess.run([sys.executable, "app.py", SERVING], cwd=tmp_path, env=told, check=True)
    path = str(tmp_path / "test.1.er")

    perfetto, chrome = Replay(exported(path, "perfetto", tmp_path)), ReplayOfChrome(exported(path, "chrome", tmp_path))

    assert chrome.slices == Counter((name, length_ns) for name, length_ns, *_ in perfetto.slices)
    assert any(name.endswith("server.py") for name, _ in chrome.slices)
    assert chrome.flows() == perfetto.flows()
    assert len(chrome.flows()[0]) == 4
    assert {name: len(values) for name, values in chrome.counters.items()} == perfetto.counters
    assert {"processors in use", "largest memory"} <= set(chrome.counters)
    times = [each["ts"] for each in chrome.entries if each["ph"] != "M"]
    assert times == sorted(times)


REPLACING = """
import os, subprocess, sys
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "replace"], check=True)
elif sys.argv[1] == "replace":
    os.execv(sys.executable, [sys.executable, __file__, "end"])
"""


def test_each_flow_has_both_ends_also_one_from_an_exec(tmp_path):
    (tmp_path / "app.py").write_text(REPLACING)
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, env=environment(INTERPOSE="1"), check=True)
    path = str(tmp_path / "test.1.er")

    entries = ReplayOfChrome(exported(path, "chrome", tmp_path)).entries
    _, found = packets(exported(path, "perfetto", tmp_path))

    begun, ended = ([each["id"] for each in entries if each["ph"] == phase] for phase in "sf")
    assert sorted(begun) == sorted(ended) and len(set(begun)) == 2
    begun = [flow for each in found for flow in each.track_event.flow_ids]
    ended = [flow for each in found for flow in each.track_event.terminating_flow_ids]
    assert sorted(begun) == sorted(ended) and len(set(begun)) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_a_process_has_its_slice_and_a_flow_only_from_a_call_that_was_kept(kept, tmp_path):
    build = Build(tmp_path / "t.1.er", pid=70)
    build.intrinsic("os.posix_spawn", "process")
    build.intrinsic("os.stat", "file")
    build.thread(recorded=1 + kept, main=1)
    build.events([built.event(0, 5, intrinsic=2), *[built.event(10, 20)] * kept])
    build.child(how=SPAWN, pid=71, thread=1, start_ns=START_NS + 10)
    path = build.write()
    Build(path / "_c1.er", pid=71, start_ns=START_NS + 15).write()

    entries = ReplayOfChrome(exported(str(path), "chrome", tmp_path)).entries

    assert [each["ph"] for each in entries if each["ph"] in "sf"] == ["s", "f"] * kept
    assert [each["pid"] for each in entries if each["ph"] == "X" and each["tid"] == 0] == [71]


def test_chrome_has_the_sums_of_what_was_counted(tmp_path):
    path = str(build_in(tmp_path / "test.1.er").write())

    counters = ReplayOfChrome(exported(path, "chrome", tmp_path)).counters

    assert counters["faults"] == [*(200 * second for second in range(1, 7)), 1500, 1900]
    assert counters["migrations"] == [3]


def test_perfetto_of_hostile_names_is_read(tmp_path):
    replay = Replay(exported(hostile(tmp_path), "perfetto", tmp_path))

    assert [name for name, *_ in replay.slices] == ["sqlite3.Cursor.execute"]


@pytest.mark.skipif(not shutil.which("npm"), reason="npm, which has speedscope's schema, is not installed")
def test_speedscope_keeps_to_its_schema(recorded, tmp_path):  # noqa: F811
    jsonschema = pytest.importorskip("jsonschema")
    done = subprocess.run(["npm", "pack", SPEEDSCOPE], cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm gives no {SPEEDSCOPE}")
    name = "package/dist/release/file-format-schema.json"
    subprocess.run(["tar", "xf", done.stdout.split()[-1], name], cwd=tmp_path, check=True)
    schema = json.loads((tmp_path / name).read_text())

    jsonschema.validate(json.loads(exported(recorded, "speedscope", tmp_path).read_text()), schema)


def test_of_tables_that_could_not_be_written_nothing_is_left(recorded, tmp_path, monkeypatch, capsys):  # noqa: F811
    pytest.importorskip("pyarrow.parquet")
    from interpose.exports import arrow_tables

    def full(analysis):
        raise OSError(errno.ENOSPC, "[Errno 28] Error writing bytes to file")
        yield

    monkeypatch.setattr(arrow_tables, "calls", full)

    assert main(["export", recorded, "--to", "parquet", "-o", str(tmp_path / "tables")]) == 1
    assert not (tmp_path / "tables").exists()
    assert capsys.readouterr().err == f"interpose: {tmp_path}/tables: No space left on device\n"


def test_tables_are_never_written_among_others(recorded, tmp_path, capsys):  # noqa: F811
    pytest.importorskip("pyarrow.parquet")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "mine").touch()

    assert main(["export", recorded, "--to", "parquet", "-o", str(tmp_path / "tables")]) == 1
    assert "already exists" in capsys.readouterr().err
    assert [each.name for each in (tmp_path / "tables").iterdir()] == ["mine"]


def test_parquet_has_all_calls_and_the_sums_of_the_report(recorded, tmp_path):  # noqa: F811
    parquet = pytest.importorskip("pyarrow.parquet")
    directory = exported(recorded, "parquet", tmp_path)

    calls = parquet.read_table(directory / "calls.parquet").to_pylist()
    found = events(recorded)
    assert len(calls) == len(found)
    for name in ("wall_ns", "cpu_ns", "bytes", "inner_wall_ns"):
        assert sum(each[name] for each in calls) == sum(getattr(each, name) for each in found)
    sites = {(each["file"].rpartition("/")[2], each["line"], each["function"]) for each in calls}
    assert ("app.py", 5, "load") in sites
    assert {each["thread_name"] for each in calls} >= {"MainThread", "Thread-1 (work)"}
    assert len({each["process"] for each in calls}) == 2
    report = parquet.read_table(directory / "report.parquet").to_pylist()
    assert sum(each["self_wall_ns"] for each in report) == total(recorded).wall_ns
    assert len(parquet.read_table(directory / "processes.parquet")) == 2


def asked(path, query, capsys, *words):
    capsys.readouterr()
    assert main(["sql", query, path, *words, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_sql_answers_what_the_report_says(recorded, capsys):  # noqa: F811
    pytest.importorskip("duckdb")
    found = events(recorded)

    (row,) = asked(recorded, "select count(*) as calls, sum(wall_ns - inner_wall_ns) as self from calls", capsys)
    assert row == {"calls": len(found), "self": sum(each.wall_ns - each.inner_wall_ns for each in found)}
    (slowest,) = asked(recorded, "select wall_ns from slowest limit 1", capsys)
    assert slowest["wall_ns"] == max(each.wall_ns for each in found)
    sites = asked(recorded, "select calls from sites where function = 'load' and intrinsic like '%execute'", capsys)
    assert [each["calls"] for each in sites] == [100]
    errors = asked(recorded, "select distinct error from errors where file like '%app.py'", capsys)
    assert [each["error"] for each in errors] == ["FileNotFoundError errno 2"]


def test_calls_of_the_start_are_told_apart_in_sql_as_in_the_report(recorded, capsys):  # noqa: F811
    pytest.importorskip("duckdb")
    assert main(["report", recorded, "--by", "kind", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)

    found = asked(recorded, "select if(startup, 'startup', kind) as kind, count(*) as n from calls group by 1", capsys)

    assert {each["kind"]: each["n"] for each in found} == {row["kind"]: row["calls"] for row in report if row["calls"]}
    assert "startup" in {each["kind"] for each in found}


def test_sql_over_several_experiments_says_from_which_a_row_is(recorded, tmp_path, capsys):  # noqa: F811
    pytest.importorskip("duckdb")
    other = hostile(tmp_path)

    rows = asked(recorded, "select experiment, count(*) as calls from calls group by 1 order by 1", capsys, other)

    assert rows == [{"experiment": "t.1.er", "calls": 1}, {"experiment": "test.1.er", "calls": len(events(recorded))}]


@pytest.mark.parametrize("query", ["selec 1", "select * from nothing", ""])
def test_a_question_that_is_none_is_answered_in_one_line(recorded, capsys, query):  # noqa: F811
    pytest.importorskip("duckdb")

    assert main(["sql", query, recorded]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("interpose: ")
