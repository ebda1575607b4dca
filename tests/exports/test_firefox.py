"""Files for profiler.firefox.com: they keep to the types of its documents, and have the figures of the report.

Nobody publishes a reader of the processed profile format, so the schema is derived from the profiler's type definitions
(src/types/profile.ts) and its list of changes (docs-developer/CHANGELOG-formats.md) as of version 57, and names are
looked up as its guide for importers does it (docs-developer/custom-importer.md).
"""

import json
from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.experiments.model.experiment import Experiment
from interpose.kinds import EVERY
from tests.build import Build
from tests.exports.test_exports import NASTY, events, exported, hostile, recorded, total  # noqa: F401

INDEX = {"type": "integer", "minimum": 0}
COLOURS = ("transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red",
           "lightred", "darkgrey", "grey")  # fmt: skip


def column(**of):
    return {"type": "array", "items": of}


def table(**columns):
    found = {"length": INDEX, **columns}
    return {"type": "object", "properties": found, "required": list(found), "additionalProperties": False}


def or_null(schema):
    return {"anyOf": [schema, {"type": "null"}]}


THREAD = {
    "processType": {"type": "string"},
    "processName": {"type": "string"},
    "processStartupTime": {"type": "number"},
    "processShutdownTime": or_null({"type": "number"}),
    "registerTime": {"type": "number"},
    "unregisterTime": or_null({"type": "number"}),
    "pausedRanges": column(),
    "name": {"type": "string"},
    "isMainThread": {"type": "boolean"},
    "pid": {"type": "string"},
    "tid": {"type": ["integer", "string"]},
    "samples": table(
        stack=column(**INDEX),
        time=column(type="number"),
        weight=column(type="number"),
        weightType={"enum": ["samples", "tracing-ms", "bytes"]},
    ),
    "stackTable": table(frame=column(**INDEX), prefix=column(**or_null(INDEX))),
    "frameTable": table(
        address=column(const=-1),
        inlineDepth=column(**INDEX),
        category=column(**or_null(INDEX)),
        subcategory=column(**or_null(INDEX)),
        func=column(**INDEX),
        nativeSymbol=column(**or_null(INDEX)),
        innerWindowID=column(**or_null(INDEX)),
        line=column(**or_null(INDEX)),
        column=column(**or_null(INDEX)),
    ),
    "funcTable": table(
        name=column(**INDEX),
        isJS=column(type="boolean"),
        relevantForJS=column(type="boolean"),
        resource=column(type="integer", minimum=-1),
        fileName=column(**or_null(INDEX)),
        lineNumber=column(**or_null(INDEX)),
        columnNumber=column(**or_null(INDEX)),
    ),
    "resourceTable": table(**{name: column() for name in ("lib", "name", "host", "type")}),
    "nativeSymbols": table(**{name: column() for name in ("libIndex", "address", "name", "functionSize")}),
    "markers": table(**{name: column() for name in ("data", "name", "startTime", "endTime", "phase", "category")}),
}
CATEGORY = {
    "name": {"type": "string"},
    "color": {"enum": COLOURS},
    "subcategories": {"type": "array", "items": {"type": "string"}, "minItems": 1, "prefixItems": [{"const": "Other"}]},
}
META = {
    "version": INDEX,
    "preprocessedProfileVersion": {"const": 57},
    "interval": {"type": "number"},
    "startTime": {"type": "number"},
    "processType": INDEX,
    "product": {"type": "string"},
    "stackwalk": {"enum": [0, 1]},
    "categories": column(type="object", properties=CATEGORY, required=list(CATEGORY)),
    "markerSchema": column(),
}
SCHEMA = {
    "type": "object",
    "properties": {
        "meta": {"type": "object", "properties": META, "required": list(META)},
        "libs": column(),
        "shared": {"type": "object", "properties": {"stringArray": column(type="string")}, "required": ["stringArray"]},
        "threads": column(type="object", properties=THREAD, required=list(THREAD), additionalProperties=False),
    },
    "required": ["meta", "libs", "shared", "threads"],
}


def made(path, tmp_path):
    return json.loads(exported(path, "firefox", tmp_path).read_text())


def thread_of(profile_, name):
    return next(each for each in profile_["threads"] if each["name"] == name)


def names(profile_, thread, stack):
    """The names of a stack's functions from the outermost inward."""
    found = []
    while stack is not None:
        function = thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]
        found.insert(0, profile_["shared"]["stringArray"][thread["funcTable"]["name"][function]])
        stack = thread["stackTable"]["prefix"][stack]
    return found


