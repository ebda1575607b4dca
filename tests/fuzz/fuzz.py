"""Fuzz one reader with atheris: `python fuzz.py READER [options of libFuzzer]`, with what is known as the first inputs.

An input that the reader does not refuse in a line is written to `crash-…` in the working directory; once what it
found is mended, it goes into tests/corpus/READER.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

sys.path.append(str(Path(__file__).parents[2]))  # behind the installed package: that is what is tested
with atheris.instrument_imports(include=["interpose"]):
    import interpose.commands.main
    from interpose.errors import InterposeError
    from interpose.experiments import process, repair

    interpose.commands.main.load_commands()
    from tests import hostile


def read_once(read: Callable[..., object]) -> Callable[..., object]:
    """What the file at a path says, as it was when it was first read."""
    known: dict[str, object] = {}

    def again(path: str, place: str, damages: object) -> object:
        if path not in known:
            known[path] = read(path, place, damages)
        return known[path]

    return again


def fuzz(reader: str, options: list[str]) -> None:
    """Read hostile inputs of one kind until one is not refused, or the time is over."""
    if reader not in hostile.readers():
        sys.exit(f"{reader}: no reader; there are {', '.join(hostile.readers())}")
    if reader not in ("log", "map", "packed", "group"):  # these are the same each time, and take most of it
        process.read_log, process.read_map = read_once(process.read_log), read_once(process.read_map)
    with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as found:
        place = hostile.Place(Path(top))

        def once(data: bytes) -> None:
            with place.placed(reader, data) as path:
                hostile.read_all_of(str(path))
                if path == place.experiment and len(data) % 4 == 0:
                    with suppress(InterposeError):
                        repair.repair(str(path))
                    hostile.read_all_of(str(path))

        known = hostile.CORPUS / reader
        name = hostile.FILES.get(reader, "")
        if (place.experiment / name).is_file():
            (Path(found) / "whole").write_bytes((place.experiment / name).read_bytes().rstrip(b"\0"))
        atheris.Setup([sys.argv[0], *options, found, *([str(known)] if known.is_dir() else [])], once)
        atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], sys.argv[2:])
