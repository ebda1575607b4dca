"""The end of a killed process, written into its log by who waited for it."""

from pathlib import Path
from xml.etree import ElementTree

from interpose.experiments.metadata import endings, names

LOG = """<?xml version="1.0" encoding="utf-8"?>
<experiment version="1">
  <process ppid="1" pid="812" start_ns="5"/>
</experiment>
"""


def write_log(tmp_path: Path, text: str = LOG) -> Path:
    path = tmp_path / names.LOG
    path.write_text(text)
    return path


def events(path: Path) -> list[dict[str, str]]:
    return [event.attrib for event in ElementTree.parse(path).iter("event")]


def test_a_signal_is_noted_and_the_log_stays_well_formed(tmp_path):
    path = write_log(tmp_path)

    assert endings.complete(str(tmp_path), 812, -9, 77)

    assert events(path) == [{"kind": "exit", "time_ns": "77", "signal": "9"}]


def test_an_exit_code_is_noted_where_the_process_said_nothing(tmp_path):
    path = write_log(tmp_path)

    assert endings.complete(str(tmp_path), 812, 3, 77)

    assert events(path) == [{"kind": "exit", "time_ns": "77", "status": "3"}]


def test_what_the_process_wrote_itself_stays(tmp_path):
    path = write_log(tmp_path)
    endings.complete(str(tmp_path), 812, 0, 77)

    assert not endings.complete(str(tmp_path), 812, -15, 78)

    assert len(events(path)) == 1


def test_the_end_of_another_process_is_not_noted(tmp_path):
    path = write_log(tmp_path)

    assert not endings.complete(str(tmp_path), 81, -9, 77)
    assert not endings.complete(str(tmp_path), 1, -9, 77)

    assert path.read_text() == LOG


def test_a_log_without_its_closing_tag_is_left_alone(tmp_path):
    cut = LOG.partition("</experiment>")[0]
    path = write_log(tmp_path, cut)

    assert not endings.complete(str(tmp_path), 812, -9, 77)

    assert path.read_text() == cut


def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_text(LOG)
    (tmp_path / names.LOG).symlink_to(target)

    assert not endings.complete(str(tmp_path), 812, -9, 77)

    assert target.read_text() == LOG


def test_where_there_is_no_log_nothing_happens(tmp_path):
    assert not endings.complete(str(tmp_path), 812, -9, 77)
    assert list(tmp_path.iterdir()) == []
