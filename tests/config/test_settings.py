"""Settings: precedence, the errors that name what is wrong, and the small reader of pyproject.toml."""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.cli.commands.run import add_settings
from interpose.config import page, precedence, schema, settings_file, values
from interpose.errors import SettingError

TOP = Path(__file__).parents[2]


def write_file(directory: Path, text: str) -> Path:
    path = directory / settings_file.FILE
    path.write_text(text)
    return path


def test_nothing_set_gives_the_defaults(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    found = precedence.resolve({}, {}, {})

    assert found.record == ()
    assert found.dir == str(tmp_path)
    assert found.name == "test"
    assert found.clock == "auto"
    assert found.stack == "own"
    assert found.stack_above_ns == 10_000_000
    assert set(found.origins.values()) == {"default"}


def test_an_option_goes_before_the_environment_and_that_before_the_file():
    file = {"clock": ("perf", "/p/pyproject.toml:3")}
    environment = {"INTERPOSE_CLOCK": "rseq"}

    assert precedence.resolve({"clock": "syscall"}, environment, file).clock == "syscall"
    assert precedence.resolve({"clock": None}, environment, file).clock == "rseq"
    assert precedence.resolve({}, {}, file).clock == "perf"
    assert precedence.resolve({}, {}, file).origins["INTERPOSE_CLOCK"] == "/p/pyproject.toml:3"


def test_an_empty_variable_counts_as_not_set():
    found = precedence.resolve({}, {"INTERPOSE_CLOCK": ""}, {"clock": ("perf", "/p/pyproject.toml:3")})

    assert found.clock == "perf"


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("", ()),
        ("1", ("calls",)),
        ("calls", ("calls",)),
        ("calls, calls,1", ("calls",)),
        ("on,lines", ("calls", "lines")),
        *((word, ()) for word in ("0", "no", "false", "off", "Off")),
        *((word, ("calls",)) for word in ("yes", "true", "on", "YES", "True")),
    ],
)
def test_what_to_record_is_a_switch_or_a_list(text, record):
    assert precedence.resolve({}, {"INTERPOSE": text}, {}).record == record


@pytest.mark.parametrize(
    ("options", "environment", "file", "message"),
    [
        (
            {},
            {"INTERPOSE_CLOCK": "sundial"},
            {},
            "INTERPOSE_CLOCK=sundial: not one of auto, tsc, rseq, perf, syscall",
        ),
        ({"clock": "sundial"}, {}, {}, "--clock sundial: not one of auto, tsc, rseq, perf, syscall"),
        (
            {},
            {},
            {"clock": ("sundial", "/p/pyproject.toml:7")},
            "/p/pyproject.toml:7: clock = sundial: not one of auto, tsc, rseq, perf, syscall",
        ),
        ({}, {"INTERPOSE": "calls,tea"}, {}, "INTERPOSE=calls,tea: 'tea' is not one of 0, 1, calls"),
        ({}, {"INTERPOSE_NAME": "a/b"}, {}, "INTERPOSE_NAME=a/b: a name cannot contain a slash"),
        ({}, {"INTERPOSE_STACK_ABOVE": "soon"}, {}, "INTERPOSE_STACK_ABOVE=soon: not a duration"),
    ],
)
def test_a_value_that_means_nothing_is_named_in_one_line(options, environment, file, message):
    with pytest.raises(SettingError) as raised:
        precedence.resolve(options, environment, file)

    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("10ms", 10**7),
        ("500us", 500_000),
        ("2s", 2 * 10**9),
        ("0.5ms", 500_000),
        ("7ns", 7),
        ("0s", 0),
        ("0", 0),
        ("off", None),
    ],
)
def test_a_duration_has_a_unit(text, duration_ns):
    assert values.parse_duration_ns(text) == duration_ns


@pytest.mark.parametrize("text", ["", "10", "ms", "-1ms", "nans", "infs", "1e99s", "10 minutes", "00", "-0"])
def test_what_is_not_a_duration_is_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        values.parse_duration_ns(text)


