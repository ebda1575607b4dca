"""Damaged experiments are exported as far as they go, or refused in a line: nothing else comes of them."""

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.cli.main import main
from interpose.exports.formats import FORMATS
from tests.experiments.test_hostile import FILES, small
from tests.hostile import read_all_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return small(tmp_path_factory.mktemp("whole") / "t.1.er").write()


@pytest.mark.long
@given(data=st.data())
def test_whatever_byte_is_wrong_every_format_is_written_or_refused(whole, tmp_path_factory, data):
    name = data.draw(st.sampled_from([each for each in FILES if (whole / each).stat().st_size]))
    there = (whole / name).stat().st_size
    place = data.draw(st.integers(0, min(there, 4096) - 1))
    length = data.draw(st.sampled_from((1, 4, 8)))
    wrong = data.draw(st.binary(min_size=length, max_size=length))
    directory = tmp_path_factory.mktemp("damaged")
    path = directory / "t.1.er"
    shutil.copytree(whole, path)
    with open(path / name, "r+b") as file:
        file.seek(place)
        file.write(wrong)
        if data.draw(st.booleans()):
            os.truncate(file.fileno(), place + 1)
    read_all_of(str(path))
    shutil.rmtree(directory)


@pytest.mark.parametrize("format_name", FORMATS)
def test_missing_calls_end_every_export_with_the_line_of_a_report(place, format_name, capsys):
    if format_name == "parquet":
        pytest.importorskip("pyarrow")
    path = small(place / "t.1.er", whole_files=True).write()
    os.truncate(path / "events", 0)

    reported = main(["report", str(path)]), capsys.readouterr().err
    exported = main(["export", "--to", format_name, "-o", str(place / "out"), str(path)]), capsys.readouterr().err

    assert reported == exported == (3, "interpose: t.1.er/events: 3 of 3 recorded calls are not there\n")


@pytest.mark.parametrize("chosen", [[], ["--last", "1"], ["--format", "csv"], ["--filter", "WALL > 0"]])
def test_missing_calls_end_a_list_of_calls_with_the_same_line(place, chosen, capsys):
    path = small(place / "t.1.er", whole_files=True).write()
    os.truncate(path / "events", 0)

    listed = main(["events", *chosen, str(path)]), capsys.readouterr().err

    assert listed == (3, "interpose: t.1.er/events: 3 of 3 recorded calls are not there\n")
