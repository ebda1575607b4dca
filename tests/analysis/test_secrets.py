"""What an experiment reveals: counted, masked, and nothing of it shown."""

from __future__ import annotations

import json

import pytest

from interpose.analysis.recording.secrets import Revealed, masked, revealed, signs_of
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.secrets import LEFT_OUT_BY
from tests.build import Build, event


@pytest.fixture
def build(tmp_path) -> Build:
    """An experiment that reveals something of most sorts."""
    build = Build(tmp_path / "t.1.er", arguments=["orders.py", "--mail", "ann@example.org"], host="vault7")
    db, file = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.stat", "file")
    stack = build.stack(build.site("/home/u/shop/orders.py", 3, "main"))
    statement = build.string("update users set password = 'hunter22'")
    rows = [
        event(0, 10, intrinsic=db, stack=stack, detail=statement, call=1),
        event(20, 10, intrinsic=file, stack=stack, detail=build.string("/srv/data/1.csv"), call=2),
        event(40, 10, intrinsic=file, stack=stack, detail=build.string("/srv/data/2.csv"), call=3),
        event(60, 10, intrinsic=file, stack=stack, detail=build.string("/srv/data/2.csv"), call=4),
    ]
    build.events(rows)
    build.thread(recorded=4, made=4)
    build.piece(1, b"card 4111 1111 1111 1111\n")
    build.piece(2, b"4111 1111 1111 1112\n")
    build.ended(1000, 10)
    return build


def by_sort(build: Build) -> dict[str, Revealed]:
    return {each.what: each for each in revealed(Experiment(str(build.write())))}


def test_texts_are_counted_once_each_by_what_they_are(build):
    found = by_sort(build)

    assert found["statements"].texts == 1
    assert found["paths"].texts == 2
    assert found["command line"].texts == 3
    assert found["files of code"].texts == 1
    assert (found["shown"].texts, found["typed"].texts) == (1, 1)
    assert found["environment"].texts == found["addresses"].texts == 0


def test_labels_and_settings_are_told_of(traced):
    ran = traced("import interpose; interpose.sample('token=hunter2')\n", INTERPOSE_LINES="hunter:*")

    found = {each.what: each for each in revealed(ran.experiment)}

    assert found["labels, warnings"].signs == {"password": 1}
    assert found["settings"].texts > 1


def test_what_looks_like_a_secret_is_counted_by_what_it_looks_like(build):
    found = by_sort(build)

    assert found["statements"].signs == {"password": 1}
    assert found["command line"].signs == {"e-mail": 1}
    assert found["files of code"].signs == {"home": 1}
    assert found["shown"].signs == {"card": 1}
    assert not found["typed"].signs  # its check digit is wrong
    assert not found["paths"].signs


def test_the_example_is_one_that_looks_like_a_secret_and_is_masked(build):
    found = by_sort(build)

    assert found["command line"].example == "a***@e***.o***"
    assert found["statements"].example == "u*** u*** s*** p*** = 'h***'"


def test_every_sort_says_what_leaves_it_out(build):
    assert set(by_sort(build)) == set(LEFT_OUT_BY)


def test_the_report_shows_no_secret(build, capsys):
    path = build.write()

    assert main(["report", str(path), "--by", "secrets"]) == 0
    assert main(["report", str(path), "--by", "secrets", "--format", "json"]) == 0

    told = capsys.readouterr().out
    assert not [secret for secret in ("hunter22", "ann@", "4111", "vault7", "/home/u") if secret in told]
    rows = {row["what"]: row for row in json.loads(told[told.index("\n[\n") :])}
    assert (rows["paths"]["texts"], rows["paths"]["left_out_by"]) == (2, "INTERPOSE_ARGUMENTS=file=nothing")


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("PASSWORD=hunter2", ["password"]),
        ('"api_key": "abcdef"', ["password"]),
        ("password = ?", []),
        ("values (?, ?)", []),
        ("AKIAABCDEFGHIJKLMNOP", ["key"]),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.x", ["key"]),
        ("-----BEGIN RSA PRIVATE KEY-----", ["key"]),
        ("mail to ann.b+c@mail.example.org", ["e-mail"]),
        ("user@host", []),
        ("5500-0000-0000-0004", ["card"]),
        ("1234567890123", []),
        ("/home/u/x", ["home"]),
        ("/srv/home", []),
    ],
)
def test_signs(text, signs):
    assert signs_of(text) == signs


@pytest.mark.parametrize("text", ["a" * 16_000, "1 " * 8_000, "eyJ" * 5_000, "password" * 2_000, "@" * 16_000])
def test_long_texts_that_anybody_may_have_written_have_no_signs(text):
    assert signs_of(text) == []


def test_masked_texts_do_not_tell_how_long_their_words_are():
    assert masked("hunter2") == masked("hunter22222") == "h***"
    assert len(masked("x" * 1000)) < 70


@pytest.mark.parametrize("words", [["--sort", "calls"], ["--label", "x"]])
def test_options_that_mean_nothing_here_are_told(build, capsys, words):
    assert main(["report", str(build.write()), "--by", "secrets", *words]) == 2
    assert "--by secrets covers the whole experiment: it excludes --label and --sort" in capsys.readouterr().err
