"""Coverage as a `.coverage` file, which coverage.py's own package writes."""

from __future__ import annotations

import os
import sqlite3
from importlib import import_module
from urllib.parse import quote

from interpose.analysis.coverage.coverage import Coverage
from interpose.errors import InterposeError, UsageError


def write(coverage: Coverage, path: str, append: bool) -> None:
    """Write the lines that ran, by context, into the file at `path`, which may be there where `append` says so.

    Raises UsageError if it is there, InterposeError if it cannot be written, or coverage.py is not installed.
    """
    try:
        sqldata, exceptions = import_module("coverage.sqldata"), import_module("coverage.exceptions")
    except ImportError:
        raise InterposeError(f"{path}: coverage.py writes it, which is not installed: pip install coverage") from None
    is_there = os.path.lexists(path)
    if is_there and not append:
        raise UsageError(f"{path}: already exists; --append adds to it")
    if is_there:
        _check(path)
    files = [module for module in coverage.modules if module.path.startswith("/")]
    data = sqldata.CoverageData(basename=path)
    try:
        if is_there:
            data.read()  # writing to a file that was not read starts it again
        for context in sorted({each for module in files for each in module.lines_by_context}):
            data.set_context(context)
            data.add_lines({module.path: module.lines_by_context.get(context, ()) for module in files})
        data.touch_files([module.path for module in files if module.has_run])
        data.write()
    except (exceptions.CoverageException, OSError) as error:
        raise InterposeError(f"{path}: {error}") from error


def _check(path: str) -> None:
    """Raises UsageError if the file is not one of coverage.py's, which would make it one."""
    try:
        database = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True)
        try:
            database.execute("select version from coverage_schema").fetchone()
        finally:
            database.close()
    except sqlite3.Error as error:
        raise UsageError(f"{path}: no data file of coverage.py's, so nothing is added to it: {error}") from None
