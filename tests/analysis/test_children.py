"""Child processes by program and by the line that started them."""

import signal

import pytest

from interpose.analysis.recording.children import children_of
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build

pytestmark = pytest.mark.any_python

SECOND = 1_000_000_000
EXIT_1 = 1 << 8  # as waitpid(2) gives it


@pytest.mark.parametrize(
    ("status", "failed"), [(0, 0), (EXIT_1, 1), (signal.SIGKILL, 1), (signal.SIGSEGV, 1), (signal.SIGTERM, 0)]
)
def test_a_child_that_was_asked_to_end_has_not_failed(tmp_path, status, failed):
    build = Build(tmp_path / "t.1.er")
    build.child(end_ns=START_NS + SECOND, pid=77, how=3, status=int(status), command=build.string("/usr/bin/gzip"))

    (found,) = children_of(Experiment(str(build.write())))

    assert (found.program, found.count, found.failed) == ("gzip", 1, failed)