def parsed(setting, text):
    """What a text means, or what is wrong with it."""
    try:
        return setting.parse(text)
    except ValueError as error:
        return str(error)


DURATIONS = [each for each in schema.SETTINGS if "DURATION" in each.form or "SECONDS" in each.form]


@pytest.mark.parametrize("setting", DURATIONS, ids=lambda setting: setting.variable)
def test_a_duration_of_0_needs_no_unit(setting):
    assert parsed(setting, "0") == parsed(setting, "0s")
    assert "not a duration" not in str(parsed(setting, "0"))


def test_the_nearest_file_upward_is_read(tmp_path):
    write_file(tmp_path, '[tool.interpose]\nclock = "perf"\n')
    nearer = tmp_path / "a"
    deep = nearer / "b" / "c"
    deep.mkdir(parents=True)
    path = write_file(
        nearer,
        "# mine\n[tool.interpose]  # ours\nclock = 'rseq' # why\nstack-above = \"1ms\"\n\n"
        "[other]\nx = [1,\n2]\n",
    )

    assert settings_file.read_file(str(deep)) == (
        {"clock": ("rseq", f"{path}:3"), "stack-above": ("1ms", f"{path}:4")},
        [],
    )


def test_a_file_without_our_section_says_nothing(tmp_path):
    write_file(tmp_path, '[project]\nname = "interpose-user"\n[tool.other]\nclock = """x\n"""\n')

    assert settings_file.read_file(str(tmp_path)) == ({}, [])


def test_a_directory_in_a_file_is_relative_to_the_file(tmp_path, monkeypatch):
    write_file(tmp_path, '[tool.interpose]\ndir = "experiments"\n')
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")

    assert precedence.in_force({}).dir == str(tmp_path / "experiments")
    assert precedence.in_force({"INTERPOSE_DIR": "e"}).dir == str(tmp_path / "a" / "e")


@pytest.mark.parametrize(
    "line",
    [
        "clock",
        "clock = rseq",
        'clock = "rseq',
        'clock = """rseq"""',
        'clock = "rs\\u0065q"',
        'clock = ["rseq"]',
        'clock = "rseq" perf',
        "clock = { a = 1 }",
        'colour = "red"',
        "clock.kind = 'rseq'",
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, line):
    path = write_file(tmp_path, f"[project]\n[tool.interpose]\n{line}\n")

    with pytest.raises(SettingError) as raised:
        settings_file.read_file(str(tmp_path))

    assert str(raised.value).startswith(f"{path}:3: ")


def test_a_key_that_is_said_twice_and_a_section_within_ours_are_named(tmp_path):
    path = write_file(tmp_path, "[tool.interpose]\nclock = 'rseq'\nclock = 'perf'\n")
    with pytest.raises(SettingError, match="clock is set twice"):
        settings_file.read_file(str(tmp_path))

    path.write_text("[tool.interpose.clock]\n")
    with pytest.raises(SettingError, match=r"pyproject.toml:1: \[tool.interpose.clock\] is not a section"):
        settings_file.read_file(str(tmp_path))


@pytest.mark.parametrize(
    "head", ["[tool.interpose", "[[tool.interpose]]", "[tool.interpose]]", '[tool.interpose] clock = "rseq"']
)
def test_a_head_of_our_section_that_cannot_be_read_is_named(tmp_path, head):
    path = write_file(tmp_path, f"[project]\n{head}\nclock = 'rseq'\n")

    with pytest.raises(SettingError) as raised:
        settings_file.read_file(str(tmp_path))

    remedy = "write [tool.interpose] on a line of its own"
    assert str(raised.value) == f"{path}:2: cannot read {head}; {remedy}"


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", 'tool.interpose.clock = "rseq"'),
        ("", '"tool" . interpose . clock = "rseq"'),
        ("", 'tool.interpose = { clock = "rseq" }'),
        ("", 'tool = { interpose = { clock = "rseq" } }'),
        ("", 'tool = { x = { args = "\\"}" }, "interpose" . clock = "rseq" }  # ours'),
        ("[tool]\n", 'interpose.clock = "rseq"'),
        ("[ tool ]\n", 'interpose = { clock = "rseq" }'),
        ("", '[tool."interpose"]'),
    ],
)
def test_other_forms_of_toml_for_our_section_are_named(tmp_path, before, line):
    path = write_file(tmp_path, f"{before}{line}\n")

    with pytest.raises(SettingError) as raised:
        settings_file.read_file(str(tmp_path))

    assert "interpose" in tomllib.loads(path.read_text())["tool"]
    assert f"cannot read {line}; write [tool.interpose] on a line of its own" in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        'tool = {x = {args="-p interpose"}}\n',
        'tool = {x = {interpose = 1}, y.interpose = 2, z = ["interpose=3"]}  # {interpose = 4}\n',
        'name = """\ntool.interpose.clock = 1\n[tool.interpose]\nclock = \\"""\n"""\n',
        "name = '''\ntool.interpose.clock = 1\n\\'''  # '''\nother = 1\n",
        '[project]\ntext = """a # b\n[tool.interpose]\nx = 1"""\n[tool]\n',
    ],
)
def test_words_like_ours_within_other_values_are_no_settings(tmp_path, text):
    write_file(tmp_path, text)

    assert "interpose" not in tomllib.loads(text).get("tool", {})
    assert settings_file.read_file(str(tmp_path)) == ({}, [])


