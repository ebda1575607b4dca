"""log.xml and map.xml: read as far as they are well-formed; what could be an attack is refused."""

import os

import pytest

from interpose.errors import ExperimentError
from interpose.experiments.format import elements
from interpose.experiments.metadata import log as log_module
from interpose.experiments.metadata.log import read_log
from interpose.experiments.metadata.map import Intrinsic, read_map
from interpose.experiments.model.files import Damages
from tests.build import OPEN_CALLS, Build, fields

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


SAMPLED = {"samples", "sampled_sites", "sampled_stacks", "sampled_strings", "sampled_memory", "sampled_counts"}


def test_a_whole_log_is_read(reading, tmp_path):
    build = Build(tmp_path, pid=812, cwd="/home/u", arguments=["app.py", "<&>", ""], call_ns=70, inside_ns=30)
    build.log_events.append('<event kind="exit" time_ns="456" signal="9"/>')

    log, damages = reading(build.log_xml())

    assert damages == []
    assert (log.version, log.pid, log.cwd, log.arguments) == (4, 812, "/home/u", ["app.py", "<&>", ""])
    assert (log.call_ns, log.inside_ns, log.resolution_ns) == (70, 30, 1)
    assert (log.events[0].kind, log.events[0].signal, log.events[0].status) == ("exit", 9, None)
    tables = {"events", "threads", "overview", "children", "sites", "stacks", "strings", "events.zst", "dialogue"}
    assert set(log.data) == tables | {"covered", "places", "branches", "trace_contexts"} | SAMPLED
    assert list(log.data["events"].layout.fields) == [name for name, _ in fields("EVENT")]
    assert log.data["threads"].inner_records == OPEN_CALLS


@pytest.mark.parametrize("text", ["", "not xml", HEAD, "<html/>", HEAD + '<experiment version="x"/>'])
def test_what_is_not_an_experiments_log_is_refused(reading, text):
    with pytest.raises(ExperimentError, match=r"t\.1\.er/log\.xml: not the log of an experiment"):
        reading(text)


def test_a_later_version_is_refused_by_name(reading):
    with pytest.raises(ExperimentError, match=r"t\.1\.er/log\.xml: format 5; this version reads up to 4"):
        reading(HEAD + '<experiment version="5"/>')


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


def around_descriptions(before, after):
    """What changes a log where its descriptions of records begin and end."""

    def changed(text):
        begin, end = text.index("<head>"), text.rindex("</data>") + len("</data>")
        return f"{text[:begin]}{before}{text[begin:end]}{after}{text[end:]}"

    return changed


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text,
        lambda text: text.replace("<head>", "<!-- <head>").replace("</head>", "</head> -->"),
        lambda text: text.replace('type="u64"', 'type="u16"'),
        lambda text: text.replace('offset="8"', 'offset="x"', 1),
        lambda text: text.replace("</data>", '</data><setting name="INTERPOSE_DIR" value="/there"/>', 1),
        lambda text: text.replace("<head>", '<block bytes="64"><field name="a" type="u64" offset="0"/></block><head>'),
        lambda text: text.replace("<experiment", "<trial").replace("</experiment", "</trial"),
        around_descriptions("<!--", "-->"),
        around_descriptions("<![CDATA[", "]]>"),
        around_descriptions("<?no", "?>"),
        around_descriptions("<argument>", "</argument>"),
        around_descriptions("<argument>a<b>", "</b></argument>"),
        around_descriptions('<data name="more" record_bytes="8" head_bytes="64" block_bytes="65536">', "</data>"),
        around_descriptions("<a>" * 14, "</a>" * 14),
        around_descriptions("<a b='", "'/>"),
        around_descriptions("<known/>", ""),
        around_descriptions("<known/><!--", "-->"),
        around_descriptions("</experiment><experiment>", ""),
        around_descriptions("<head/>", "</data>"),
    ],
)
def test_known_descriptions_of_records_are_read_as_unknown_ones(reading, tmp_path, monkeypatch, changed):
    text = changed(Build(tmp_path, arguments=["app.py"]).log_xml())

    def told():
        try:
            return reading(text)
        except ExperimentError as error:
            return str(error)

    known = told()
    monkeypatch.setattr(log_module, "_with_known_descriptions", lambda data: None)

    assert known == told()


