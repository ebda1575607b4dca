"""Fuzz the readers with atheris, beginning with the inputs that are kept.

    python fuzz.py SECONDS [READER …]              each in turn, all unless said, for so long
    python fuzz.py READER [options of libFuzzer]   one

An input that the reader does not refuse in a line is written to `crash-…` in the working directory; once what it
found is mended, it goes into tests/corpus/READER.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import atheris
import zstandard

sys.path.append(str(Path(__file__).parents[2]))  # behind the installed package: that is what is tested
with atheris.instrument_imports(include=["interpose"]):
    import interpose.cli.main
    from interpose.errors import InterposeError
    from interpose.experiments.maintenance import repair
    from interpose.experiments.model import intrinsics, recorded_files

    interpose.cli.main.load_commands()
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
    if reader not in (*hostile.readers(), hostile.TAR):
        sys.exit(f"{reader}: no reader; there are {', '.join([*hostile.readers(), hostile.TAR])}")
    # They are the same each time, and take most of it.
    if reader not in ("log", "map", "packed", "group", hostile.TAR):
        recorded_files.read_log = read_once(recorded_files.read_log)
        intrinsics.read_map = read_once(intrinsics.read_map)
    with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as found:
        place = hostile.Place(Path(top))

        def once(data: bytes) -> None:
            with place.placed(reader, data) as path:
                hostile.read_all_of(str(path))
                if path == place.experiment and len(data) % 4 == 0:
                    with suppress(InterposeError):
                        repair.repair(str(path))
                    hostile.read_all_of(str(path))

        for number, data in enumerate(known(reader, place)):
            (Path(found) / str(number)).write_bytes(data)
        atheris.Setup([sys.argv[0], *options, found], once)
        atheris.Fuzz()


def known(reader: str, place: hostile.Place) -> Iterator[bytes]:
    """The first inputs: what is kept, and the file of a sound experiment."""
    kept = hostile.CORPUS / ("packed" if reader == hostile.TAR else reader)
    for path in kept.iterdir():
        data = path.read_bytes()
        if reader != hostile.TAR:
            yield data
            continue
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data)
    sound = place.experiment / hostile.FILES.get(reader, ".")
    if sound.is_file():
        yield sound.read_bytes().rstrip(b"\0")


def fuzz_in_turn(seconds: str, readers: list[str]) -> int:
    """Each in a process of its own, which libFuzzer ends; gives how many found something."""
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=1500", "-max_len=16384"]
    words = [[sys.executable, __file__, reader, *limits, f"-artifact_prefix=./{reader}-"] for reader in readers]
    return sum(subprocess.run(each).returncode != 0 for each in words)


if __name__ == "__main__":
    if sys.argv[1].isdecimal():
        sys.exit(fuzz_in_turn(sys.argv[1], sys.argv[2:] or [*hostile.readers(), hostile.TAR]))
    fuzz(sys.argv[1], sys.argv[2:])