def test_keys_of_other_tools_are_no_settings(tmp_path):
    write_file(tmp_path, 'tool.other.interpose = 1\n[tool]\nother = "interpose"\n[tool.x]\ninterpose.clock = "perf"\n')

    assert settings_file.read_file(str(tmp_path)) == ({}, [])


@pytest.mark.parametrize(
    ("variable", "text", "told"),
    [
        ("INTERPOSE_SLOWEST", "99999999999", "not a number from 0 to 999999999"),
        ("INTERPOSE_SLOWEST", "-1", "not a number from 0 to 999999999"),
        ("INTERPOSE_LINES_DEPTH", "-1", "not a number from 1 to 65536"),
        ("INTERPOSE_LINES_DEPTH", "0", "not a number from 1 to 65536"),
        ("INTERPOSE_RESERVE", "99%", "not auto, off or a size of at least 1MiB, such as 512MiB or 2GiB"),
    ],
)
def test_a_value_out_of_bounds_is_told_with_the_bounds(variable, text, told):
    with pytest.raises(SettingError, match=f"^{re.escape(f'{variable}={text}: {told}')}$"):
        precedence.resolve({}, {variable: text}, {})


def test_a_comment_or_blanks_in_the_head_of_our_section_are_no_mistake(tmp_path):
    write_file(tmp_path, "[ tool . interpose ]  # ours [tool]\nclock = 'rseq'\n")

    assert list(settings_file.read_file(str(tmp_path))[0]) == ["clock"]


def test_a_file_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / settings_file.FILE)

    assert settings_file.read_file(str(tmp_path)) == ({}, [])


@given(
    value=st.one_of(
        st.booleans(),
        st.integers(0, 10**9),
        st.text(
            st.characters(codec="utf-8", exclude_characters='"\\\r\n\x7f', exclude_categories=["Cc", "Cs"])
        ),
    )
)
def test_what_the_small_reader_reads_is_what_toml_means(value, tmp_path_factory):
    shown = (
        str(value).lower()
        if isinstance(value, bool)
        else str(value)
        if isinstance(value, int)
        else f'"{value}"'
    )
    text = f"[tool.interpose]\nname = {shown} # note\n"
    path = write_file(tmp_path_factory.mktemp("toml"), text)

    file, _ = settings_file.read_file(str(path.parent))
    (read, _) = file["name"]

    meant = tomllib.loads(text)["tool"]["interpose"]["name"]
    assert read == (str(int(meant)) if isinstance(meant, bool) else str(meant))


SOMEBODY = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@as_root
def test_a_file_of_another_user_is_ignored_with_a_note(tmp_path, monkeypatch):
    path = write_file(tmp_path, "[tool.interpose]\ndir = '/tmp'\narguments = 'db=whole'\n")
    os.chown(path, SOMEBODY, SOMEBODY)
    monkeypatch.chdir(tmp_path)

    found = precedence.in_force({})

    assert (found.dir, found.arguments) == (str(tmp_path), {})
    assert found.warnings == [f"{path} is ignored: {path} belongs to another user"]


