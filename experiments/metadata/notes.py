"""What a user has noted of an experiment: lines of text in a file of their own, which may be edited."""

from __future__ import annotations

import os

from interpose.errors import ExperimentError
from interpose.experiments.metadata import names
from interpose.experiments.model.files import Damages, open_plain

NOTES = "notes"
LARGEST_NOTES_BYTES = 64 * 1024


def read_notes(directory: str, place: str, damages: Damages) -> list[str]:
    """The lines of the notes. A file longer than notes can be is not read, and noted."""
    try:
        descriptor = open_plain(os.path.join(directory, NOTES))
    except FileNotFoundError:
        return []
    except OSError as error:
        damages.add(f"{place}/{NOTES}", error.strerror or "cannot be read")
        return []
    with open(descriptor, "rb") as file:
        data = file.read(LARGEST_NOTES_BYTES + 1)
    if len(data) > LARGEST_NOTES_BYTES:
        damages.add(f"{place}/{NOTES}", f"longer than {LARGEST_NOTES_BYTES >> 10} KiB, the rest was not read")
        data = data[:LARGEST_NOTES_BYTES]
    return data.decode("utf-8", "replace").splitlines()


def write_notes(directory: str, lines: list[str]) -> None:
    """Replace the notes, at once for all readers. Raises OSError, or ExperimentError if there are too many."""
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if len(data) > LARGEST_NOTES_BYTES:
        raise ExperimentError(f"{directory}/{NOTES}: notes are at most {LARGEST_NOTES_BYTES >> 10} KiB")
    written = os.path.join(directory, f".{NOTES}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(written, flags, 0o600)
    os.fchmod(descriptor, names.file_mode(directory))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.rename(written, os.path.join(directory, NOTES))
    except OSError:
        os.unlink(written)
        raise
