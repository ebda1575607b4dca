"""The bundle of what the start of a recording imports."""

import marshal
import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

import interpose
from interpose import bundle, library
from interpose.boot import BUNDLE, Finder, open_bundle
from interpose.config import in_force
from interpose.instrumentation import system_library
from interpose.timing import shims

PACKAGE = Path(interpose.__file__).parent
IMPORTED = """
import sys
opened = []
sys.addaudithook(lambda event, what: opened.append(str(what[0])) if event == "open" else None)
import interpose.boot
interpose.boot.boot()
print(*[each for each in opened if each.startswith(sys.argv[1])], sep="\\n")
"""


@pytest.fixture(scope="module")
def made() -> bundle.Bundle:
    return bundle.make([*map(str, interpose.__path__)])


def code_of(module: object, place: str) -> set:
    """The files that the functions of a module say they are of."""
    return {
        each.__code__.co_filename
        for each in vars(module).values()
        if hasattr(each, "__code__") and each.__module__ == place
    }


def test_it_has_whatever_the_start_imports(made):
    asked = "import sys; import interpose.boot, interpose.capture.attached; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert {each for each in done.stdout.split() if each.startswith("interpose")} <= set(made.places)


def test_it_has_nothing_of_analysis(made):
    assert not [name for name in made.places if name.startswith(("interpose.analysis", "interpose.cli"))]


def test_a_module_from_it_is_as_from_its_file(made, monkeypatch):
    name = "interpose.config.program"
    monkeypatch.delitem(sys.modules, name, raising=False)
    finder = Finder(made.places, memoryview(made.code))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])

    module = __import__(name, fromlist=["program_name"])

    file = made.places[name][0]
    assert (module.__file__, module.__spec__.origin, module.__loader__.path) == (file, file, file)
    assert code_of(module, name) == {file}
    monkeypatch.delitem(sys.modules, name)


def test_a_file_of_it_says_what_it_was_made_of(made, tmp_path):
    (tmp_path / BUNDLE).write_bytes(made.as_file())

    spec = open_bundle(str(tmp_path)).find_spec("interpose.errors")

    assert spec.origin == f"{tmp_path}/{made.places['interpose.errors'][0]}"


def test_one_of_another_interpreter_is_not_used(made):
    others = {**made.places, "": b"xxxx"}

    assert Finder(others, made.code).find_spec("interpose.errors") is None


@pytest.mark.parametrize("kept_bytes", [0, 8, 1000, -1])
def test_of_one_that_is_cut_short_nothing_is_found(made, tmp_path, kept_bytes):
    (tmp_path / BUNDLE).write_bytes(made.as_file()[:kept_bytes])

    assert open_bundle(str(tmp_path)).find_spec("interpose.errors") is None


def test_without_one_nothing_is_found(tmp_path):
    assert open_bundle(str(tmp_path)).find_spec("interpose.errors") is None


@pytest.mark.parametrize(
    ("settings", "bundles"),
    [
        ({}, {"startup"}),
        ({"INTERPOSE_DIR": "."}, {"startup"}),
        ({"INTERPOSE_CLOCK": "auto"}, {"startup", "settings"}),
    ],
)
def test_an_installed_package_begins_from_it_alone(tmp_path, settings, bundles):
    if not (PACKAGE / BUNDLE).exists():
        pytest.skip("a checkout has no bundle")
    (tmp_path / "here").mkdir()
    given = {"INTERPOSE": "0", "PATH": "/usr/bin:/bin", **settings}
    begin = f"import os; os.environ['INTERPOSE'] = '1'\n{IMPORTED}"
    words = [sys.executable, "-c", begin, str(PACKAGE)]
    # Not in a project, whose settings would be read.
    done = subprocess.run(words, cwd=tmp_path / "here", capture_output=True, text=True, check=True, env=given)

    opened = {each.rpartition("/")[2].partition(".")[0] for each in done.stdout.split()}
    assert list((tmp_path / "here").iterdir())
    assert opened == {"__init__", "boot", *bundles}  # the package, boot.py, and the bundles


def test_its_code_is_all_there(made):
    for name, place in made.places.items():
        if name and place[3]:
            assert marshal.loads(made.code[place[2] : place[3]]).co_name == "<module>"


# --- what every start imports

@pytest.mark.long
def test_an_installed_package_has_that_in_its_bundle_and_the_compiled_libraries_alone():
    made = bundle.make_for_start([*map(str, interpose.__path__)], shims.PACKED)
    names, _, _ = made.places["<start>"]
    others = {each for each in made.places if each.startswith("interpose.")} - {*names}

    assert {"interpose.capture.session", "interpose.config.in_force"} < {*names}
    assert "interpose.timing.shims" in others
    assert [each for each in others if made.places[each][0].endswith(".py")] == []


@pytest.mark.long
def test_what_nothing_of_a_start_names_is_left_out_and_so_are_annotations():
    made = bundle.make_for_start([*map(str, interpose.__path__)], shims.PACKED)
    names, begin, end = made.places["<start>"]
    code = dict(zip(names, marshal.loads(made.code[begin:end]), strict=True))["interpose.experiments.metadata.names"]

    assert {"create", "_make_numbered"} < {*code.co_names}
    assert "age_as_copy" not in code.co_names
    assert "str" not in code.co_names


@pytest.mark.long
def test_what_knows_the_meaning_of_settings_is_in_a_bundle_of_its_own():
    at_start, _, _ = bundle.make_for_start([*map(str, interpose.__path__)], shims.PACKED).places["<start>"]
    names, _, _ = bundle.make_for_settings([*map(str, interpose.__path__)]).places["<start>"]

    assert {"interpose.config.precedence", "interpose.config.schema", "interpose.config.project_file"} < {*names}
    assert {*names}.isdisjoint(at_start)