@pytest.mark.parametrize(("mode", "whose"), [(0o664, "its group"), (0o646, "others")])
def test_a_file_that_others_can_write_is_ignored_with_a_note(tmp_path, mode, whose):
    path = write_file(tmp_path, "[tool.interpose]\nname = 'theirs'\n")
    path.chmod(mode)

    assert settings_file.read_file(str(tmp_path)) == ({}, [f"{path} is ignored: {path} is writable by {whose}"])


def test_a_file_in_a_directory_that_others_can_write_is_ignored_with_a_note(tmp_path):
    path = write_file(tmp_path, "[tool.interpose]\nname = 'theirs'\n")
    tmp_path.chmod(0o777)

    assert settings_file.read_file(str(tmp_path)) == ({}, [f"{path} is ignored: {tmp_path} is writable by others"])


def test_a_link_to_a_file_in_a_directory_that_others_can_write_is_ignored(tmp_path):
    lent = tmp_path / "lent"
    lent.mkdir()
    (tmp_path / settings_file.FILE).symlink_to(write_file(lent, "[tool.interpose]\nname = 'theirs'\n"))
    lent.chmod(0o777)

    file, (note,) = settings_file.read_file(str(tmp_path))

    assert file == {}
    assert note.endswith(f"{lent} is writable by others")


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_nothing_above_a_directory_that_others_can_write_is_looked_at(tmp_path, mode):
    write_file(tmp_path, "[tool.interpose]\nname = 'ours'\n")
    below = tmp_path / "shared" / "work"
    below.mkdir(parents=True)
    below.parent.chmod(mode)

    assert settings_file.read_file(str(below)) == ({}, [])
    below.parent.chmod(0o755)
    assert settings_file.read_file(str(below))[0].keys() == {"name"}


@as_root
def test_nothing_above_a_directory_of_another_user_is_looked_at(tmp_path):
    write_file(tmp_path, "[tool.interpose]\nname = 'ours'\n")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, SOMEBODY, SOMEBODY)

    assert settings_file.read_file(str(theirs)) == ({}, [])


@as_root
def test_a_control_file_of_another_user_is_ignored_with_a_note(tmp_path):
    path = tmp_path / "control"
    path.write_text("FUNCTION=INIT\nEND-PROFILER\n")
    os.chown(path, SOMEBODY, SOMEBODY)

    found = precedence.resolve({}, {"INTERPOSE_CONTROL": str(path)}, {})

    assert not found.paused
    assert found.warnings == [f"INTERPOSE_CONTROL={path} is ignored: {path} belongs to another user"]


def test_the_environment_of_the_settings_gives_the_same_settings_elsewhere(tmp_path, monkeypatch):
    found = precedence.resolve(
        {"record": "1", "dir": str(tmp_path), "stack-above": "off", "clock": "perf"}, {}, {}
    )
    monkeypatch.chdir("/")

    again = precedence.resolve({}, found.environment(), {"clock": ("rseq", "x:1")})

    assert [getattr(again, setting.name) for setting in schema.SETTINGS] == [
        getattr(found, setting.name) for setting in schema.SETTINGS
    ]


def test_every_setting_has_names_of_its_own_and_a_default_that_means_something():
    every = schema.SETTINGS

    assert len({each.variable for each in every}) == len(schema.BY_KEY) == len(every)
    for setting in every:
        assert setting.variable.startswith("INTERPOSE")
        setting.parse(setting.default)


@pytest.fixture
def tea(monkeypatch):
    """A setting more, by its one entry."""
    entry = schema.Setting(
        values.parse_size,
        form="SIZE",
        default="1MiB",
        meaning="how much tea there is",
        excludes=("ring", "tea is not poured in rings"),
    )
    entry.__set_name__(schema.Settings, "tea")
    monkeypatch.setattr(schema, "SETTINGS", (*schema.SETTINGS, entry))
    monkeypatch.setitem(schema.BY_KEY, "tea", entry)


