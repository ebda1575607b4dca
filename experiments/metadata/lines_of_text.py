"""Small files of text lines in an experiment's directory, which may also be edited by hand."""

from __future__ import annotations

import os

from interpose.errors import ExperimentError
from interpose.experiments.metadata.creating import replacing
from interpose.experiments.model.files import Damages, open_plain

LARGEST_BYTES = 64 * 1024


def read_lines(directory: str, name: str, place: str, damages: Damages) -> list[str]:
    """The lines of the file; empty if there is no file. What exceeds LARGEST_BYTES is not read, but noted as damage."""
    try:
        descriptor = open_plain(os.path.join(directory, name))
    except FileNotFoundError:
        return []
    except OSError as error:
        damages.add(f"{place}/{name}", error.strerror or "cannot be read")
        return []
    with open(descriptor, "rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        damages.add(f"{place}/{name}", f"longer than {LARGEST_BYTES >> 10} KiB, the rest was not read")
        data = data[:LARGEST_BYTES]
    return data.decode("utf-8", "replace").splitlines()


def write_lines(directory: str, name: str, lines: list[str]) -> None:
    """Replace the file, at once for all readers. Raises OSError, or ExperimentError if it became too long."""
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if len(data) > LARGEST_BYTES:
        raise ExperimentError(f"{directory}/{name}: {name} are at most {LARGEST_BYTES >> 10} KiB")
    with replacing(os.path.join(directory, name)) as file:
        file.write(data)