@pytest.mark.long
@pytest.mark.parametrize("directory", [{}, {"INTERPOSE_DIR": "below"}, {"INTERPOSE_DIR": "/tmp/../there"}])
@pytest.mark.parametrize("what", in_force.USUAL)
def test_the_usual_settings_are_as_if_they_were_read(tmp_path, monkeypatch, what, directory):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(in_force, "PACKED", None)
    read = in_force.at_start({"INTERPOSE": what, **directory}, list)
    made = bundle.make_for_start([*map(str, interpose.__path__)], shims.PACKED)
    begin, end = made.places["<packed>"]
    monkeypatch.setattr(in_force, "PACKED", marshal.loads(made.code[begin:end])["interpose.config.in_force"])
    given = {"INTERPOSE": what, **directory, "INTERPOSE_LINEAGE": "7 /a.er ", "HOME": "/h"}
    found = in_force.at_start(given, list)

    assert vars(found) == vars(read)
    assert type(found) is in_force.InForce


@pytest.mark.parametrize(
    "given",
    [{"INTERPOSE": "on"}, *[{"INTERPOSE": "1", each: "perf"} for each in ("INTERPOSE_CLOCK", "INTERPOSE_NAME")]]
    + [{"INTERPOSE": "1", "INTERPOSE_DIR": each} for each in ("", "~/below")],
)
def test_whatever_else_is_set_is_read(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(in_force, "PACKED", ({"1": ("ready",)}, {}))

    assert in_force.at_start(given, list).record == ("calls",)


def test_it_has_what_the_system_library_declares_at_once():
    packed = bundle.packed(shims.PACKED)
    rows = [row for module in packed.modules for row in unpacked(packed, module)]
    system_library.forget()
    declared = library.resolve([(library.SYSTEM, system_library.standard())])
    wanted = [[getattr(each, name) for name in shims.PACKED] for each in declared]
    next_number = max(each.number + len(each.kinds) for each in declared)
    system_library.forget()

    assert rows == sorted(wanted, key=lambda row: [*packed.modules].index(row[shims.PACKED.index("module")]))
    assert packed.next_number == next_number > len(rows)


def unpacked(packed: bundle.Packed, module: str) -> list[list]:
    text, numbers = packed.modules[module]
    values = [*packed.shared, *text.split("\0")]
    rows = zip(*[iter(array("H", numbers))] * len(packed.fields), strict=True)
    return [[number, *(values[place] for place in places)] for number, *places in rows]


def test_what_is_not_in_it_of_a_declaration_is_the_same_for_all():
    system_library.forget()
    declared = library.resolve([(library.SYSTEM, system_library.standard())])
    left_out = {*library.Intrinsic.__slots__} - {*shims.PACKED} - {"layer"}
    found = {name: {getattr(each, name) for each in declared} for name in left_out}
    system_library.forget()

    nothing = {name: {""} for name in ("passes_on", "place", "suffix")}
    never = {name: {False} for name in ("overrides", "raises", "sampled")}
    assert found == {**nothing, **never, "order": {0}, "others": {()}, "wrapper": {None}}
    assert not any(each.is_pattern for each in declared)


BEGUN = """
import os, sys
from interpose import boot
boot.BUNDLE = sys.argv[1]
os.environ["INTERPOSE"] = "1"
boot.boot()
"""


def test_a_start_without_it_interposes_the_same(tmp_path):
    def mapped(name: str) -> list[str]:
        place = tmp_path / name
        place.mkdir()
        environment = {key: text for key, text in os.environ.items() if not key.startswith("INTERPOSE")}
        words = [sys.executable, "-c", BEGUN, name]
        subprocess.run(words, cwd=place, env={**environment, "HOME": str(place)}, check=True)
        return (place / "test.1.er" / "map.xml").read_text().splitlines()

    with_it = mapped(BUNDLE)

    assert len(with_it) > 100
    assert with_it == mapped("none.bundle")


STARTED = """
import sys
from interpose import boot, bundle
made = bundle.make_for_start(sys.argv[1:], ())
for name in [each for each in sys.modules if each.startswith("interpose.") and each[10:] not in ("boot", "bundle")]:
    del sys.modules[name]  # what making it has imported
names, begin, end = made.places["<start>"]
before = set(sys.modules)
finder = boot.Finder({PLACES}, memoryview(made.code))
finder.load_start()
loaded = set(sys.modules) - before
import interpose.capture.session as session
print(sorted(loaded) == sorted(names), sorted(set(sys.modules) - before - loaded))
print(session.begin.__code__.co_filename == session.__file__, session.names is sys.modules[session.names.__name__])
config = session.__file__.replace("capture/session.py", "config")
print(session.__package__, sys.modules["interpose.config"].__path__ == [config])
"""


def started(places: str) -> list[str]:
    asked = STARTED.replace("{PLACES}", places)
    words = [sys.executable, "-c", asked, *map(str, interpose.__path__)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.long
def test_what_every_start_imports_is_executed_in_one_go():
    assert started("made.places") == ["True []", "True True", "interpose.capture True"]


@pytest.mark.long
def test_where_that_fails_it_is_imported_from_its_files():
    first, *others = started("{**made.places, '<start>': (names, begin, end - 100)}")

    assert first.startswith("False ") and "'interpose.capture.session'" in first
    assert others == ["True True", "interpose.capture True"]