def sum_ns(thread):
    return sum(round(weight * 1e6) for weight in thread["samples"]["weight"])


@pytest.mark.packages
def test_it_keeps_to_the_types_of_the_format(recorded, tmp_path):  # noqa: F811
    jsonschema = pytest.importorskip("jsonschema")
    found = made(recorded, tmp_path)

    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert [each["color"] for each in found["meta"]["categories"]].count("grey") == 1
    assert found["meta"]["categories"][0]["color"] == "grey"


def test_columns_of_a_table_are_of_one_length_and_point_to_what_is_there(recorded, tmp_path):  # noqa: F811
    found = made(recorded, tmp_path)

    for thread in found["threads"]:
        tables = {name: each for name, each in thread.items() if isinstance(each, dict)}
        for table in tables.values():
            assert {len(each) for each in table.values() if isinstance(each, list)} == {table["length"]}
        sizes = {"stack": "stackTable", "frame": "frameTable", "func": "funcTable"}
        targets = {"stack": thread["samples"], "frame": thread["stackTable"], "func": thread["frameTable"]}
        for name, table in sizes.items():
            assert max(targets[name][name]) < thread[table]["length"]
        assert all(prefix is None or prefix < place for place, prefix in enumerate(thread["stackTable"]["prefix"]))
        assert max(thread["funcTable"]["name"]) < len(found["shared"]["stringArray"])
        assert max(thread["frameTable"]["category"]) < len(found["meta"]["categories"])
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])


@pytest.mark.long
def test_each_thread_adds_up_to_the_report(recorded, tmp_path):  # noqa: F811
    found = made(recorded, tmp_path)
    rows = profile(Analysis(Experiment(recorded)), "intrinsic").rows

    assert sum_ns(thread_of(found, "wall")) == total(recorded).wall_ns
    assert sum_ns(thread_of(found, "cpu")) == total(recorded).cpu_ns
    assert sum(thread_of(found, "calls")["samples"]["weight"]) == len(events(recorded))
    assert sum(thread_of(found, "bytes")["samples"]["weight"]) == sum(row.sums.bytes for row in rows)


def test_each_intrinsic_has_its_time_calls_and_kind(recorded, tmp_path):  # noqa: F811
    found = made(recorded, tmp_path)
    rows = [row for row in profile(Analysis(Experiment(recorded)), "intrinsic").rows if row.intrinsic]
    wall, calls, kinds = Counter(), Counter(), {}

    for into, name, scale in ((wall, "wall", 1e6), (calls, "calls", 1)):
        thread = thread_of(found, name)
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
            leaf = names(found, thread, stack)[-1]
            into[leaf] += round(weight * scale)
            category = thread["frameTable"]["category"][thread["stackTable"]["frame"][stack]]
            kinds.setdefault(leaf, set()).add(found["meta"]["categories"][category]["name"])

    of_rows = Counter()
    for row in rows:
        of_rows[row.intrinsic] += row.sums.self_wall_ns
        assert row.kind in kinds[row.intrinsic] and kinds[row.intrinsic] <= set(EVERY)
    assert {name: wall[name] for name in of_rows} == of_rows
    assert calls["sqlite3.Connection.execute"] == 100


def test_stacks_are_those_of_the_program(recorded, tmp_path):  # noqa: F811
    found = made(recorded, tmp_path)
    thread = thread_of(found, "wall")

    told = [names(found, thread, stack) for stack in thread["samples"]["stack"]]
    assert any(each[-2:] == ["load", "sqlite3.Connection.execute"] for each in told)
    loads = [place for place, function in enumerate(thread["funcTable"]["name"])
             if found["shared"]["stringArray"][function] == "load"]  # fmt: skip
    files = {found["shared"]["stringArray"][thread["funcTable"]["fileName"][place]] for place in loads}
    lines = {line for line, function in zip(thread["frameTable"]["line"], thread["frameTable"]["func"], strict=True)
             if function in loads}  # fmt: skip
    assert len(files) == 1 and files.pop().endswith("app.py")
    assert lines == {5}


def test_names_are_data(tmp_path):
    text = exported(hostile(tmp_path), "firefox", tmp_path).read_text()

    assert "\x1b" not in text and NASTY not in text
    assert any("</script>" in each for each in json.loads(text)["shared"]["stringArray"])


def test_an_experiment_without_any_call_is_a_profile_too(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(tid=1)

    found = made(str(build.write()), tmp_path)

    assert [each["name"] for each in found["threads"]] == ["wall", "cpu", "wait", "calls", "bytes"]
