"""The program trace: calls indented by what they were made inside of, one by one and put together."""

import json

import pytest
from tracing import write_program

PROGRAM = """
    import interpose, os, sqlite3
    class Account:
        def __conform__(self, protocol):
            os.stat("/")
            return "1"
    connection = sqlite3.connect(":memory:")
    for customer in ("Ann", "Bob", "Cid"):
        with interpose.transaction("order"):
            with interpose.transaction("credit check"):
                connection.execute("select ?", (Account(),))
            os.getcwd()
"""
INSIDE = [
    (0, "interpose.transaction", "order"),
    (1, "interpose.transaction", "credit check"),
    (2, "sqlite3.Connection.execute", "select ?"),
    (3, "os.stat", "/"),
    (1, "os.getcwd", None),
]


@pytest.fixture(params=[{}, {"INTERPOSE_CONSOLIDATE": "1"}], ids=["one by one", "put together"])
def shown(request, tmp_path, interpose):
    """How often what lies inside a transaction is to be shown, its calls being one by one or put together."""
    done = interpose("run", str(write_program(tmp_path, PROGRAM)), variables=request.param)
    assert (done.returncode, done.stderr) == (0, "")
    return 1 if request.param else 3


def test_calls_are_indented_by_what_they_were_made_inside_of(shown, interpose):
    lines = interpose("events", variables={"COLUMNS": "400"}).stdout.splitlines()
    margin = lines[0].index("intrinsic")
    from_first = [line[margin:] for line in lines if line[margin:].startswith("interpose.transaction  ")]
    first = next(place for place, line in enumerate(lines) if "interpose.transaction" in line)
    inside = [line[margin:] for line in lines[first : first + shown * len(INSIDE)]]

    assert len(from_first) == shown
    for (level, name, _), line in zip(INSIDE * shown, inside, strict=True):
        assert line.startswith(f"{'  ' * level}{name}  ")


def test_machines_are_told_the_level(shown, interpose):
    rows = json.loads(interpose("events", "--format", "json").stdout)
    first = next(place for place, row in enumerate(rows) if row["intrinsic"] == "interpose.transaction")
    inside = rows[first : first + shown * len(INSIDE)]

    assert [(row["depth"], row["intrinsic"], row["detail"]) for row in inside] == INSIDE * shown
    assert sum(row.get("calls", 1) for row in inside) == 3 * len(INSIDE)
