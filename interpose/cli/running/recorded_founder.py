"""The founder of the experiment of `interpose run`, available once its program has begun to record."""

from __future__ import annotations

import os

from interpose.experiments.metadata import names
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process


class Begun:
    """The founder of the experiment at `path`, as soon as there is one. Asking raises ExperimentError."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._process: Process | None = None

    def founder(self) -> Process | None:
        """The founder's process; None while nothing, or not all of its log, is written."""
        if self._process is None and names.is_recorded(self.path):
            process = Process(self.path, os.path.basename(self.path), "", Damages())
            if process.log.control is not None and process.log.pid:
                self._process = process
        return self._process
