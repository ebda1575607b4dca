"""Which code is the program's own: what installers generate for a package is not."""

import pytest
from tracing import events_of

GENERATED = {
    "pip": """
import sys
from mimetypes import init
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(init())
""",
    "pip until 25": r"""
# -*- coding: utf-8 -*-
import re
import sys
from mimetypes import init
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\.pyw|\.exe)?$', '', sys.argv[0])
    sys.exit(init())
""",
    "uv": """
import sys
from mimetypes import init
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit(init())
""",
}
WRITTEN = {
    "another ending": """
import sys
from mimetypes import init
if __name__ == "__main__":
    if sys.argv[0].endswith(".gz"):
        sys.argv[0] = sys.argv[0][:-3]
    sys.exit(init())
""",
    "one more text": """
import sys
from mimetypes import init
if __name__ == "__main__":
    for path in sys.argv[1:]:
        if path.endswith(".exe"):
            sys.exit("no programs")
    init()
""",
    "no function of a package": """
import sys
import mimetypes
if __name__ == "__main__":
    if sys.argv[0].endswith(".exe"):
        sys.exit(1)
    mimetypes.init()
""",
}


def own_functions(done):
    """The program's own functions that calls were made from."""
    process = done.experiment.founder
    found = [process.own_line(event.stack) for event in events_of(process, "os.stat")]
    return {line.function for line in found if line and line.own}


@pytest.mark.parametrize("source", GENERATED.values(), ids=GENERATED)
def test_a_console_script_is_not_the_programs_own_code(traced, source):
    done = traced(source)

    assert (done.returncode, done.stderr) == (0, "")
    assert list(events_of(done.experiment.founder, "os.stat"))
    assert own_functions(done) == set()


@pytest.mark.parametrize("source", WRITTEN.values(), ids=WRITTEN)
def test_a_program_that_looks_much_like_one_is_own_code(traced, source):
    done = traced(source)

    assert (done.returncode, done.stderr) == (0, "")
    assert own_functions(done) == {"<module>"}
