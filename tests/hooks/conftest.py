"""What the tests of hooks record with."""

import pytest
from edges import CONNECT


@pytest.fixture
def both(traced):
    """Run a program with us and without; what both said is the same. Gives the former."""

    def run(source, *arguments, **variables):
        off = traced(CONNECT + source, *arguments, **{**variables, "INTERPOSE": "0"})
        on = traced(CONNECT + source, *arguments, **variables)
        assert off.stdout, off.stderr
        assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, off.returncode)
        assert sum(thread.record.dropped for each in on.experiment.processes for thread in each.threads) == 0
        return on

    return run
