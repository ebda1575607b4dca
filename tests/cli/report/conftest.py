"""Where the tests of commands are run."""

import pytest

from interpose.cli.main import main


@pytest.fixture(autouse=True)
def work(place, monkeypatch):
    """A working directory beside that of the state."""
    (place / "work").mkdir()
    monkeypatch.chdir(place / "work")
    return place / "work"


@pytest.fixture
def interpose(capsys):
    """Runs a command line; gives exit code, standard output and standard error."""

    def run(*arguments):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return run
