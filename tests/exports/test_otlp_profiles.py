"""Profiles of OpenTelemetry, read by the package opentelemetry-proto: they have the sums of the report."""

from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from tests.exports.test_exports import NASTY, events, exported, hostile, recorded, total  # noqa: F401

pytestmark = pytest.mark.packages
unknown_fields = pytest.importorskip("google.protobuf.unknown_fields")
messages = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")


def read(path, tmp_path):
    """The message, its dictionary, and its profiles by what they are of."""
    found = messages.ProfilesData.FromString(exported(path, "otlp-profiles", tmp_path).read_bytes())
    assert not len(unknown_fields.UnknownFieldSet(found))
    assert not any(len(unknown_fields.UnknownFieldSet(each)) for each in found.dictionary.location_table)
    [of_resource] = found.resource_profiles
    [of_scope] = of_resource.scope_profiles
    strings = found.dictionary.string_table
    return found, {strings[each.sample_type.type_strindex]: each for each in of_scope.profiles}


def names(dictionary, sample):
    """The names of a sample's functions from the innermost outward."""
    places = dictionary.stack_table[sample.stack_index].location_indices
    locations = [dictionary.location_table[place] for place in places]
    functions = [dictionary.function_table[line.function_index] for location in locations for line in location.lines]
    return [dictionary.string_table[function.name_strindex] for function in functions]


def test_each_profile_has_the_sums_of_the_report(recorded, tmp_path):  # noqa: F811
    found, profiles = read(recorded, tmp_path)
    rows = profile(Analysis(Experiment(recorded)), "intrinsic").rows

    sums = {name: sum(sum(sample.values) for sample in each.samples) for name, each in profiles.items()}
    assert list(profiles) == ["wall", "cpu", "wait", "calls", "bytes"]
    assert (sums["wall"], sums["cpu"]) == (total(recorded).wall_ns, total(recorded).cpu_ns)
    assert (sums["calls"], sums["bytes"]) == (len(events(recorded)), sum(row.sums.bytes for row in rows))
    units = [found.dictionary.string_table[each.sample_type.unit_strindex] for each in profiles.values()]
    assert units == ["nanoseconds", "nanoseconds", "nanoseconds", "count", "bytes"]


def test_each_intrinsic_has_its_time_its_callers_and_its_kind(recorded, tmp_path):  # noqa: F811
    found, profiles = read(recorded, tmp_path)
    dictionary = found.dictionary
    wall, kinds = Counter(), {}

    for sample in profiles["wall"].samples:
        leaf = names(dictionary, sample)[0]
        wall[leaf] += sum(sample.values)
        for place in sample.attribute_indices:
            attribute = dictionary.attribute_table[place]
            assert dictionary.string_table[attribute.key_strindex] == "interpose.kind"
            kinds.setdefault(leaf, set()).add(attribute.value.string_value)

    of_rows = Counter()
    for row in profile(Analysis(Experiment(recorded)), "intrinsic").rows:
        if row.intrinsic:
            of_rows[row.intrinsic] += row.sums.self_wall_ns
            assert row.kind in kinds[row.intrinsic]
    assert {name: wall[name] for name in of_rows} == of_rows
    stacks = [names(dictionary, sample) for sample in profiles["wall"].samples]
    assert any(each[:2] == ["sqlite3.Connection.execute", "load"] for each in stacks)


def test_the_first_entry_of_each_table_is_empty_and_all_that_is_pointed_to_is_there(recorded, tmp_path):  # noqa: F811
    found, profiles = read(recorded, tmp_path)
    tables = found.dictionary

    for name in ("mapping", "location", "function", "link", "attribute", "stack"):
        assert getattr(tables, f"{name}_table")[0].ByteSize() == 0
    assert tables.string_table[0] == ""
    places = [place for each in tables.stack_table[1:] for place in each.location_indices]
    assert all(0 < place < len(tables.location_table) for place in places)
    assert all(0 < each.name_strindex < len(tables.string_table) for each in tables.function_table[1:])
    samples = [sample for each in profiles.values() for sample in each.samples]
    assert all(0 < sample.stack_index < len(tables.stack_table) for sample in samples)
    assert len(set(tables.string_table)) == len(tables.string_table)


def test_time_resource_and_identity(recorded, tmp_path):  # noqa: F811
    found, profiles = read(recorded, tmp_path)
    log = Experiment(recorded).founder.log
    told = {each.key: each.value for each in found.resource_profiles[0].resource.attributes}

    assert told["process.pid"].int_value == log.pid
    assert told["service.name"].string_value.endswith("app.py")
    assert {each.time_unix_nano for each in profiles.values()} == {log.time_ns}
    assert all(each.duration_nano > 0 for each in profiles.values())
    assert {len(each.profile_id) for each in profiles.values()} == {16}
    assert len({each.profile_id for each in profiles.values()}) == 5


def test_names_are_data(tmp_path):
    found, _ = read(hostile(tmp_path), tmp_path)

    assert any(NASTY in each for each in found.dictionary.string_table)


def test_bytes_are_not_sent_to_a_terminal(recorded, monkeypatch, capsys):  # noqa: F811
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    assert main(["export", recorded, "--to", "otlp-profiles"]) == 2
    assert "-o FILE" in capsys.readouterr().err
