"""An experiment as a directory of Parquet files, a file for each table of `interpose.exports.arrow_tables`."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.errors import InterposeError
from interpose.exports import arrow_tables
from interpose.exports.optional import optional
from interpose.exports.single_events import refuse_without_events

parquet = optional("pyarrow.parquet")
_COMPRESSION = {"compression": "zstd", "compression_level": 1}


def write_directory(analysis: Analysis, directory: str) -> None:
    """Write the tables into `directory`, which must not be there yet. Raises InterposeError, UsageError."""
    schema = arrow_tables.schema()
    refuse_without_events(analysis.experiment)
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        raise InterposeError(f"{directory}: already exists; -o DIRECTORY names a new one") from None
    except OSError as error:
        raise InterposeError(f"{directory}: {error.strerror}") from error
    try:
        for name, table in arrow_tables.small_tables(analysis).items():
            parquet.write_table(table, os.path.join(directory, f"{name}.parquet"), **_COMPRESSION)
        _write_calls(analysis, schema, os.path.join(directory, f"{arrow_tables.CALLS}.parquet"))
    except BaseException as error:
        shutil.rmtree(directory, ignore_errors=True)  # a part of it would look like the whole
        if isinstance(error, OSError):
            raise InterposeError(f"{directory}: {_reason(error)}") from error
        raise


def _reason(error: OSError) -> str:
    """In the system's words; the library that writes has its own around them."""
    return os.strerror(error.errno) if error.errno else str(error)


def _write_calls(analysis: Analysis, schema: Any, path: str) -> None:
    names = [field.name for field in schema if str(field.type).startswith("dictionary")]
    differences = dict.fromkeys(arrow_tables.NUMBERS, "DELTA_BINARY_PACKED")  # a third of the time, half of the size
    kept = {"use_dictionary": names, "column_encoding": differences, "write_statistics": ["start_ns", "wall_ns"]}
    with parquet.ParquetWriter(path, schema, **kept, **_COMPRESSION) as writer, ThreadPoolExecutor(1) as other:
        written: Future[None] | None = None
        for batch in arrow_tables.calls(analysis):  # one is made while the one before is written
            if written:
                written.result()
            written = other.submit(writer.write_batch, batch)
        if written:
            written.result()