def test_a_setting_is_one_entry(tea, tmp_path):
    path = write_file(tmp_path, "[tool.interpose]\ntea = '3MiB'\n")
    file, _ = settings_file.read_file(str(tmp_path))
    parser = argparse.ArgumentParser()
    add_settings(parser)

    assert precedence.resolve({}, {}, {}).tea == 1 << 20
    assert precedence.resolve({}, {"INTERPOSE_TEA": "2MiB"}, file).tea == 2 << 20
    assert precedence.resolve({}, {}, file).origins["INTERPOSE_TEA"] == f"{path}:2"
    assert precedence.resolve({"tea": "4"}, {}, file).environment()["INTERPOSE_TEA"] == "4"
    with pytest.raises(SettingError, match=r"^INTERPOSE_TEA=2MiB: tea is not poured in rings$"):
        precedence.resolve({}, {"INTERPOSE_TEA": "2MiB", "INTERPOSE_RING": "1GiB"}, {})
    assert parser.parse_args(["--tea", "5MiB"]).tea == "5MiB"
    assert "| `INTERPOSE_TEA` | `--tea SIZE` | `tea` | `1MiB` | how much tea there is |" in page.page()


def test_what_the_recorder_is_given_has_the_name_of_a_setting_or_follows_from_one():
    found = precedence.resolve({}, {}, {})
    header = (TOP / "cext" / "core" / "settings.h").read_text(encoding="utf-8")
    names = re.findall(r"^    X\(\w+, +(\w+),", header, re.M)

    assert "ring_bytes" in names
    of_the_run = {"directory", "founder", "lineage", "begun_wall_ns", "begun_cpu_ns"}
    assert {name for name in names if not hasattr(found, name)} == of_the_run


def test_the_page_of_settings_is_as_printed():
    printed = subprocess.run(
        [sys.executable, "-m", "interpose.config.page"], capture_output=True, text=True, check=True
    )

    assert (TOP / "docs" / "settings.md").read_text() == printed.stdout, (
        "python -m interpose.config.page > docs/settings.md"
    )


def test_the_modules_of_the_traced_program_import_next_to_nothing():
    program = (
        "import sys; before = set(sys.modules)\n"
        "import interpose.config.precedence, interpose.config.state, interpose.experiments.metadata.names\n"
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('interpose')))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) <= {"__future__"}


# --- counters


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("off", ()),
        ("faults", ("faults",)),
        ("switches, minor-faults,switches,minor_faults", ("switches", "minor_faults")),
        ("faults,,", ("faults",)),
    ],
)
def test_counters_are_a_list_in_which_each_counts_once(text, names):
    assert precedence.resolve({"counters": text}, {}, {}).counters == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no counter is named: write some of faults"),
        (" , ", "no counter is named: write some of faults"),
        ("fualts", "no counter is called 'fualts'. Did you mean faults?"),
        ("faults,cache-miss", "no counter is called 'cache_miss'. Did you mean cache_misses?"),
        ("zzz", "no counter is called 'zzz'; there are faults, "),
    ],
)
def test_a_counter_that_is_none_is_named(text, why):
    with pytest.raises(SettingError) as raised:
        precedence.resolve({"counters": text}, {}, {})

    assert str(raised.value).startswith(f"--counters {text}: {why}")


def test_counters_switch_the_profile_on_where_calls_are_recorded():
    found = precedence.resolve({}, {"INTERPOSE": "1", "INTERPOSE_COUNTERS": "faults"}, {})
    nothing = precedence.resolve({}, {"INTERPOSE_COUNTERS": "faults"}, {})

    assert (found.record, found.environment()["INTERPOSE"]) == (("calls", "profile"), "calls,profile")
    assert nothing.record == ()


def test_counters_without_the_profile_are_refused():
    with pytest.raises(SettingError, match="--counters faults: counters need the sampled profile; leave out"):
        precedence.resolve({"counters": "faults", "profile": "off"}, {"INTERPOSE": "1"}, {})