def test_what_all_runs_describe_alike_is_read_once(reading, tmp_path, monkeypatch):
    reading(Build(tmp_path).log_xml())
    monkeypatch.delitem(log_module._ELEMENTS, "field")  # so that no field is read any more

    log, damages = reading(Build(tmp_path, pid=7).log_xml())

    assert (log.pid, damages) == (7, [])
    assert list(log.data["events"].layout.fields) == [name for name, _ in fields("EVENT")]


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
        ('record_bytes="88"', 'record_bytes="0x50"'),
        ('record_bytes="88"', 'record_bytes="-88"'),
        ('record_bytes="88"', f'record_bytes="{10**30}"'),
        ('record_bytes="88"', 'record_bytes="40"'),
        ('name="wall_ns" type="u64" offset="16"', 'name="wall_ns" type="u64" offset="1"'),
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


def test_an_intrinsic_of_several_kinds_has_a_number_for_each(mapping):
    found, damages = mapping(
        '<map><intrinsic number="3" name="os.write" kind="file" kinds="file screen net"/>'
        '<intrinsic number="6" name="b" kind="db"/></map>'
    )

    assert found == {
        3: Intrinsic("os.write", "file"),
        4: Intrinsic("os.write", "screen"),
        5: Intrinsic("os.write", "net"),
        6: Intrinsic("b", "db"),
    }
    assert damages == []


def test_an_intrinsic_that_is_named_again_replaces_all_its_numbers(mapping):
    found, damages = mapping(
        '<map><intrinsic number="1" name="a" kind="file" kinds="file net idle"/>'
        '<intrinsic number="1" name="b" kind="db" kinds="db idle"/></map>'
    )

    assert found == {1: Intrinsic("b", "db"), 2: Intrinsic("b", "idle")}
    assert damages == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('number="1" name="a" kind="file" kinds="file net"', 'number="2" name="b" kind="db"'),
        ('number="2" name="b" kind="db"', 'number="1" name="a" kind="file" kinds="file net"'),
    ],
)
def test_of_two_intrinsics_with_the_same_number_the_first_has_it(mapping, first, second):
    found, damages = mapping(f"<map><intrinsic {first}/><intrinsic {second}/></map>")

    assert found[1] == Intrinsic("a", "file")
    assert found[2] == (Intrinsic("a", "net") if first.startswith('number="1"') else Intrinsic("b", "db"))
    assert damages == ["t.1.er/map.xml: number 2 is of two intrinsics"]


@pytest.mark.parametrize(
    "kinds",
    ["", " ", "file  net", "file,net", "file NET", "file&#9;net", "file n\u00e9t", "net file", "file " * 9, "file" * 9],
)
def test_kinds_that_are_no_list_of_kinds_are_noted(mapping, kinds):
    found, damages = mapping(f'<map><intrinsic number="1" name="a" kind="file" kinds="{kinds}"/></map>')

    assert found == {1: Intrinsic("a", "file")}
    assert damages == ["t.1.er/map.xml: the kinds of intrinsic 1 are not a list of kinds"]


def test_eight_kinds_are_the_most(mapping):
    kinds = "file screen net process sync sleep db idle"

    found, damages = mapping(f'<map><intrinsic number="1" name="a" kind="file" kinds="{kinds}"/></map>')

    assert [found[number].kind for number in range(1, 9)] == kinds.split()
    assert damages == []


@pytest.mark.parametrize(
    ("number", "kinds"), [(2**32, "file"), (2**32 - 1, "file net"), (-1, "file net"), (10**19, "file")]
)
def test_numbers_that_no_event_can_have_are_noted(mapping, number, kinds):
    found, damages = mapping(f'<map><intrinsic number="{number}" name="a" kind="file" kinds="{kinds}"/></map>')

    assert found == {}
    assert damages == [f"t.1.er/map.xml: no intrinsic can have the number {number}"]


def test_a_map_cut_short_is_read_as_far_as_it_goes(mapping):
    found, damages = mapping('<map><intrinsic number="1" name="a" kind="db"/><intrinsic number="2" na')

    assert found == {1: Intrinsic("a", "db")}
    assert damages[0].startswith("t.1.er/map.xml: line 1: ")
