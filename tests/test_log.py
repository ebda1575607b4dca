"""log.xml and map.xml: read as far as they are well-formed; what could be an attack is refused."""

import os

import pytest

from interpose.errors import ExperimentError
from interpose.experiments import elements
from interpose.experiments.files import Damages
from interpose.experiments.log import Intrinsic, read_log, read_map
from tests.build import Build, fields

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


@pytest.fixture
def reading(tmp_path):
    """Reads a text as log.xml; gives the log and the damage found."""

    def read(text):
        path = tmp_path / "log.xml"
        path.write_text(text)
        damages = Damages()
        return read_log(str(path), "t.1.er/log.xml", damages), [str(each) for each in damages.found]

    return read


@pytest.fixture
def mapping(tmp_path):
    def read(text):
        path = tmp_path / "map.xml"
        path.write_text(text)
        damages = Damages()
        return read_map(str(path), "t.1.er/map.xml", damages), [str(each) for each in damages.found]

    return read


def test_a_whole_log_is_read(reading, tmp_path):
    build = Build(tmp_path, pid=812, cwd="/home/u", arguments=["app.py", "<&>", ""], call_ns=70, inside_ns=30)
    build.log_events.append('<event kind="exit" time_ns="456" signal="9"/>')

    log, damages = reading(build.log_xml())

    assert damages == []
    assert (log.version, log.pid, log.cwd, log.arguments) == (1, 812, "/home/u", ["app.py", "<&>", ""])
    assert (log.call_ns, log.inside_ns, log.resolution_ns) == (70, 30, 1)
    assert (log.events[0].kind, log.events[0].signal, log.events[0].status) == ("exit", 9, None)
    assert set(log.data) == {"events", "threads", "overview", "sites", "stacks", "strings"}
    assert list(log.data["events"].layout.fields) == [name for name, _ in fields("EVENT")]
    assert log.data["threads"].inner_records == 40


@pytest.mark.parametrize("text", ["", "not xml", HEAD, "<html/>", HEAD + '<experiment version="x"/>'])
def test_what_is_not_an_experiments_log_is_refused(reading, text):
    with pytest.raises(ExperimentError, match=r"t\.1\.er/log\.xml: not an experiment's"):
        reading(text)


def test_a_later_version_is_refused_by_name(reading):
    with pytest.raises(ExperimentError, match=r"t\.1\.er/log\.xml: format 2; this version reads up to 1"):
        reading(HEAD + '<experiment version="2"/>')


def test_a_document_type_declaration_is_refused(reading):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'

    with pytest.raises(ExperimentError, match="document type declaration"):
        reading(HEAD + bomb + '<experiment version="1">&b;</experiment>')


def test_elements_nested_without_end_are_refused(reading):
    with pytest.raises(ExperimentError, match="more than 16 deep"):
        reading(HEAD + '<experiment version="1">' + "<a>" * 1000)


def test_a_log_that_never_ends_is_read_up_to_a_limit(reading, monkeypatch):
    monkeypatch.setattr(elements, "LARGEST_XML_BYTES", 1000)

    log, damages = reading(HEAD + '<experiment version="1">' + " " * 2000)

    assert log.version == 1
    assert "the rest was not read" in damages[0]


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "log.xml")

    with pytest.raises(ExperimentError, match="not a plain file"):
        read_log(str(tmp_path / "log.xml"), "t.1.er/log.xml", Damages())


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "log.xml").symlink_to("/etc/passwd")

    with pytest.raises(ExperimentError, match=r"t\.1\.er/log\.xml: "):
        read_log(str(tmp_path / "log.xml"), "t.1.er/log.xml", Damages())


def test_a_description_that_was_cut_off_does_not_count(reading, tmp_path):
    whole = Build(tmp_path).log_xml()
    cut = whole[: whole.index('name="used"')]

    log, damages = reading(cut)

    assert "events" not in log.data
    assert log.head is not None
    assert len(damages) == 1


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [
        ('record_bytes="80"', 'record_bytes="0x50"'),
        ('record_bytes="80"', 'record_bytes="-80"'),
        ('record_bytes="80"', f'record_bytes="{10**30}"'),
        ('record_bytes="80"', 'record_bytes="40"'),
        ('name="wall_ns" type="u64" offset="8"', 'name="wall_ns" type="u64" offset="1"'),
    ],
)
def test_numbers_out_of_range_are_noted(reading, tmp_path, whole, damaged):
    log, damages = reading(Build(tmp_path).log_xml().replace(whole, damaged, 1))

    assert damages
    assert "events" not in log.data or log.data["events"].layout is None


def test_a_field_of_an_unknown_type_is_passed_over(reading, tmp_path):
    text = Build(tmp_path).log_xml().replace('name="bytes" type="u64"', 'name="bytes" type="f64"')

    log, damages = reading(text)

    assert damages == []
    assert "bytes" not in log.data["events"].layout.fields


def test_a_later_intrinsic_replaces_an_earlier_one_of_its_number(mapping):
    found, damages = mapping(
        '<map><intrinsic number="1" name="a" kind="db"/><intrinsic number="1" name="b" kind="file"/></map>'
    )

    assert found == {1: Intrinsic("b", "file")}
    assert damages == []


def test_a_map_cut_short_is_read_as_far_as_it_goes(mapping):
    found, damages = mapping('<map><intrinsic number="1" name="a" kind="db"/><intrinsic number="2" na')

    assert found == {1: Intrinsic("a", "db")}
    assert damages[0].startswith("t.1.er/map.xml: line 1: ")
