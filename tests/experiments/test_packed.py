"""An experiment as one file: packed and read by every command; hostile ones refused or read in part, in bounds."""

import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
import zstandard

from interpose.cli.main import main
from interpose.errors import ExperimentError
from interpose.experiments.maintenance import packed
from interpose.experiments.maintenance.packed import pack, unpack
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages
from interpose.reports.formats import units
from tests.build import Build, event
from tests.experiments.test_hostile import small


@pytest.fixture(autouse=True)
def temporary(place, monkeypatch):
    """A place of its own for temporary directories."""
    (place / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(place / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)


def family(directory):
    founder = small(directory).write()
    build = Build(directory / "_c1.er", parent="")
    build.intrinsic("os.write", "file")
    build.events([event(0, 10)])
    build.thread(recorded=1, main=1)
    build.write()
    (founder / "notes").write_text("kept\n")
    return founder


def hostile(*members, data=b"x"):
    """A packed file of members given as (name, type, size) or TarInfo."""
    out = io.BytesIO()
    for name, kind, more in members:
        info = tarfile.TarInfo(name)
        info.type = kind
        for key, value in more.items():
            setattr(info, key, value)
        body = data if kind == tarfile.REGTYPE else b""
        info.size = more.get("size", len(body))
        out.write(info.tobuf(tarfile.USTAR_FORMAT))
        out.write(body + bytes(-len(body) % 512))
    out.write(bytes(1024))
    return zstandard.compress(out.getvalue())


def unpacked(tmp_path, data):
    (tmp_path / "x.er.tar.zst").write_bytes(data)
    (tmp_path / "into").mkdir()
    damages = Damages()
    try:
        unpack(str(tmp_path / "x.er.tar.zst"), str(tmp_path / "into"), damages)
    except ExperimentError as error:
        return str(error), damages
    return "", damages


def all_below(path):
    return sorted(str(each.relative_to(path)) for each in path.rglob("*"))


@pytest.mark.parametrize("command", [["report"], ["report", "--by", "process"], ["events"], ["notes"]])
def test_every_reading_command_opens_a_packed_experiment_and_leaves_nothing(tmp_path, command, capsys):
    family(tmp_path / "test.1.er")
    main([*command, "test.1.er"])
    as_directory = capsys.readouterr().out

    assert main(["archive", "-o", "sent.er.tar.zst", "test.1.er"]) == 0
    os.rename("test.1.er", "gone")
    code = main([*command, "sent.er.tar.zst"])

    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert out == as_directory
    assert os.listdir(tmp_path / "tmp") == []


def test_files_come_out_as_they_went_in(tmp_path):
    founder = family(tmp_path / "test.1.er")
    (founder / "archives").mkdir()
    (founder / "archives" / "index.jsonl").write_text("")
    (founder / "archives" / ("a.py_" + "0" * 32)).write_bytes(b"x" * 70_000)
    before = {name: (founder / name).read_bytes() for name in all_below(founder) if (founder / name).is_file()}

    pack(str(founder), "x.er.tar.zst")
    (tmp_path / "into").mkdir()
    path = unpack("x.er.tar.zst", str(tmp_path / "into"), Damages())

    assert {name: Path(path, name).read_bytes() for name in before} == before
    assert sorted(before) == [name for name in all_below(tmp_path / "into" / "test.1.er") if name in before]
    with zstandard.open("x.er.tar.zst") as file, tarfile.open(fileobj=file, mode="r|") as archive:
        assert len(archive.getnames()) == len(before)


def test_a_target_that_is_there_is_left_alone(tmp_path, capsys):
    family(tmp_path / "test.1.er")
    (tmp_path / "x.er.tar.zst").write_text("mine")

    code = main(["archive", "-o", "x.er.tar.zst", "test.1.er"])

    assert code == 1
    assert capsys.readouterr().err == "interpose: x.er.tar.zst: File exists\n"
    assert (tmp_path / "x.er.tar.zst").read_text() == "mine"


def test_links_and_strangers_are_not_packed(tmp_path):
    founder = family(tmp_path / "test.1.er")
    (tmp_path / "secret").write_text("canary")
    (founder / "stolen").symlink_to(tmp_path / "secret")
    (founder / "Other File").write_text("x")
    (founder / "_f1.er").symlink_to(tmp_path)

    pack(str(founder), "x.er.tar.zst")

    with zstandard.open("x.er.tar.zst") as file, tarfile.open(fileobj=file, mode="r|") as archive:
        names = archive.getnames()
    assert not [name for name in names if "stolen" in name or "Other" in name or "_f1" in name]


@pytest.mark.parametrize("command", ["notes", "archive"])
def test_nothing_is_written_into_a_packed_experiment(tmp_path, command, capsys):
    founder = family(tmp_path / "test.1.er")
    pack(str(founder), "x.er.tar.zst")
    before = (tmp_path / "x.er.tar.zst").read_bytes()

    code = main([command, "x.er.tar.zst", *(["--add", "x"] if command == "notes" else [])])

    assert code == 2
    assert "cannot be written into a packed experiment" in capsys.readouterr().err
    assert (tmp_path / "x.er.tar.zst").read_bytes() == before


@pytest.mark.parametrize(
    "member",
    [
        ("../evil", tarfile.REGTYPE, {}),
        ("/evil", tarfile.REGTYPE, {}),
        ("x.er/../../evil", tarfile.REGTYPE, {}),
        ("x.er/a/b/c", tarfile.REGTYPE, {}),
        ("x.er/archives/../../evil", tarfile.REGTYPE, {}),
        ("x.er/_f1.er/../evil", tarfile.REGTYPE, {}),
        ("..", tarfile.REGTYPE, {}),
        ("..er", tarfile.REGTYPE, {}),
        ("x.er", tarfile.REGTYPE, {}),
        ("x.er/events", tarfile.SYMTYPE, {"linkname": "/etc/passwd"}),
        ("x.er/events", tarfile.LNKTYPE, {"linkname": "../../evil"}),
        ("x.er/events", tarfile.FIFOTYPE, {}),
        ("x.er/events", tarfile.CHRTYPE, {}),
        ("x.er/events", tarfile.GNUTYPE_SPARSE, {}),
        ("x.er/events", tarfile.XHDTYPE, {"size": 8**11 - 1}),
        ("x.er/events", tarfile.GNUTYPE_LONGNAME, {"size": 8**11 - 1}),
        ("x.er/archives", tarfile.SYMTYPE, {"linkname": "/tmp"}),
        ("x.er/_f1.er", tarfile.DIRTYPE, {"size": 512}),
        ("x.er/Evil Name", tarfile.REGTYPE, {}),
    ],
    ids=lambda member: f"{member[0]} {member[1].decode()}",
)
def test_what_is_no_part_of_an_experiment_is_refused(tmp_path, member):
    error, damages = unpacked(tmp_path, hostile(("x.er/log.xml", tarfile.REGTYPE, {}), member))

    assert error == ""
    assert damages.count == 1
    assert "is not part of an experiment" in damages.found[0].what
    assert all_below(tmp_path / "into") == ["x.er", "x.er/log.xml"]
    assert not (tmp_path / "evil").exists()


def test_two_files_of_one_name_are_refused(tmp_path):
    twice = ("x.er/log.xml", tarfile.REGTYPE, {})

    _, damages = unpacked(tmp_path, hostile(twice, twice))

    assert "is there twice" in damages.found[0].what


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 4096, b"PK\3\4", zstandard.compress(b""), zstandard.compress(b"x" * 4096), hostile(), os.urandom(64)],
    ids=["empty", "zeros", "zip", "nothing", "no-tar", "no-members", "random"],
)
def test_what_is_no_packed_experiment_is_refused_in_one_line(tmp_path, data, capsys):
    (tmp_path / "x.er.tar.zst").write_bytes(data)

    code = main(["report", "x.er.tar.zst"])

    err = capsys.readouterr().err
    assert code == 1
    assert err.startswith("interpose: x.er.tar.zst: ")
    assert err.count("\n") == 1
    assert os.listdir(tmp_path / "tmp") == []


def test_a_file_cut_at_any_place_is_read_as_far_as_it_goes(tmp_path):
    founder = family(tmp_path / "test.1.er")
    pack(str(founder), "x.er.tar.zst")
    whole = (tmp_path / "x.er.tar.zst").read_bytes()
    opened = 0

    for size in [*range(0, len(whole), 29), *range(len(whole) - 8, len(whole))]:
        (tmp_path / "cut.er.tar.zst").write_bytes(whole[:size])
        with tempfile.TemporaryDirectory() as into:
            damages = Damages()
            try:
                opened += bool(Experiment(unpack("cut.er.tar.zst", into, damages), damages).processes)
            except ExperimentError:
                continue
            assert damages.count

    assert opened


def test_a_flipped_bit_is_noticed(tmp_path, capsys):
    founder = family(tmp_path / "test.1.er")
    pack(str(founder), "x.er.tar.zst")
    data = bytearray((tmp_path / "x.er.tar.zst").read_bytes())
    data[-2] ^= 1
    (tmp_path / "x.er.tar.zst").write_bytes(data)

    assert main(["report", "x.er.tar.zst"]) in (1, 3)
    assert "interpose: x.er.tar.zst" in capsys.readouterr().err


BOMB = """
import resource, sys
from interpose.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))
code = main(["report", "bomb.er.tar.zst"])
# Not ru_maxrss: that begins with what the process had that started this one.
with open("/proc/self/status") as file:
    print(code, *[line.split()[1] for line in file if line.startswith("VmHWM:")])
"""


def bomb(path, size_bytes):
    info = tarfile.TarInfo("x.er/events")
    info.size = size_bytes
    zeros = bytes(1 << 20)
    with open(path, "wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as out:
        out.write(info.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(size_bytes >> 20):
            out.write(zeros)


@pytest.mark.long
def test_a_bomb_is_given_up_in_little_memory_and_on_little_disk(tmp_path):
    bomb(tmp_path / "bomb.er.tar.zst", 2 << 30)

    done = subprocess.run([sys.executable, "-c", BOMB], capture_output=True, text=True, cwd=tmp_path, check=True)

    code, rss_kib = map(int, done.stdout.split())
    assert code == 1
    assert rss_kib < 200_000
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path / "tmp") == []


def test_more_out_of_a_file_than_can_be_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "UNPACKED_AT_ONCE_BYTES", 1 << 20)
    bomb(tmp_path / "b.zst", 64 << 20)

    error, _ = unpacked(tmp_path, (tmp_path / "b.zst").read_bytes())

    assert "come out of it, the rest was not read" in error
    assert os.stat(tmp_path / "into" / "x.er" / "events").st_blocks * 512 < 1 << 20


def test_a_window_that_takes_much_memory_is_refused(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    error, _ = unpacked(tmp_path, compressor.compress(bytes(1 << 20)) + compressor.flush())

    assert "not readable as zstandard" in error


@pytest.mark.long
@pytest.mark.parametrize("files", [20_001, pytest.param(200_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["x.er/f{}", "x.er/_c{}.er/log.xml", "x.er/archives/f{}"])
def test_more_files_than_can_be_are_refused_in_one_line_and_none_is_made(tmp_path, name, files):
    members = [(name.format(number + 1), tarfile.REGTYPE, {}) for number in range(files)]

    error, _ = unpacked(tmp_path, hostile(*members, data=b""))

    assert error == "x.er.tar.zst: more than 20,000 files"
    assert os.listdir(tmp_path / "into") == []


def test_of_one_process_a_hundred_files_are_read(tmp_path):
    members = [(f"x.er/f{number}", tarfile.REGTYPE, {}) for number in range(101)]

    error, _ = unpacked(tmp_path, hostile(*members))

    assert error == "x.er.tar.zst: more than 100 files of one process"
    assert len(all_below(tmp_path / "into" / "x.er")) == 100


def test_what_could_not_be_read_again_is_not_packed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(packed, "PARTS_AT_MOST", 3)
    founder = family(tmp_path / "test.1.er")

    with pytest.raises(ExperimentError, match=r"^test\.1\.er: more than 3 files cannot be packed into one$"):
        pack(str(founder), str(tmp_path / "x.er.tar.zst"))

    assert not (tmp_path / "x.er.tar.zst").exists()


@pytest.mark.parametrize(
    ("size", "why"),
    [(1 << 40, "'x.er/events' says it has 1,099,511,627,776 bytes"), (1 << 30, "cut short")],
)
def test_a_member_of_enormous_size_is_told_and_not_what_is_missing_behind_it(tmp_path, size, why, capsys):
    info = tarfile.TarInfo("x.er/events")
    info.size = size
    directory = tarfile.TarInfo("x.er")
    directory.type = tarfile.DIRTYPE
    headers = directory.tobuf(tarfile.USTAR_FORMAT) + info.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "x.er.tar.zst").write_bytes(zstandard.compress(headers + bytes(1024)))

    assert main(["report", "x.er.tar.zst"]) == 1
    assert capsys.readouterr().err == f"interpose: x.er.tar.zst: {why}\n"


def test_a_bomb_behind_a_directory_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(packed, "UNPACKED_AT_ONCE_BYTES", 1 << 20)
    bomb(tmp_path / "x.er.tar.zst", 64 << 20)

    assert main(["report", "x.er.tar.zst"]) == 1
    assert "come out of it, the rest was not read" in capsys.readouterr().err


def test_no_room_for_unpacking_is_told(tmp_path, capsys):
    founder = family(tmp_path / "test.1.er")
    pack(str(founder), "x.er.tar.zst")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))

    try:
        code = main(["report", "x.er.tar.zst"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    assert code == 1
    assert "cannot be unpacked: File too large" in capsys.readouterr().err
    assert os.listdir(tmp_path / "tmp") == []


def contents(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_cp_of_an_archive_makes_the_directory_as_it_was(tmp_path, capsys):
    founder = family(tmp_path / "t.1.er")
    os.utime(founder / "log.xml", (5, 5))
    pack(str(founder), str(tmp_path / "kept.er.tar.zst"))
    (tmp_path / "into").mkdir()

    for target in ("new.er", "into"):
        assert main(["cp", str(tmp_path / "kept.er.tar.zst"), str(tmp_path / target)]) == 0

    for made in (tmp_path / "new.er", tmp_path / "into" / "kept.er"):
        assert contents(made) == contents(founder)
        assert ((made / "log.xml").stat().st_mtime, made.stat().st_mode & 0o777) == (5, 0o700)
    assert sorted(os.listdir(tmp_path / "into")) == ["kept.er"]
    assert capsys.readouterr() == ("", "")


def test_cp_of_a_damaged_archive_makes_what_can_be_read_and_says_so(tmp_path, capsys):
    pack(str(family(tmp_path / "t.1.er")), str(tmp_path / "t.er.tar.zst"))
    whole = (tmp_path / "t.er.tar.zst").read_bytes()
    (tmp_path / "t.er.tar.zst").write_bytes(whole[:-1])

    assert main(["cp", str(tmp_path / "t.er.tar.zst"), str(tmp_path / "new.er")]) == 3

    assert capsys.readouterr().err.startswith("interpose: t.er.tar.zst: not readable as zstandard")
    copied = contents(tmp_path / "new.er")
    assert copied.pop("damages").startswith(b"t.er.tar.zst: not readable as zstandard")
    assert copied == contents(tmp_path / "t.1.er")


@pytest.mark.parametrize("name", ["../out.er/log.xml", "/t.er/log.xml", "t.er/../../log.xml", "t.er/strange/file"])
def test_cp_of_a_hostile_archive_makes_nothing(tmp_path, name, capsys):
    (tmp_path / "t.er.tar.zst").write_bytes(hostile((name, tarfile.REGTYPE, {})))
    before = sorted(os.listdir(tmp_path))

    assert main(["cp", str(tmp_path / "t.er.tar.zst"), str(tmp_path / "new.er")]) == 1

    assert "is not part of an experiment" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == before


def test_a_link_to_an_archive_is_listed_and_read_as_one_to_an_experiment_is(tmp_path, capsys):
    founder = family(tmp_path / "t.1.er")
    pack(str(founder), str(tmp_path / "kept.er.tar.zst"))
    (tmp_path / "link.er.tar.zst").symlink_to("kept.er.tar.zst")
    (tmp_path / "nowhere.er.tar.zst").symlink_to("gone")
    link = str(tmp_path / "link.er.tar.zst")

    assert main(["list", str(tmp_path), "--format", "json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert [main([command, link]) for command in ("report", "check")] == [0, 0]
    assert main(["cp", link, str(tmp_path / "new.er")]) == 0

    assert names == ["t.1.er", "kept.er.tar.zst", "link.er.tar.zst"]
    assert capsys.readouterr().err == ""
    assert contents(tmp_path / "new.er") == contents(founder)


def test_mv_of_an_archive_says_what_unpacks_it(tmp_path, capsys):
    pack(str(family(tmp_path / "t.1.er")), str(tmp_path / "t.er.tar.zst"))

    assert main(["mv", str(tmp_path / "t.er.tar.zst"), str(tmp_path / "new.er")]) == 2

    assert "interpose cp unpacks it" in capsys.readouterr().err


def test_check_of_an_archive_of_which_nothing_can_be_read_ends_as_damaged(tmp_path, capsys):
    pack(str(family(tmp_path / "t.1.er")), str(tmp_path / "t.er.tar.zst"))
    (tmp_path / "t.er.tar.zst").write_bytes((tmp_path / "t.er.tar.zst").read_bytes()[:20])

    assert main(["check", str(tmp_path / "t.er.tar.zst")]) == 3

    assert capsys.readouterr().out == "t.er.tar.zst: cut short: damaged, and nothing can be read\n"


def test_check_calls_a_damaged_archive_by_the_path_that_was_given_once(tmp_path, capsys):
    path = tmp_path / "t.er.tar.zst"
    pack(str(family(tmp_path / "t.1.er")), str(path))
    path.write_bytes(path.read_bytes()[:-1])

    assert main(["check", str(path)]) == 3

    damage, *_ = capsys.readouterr().out.splitlines()
    assert damage.startswith(f"{path}: ") and damage.count("t.er.tar.zst") == 1


def test_archives_are_listed_after_experiments_with_their_size(tmp_path, capsys):
    pack(str(family(tmp_path / "t.1.er")), str(tmp_path / "a.er.tar.zst"))
    size_bytes = (tmp_path / "a.er.tar.zst").stat().st_size

    assert main(["list", str(tmp_path), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert main(["list", str(tmp_path)]) == 0

    assert [(row["name"], row["size_bytes"]) for row in rows] == [("t.1.er", None), ("a.er.tar.zst", size_bytes)]
    assert f"archive, {units.size(size_bytes)}" in capsys.readouterr().out


WITH_ARCHIVES = ["archive t.er -o new.er.tar.zst", "report t.er.tar.zst", "compare t.er.tar.zst t.er"]


@pytest.mark.parametrize("command", WITH_ARCHIVES)
def test_without_zstandard_one_line_names_the_archive_and_the_remedy(tmp_path, monkeypatch, capsys, command):
    small(tmp_path / "t.er").write()
    pack("t.er", "t.er.tar.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)

    code = main(command.split())

    place = "new.er.tar.zst" if command.startswith("archive") else "t.er.tar.zst"
    told = [line for line in capsys.readouterr().err.splitlines() if "zstandard" in line]
    assert code == 1
    assert [line.partition(", ")[0] for line in told] == [f"interpose: {place}: needs the package zstandard"]
    assert told[0].endswith("; pip install zstandard")
    assert not (tmp_path / "new.er.tar.zst").exists()
