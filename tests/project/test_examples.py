"""The examples: they do what they say, and do the same when they are recorded."""

import os
import re
import select
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

EXAMPLES = Path(__file__).parents[2] / "examples"
INPUT = EXAMPLES / "orders.txt"
END_OF_FILE = "\4"  # what Ctrl-D types
CLEAR = b"\033[H\033[2J"

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def orders(tmp_path: Path, own_environment: dict[str, str]) -> Run:
    """A function that runs the order entry in an empty directory."""

    def run(*words: object, input: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, str(EXAMPLES / "orders.py"), *map(str, words)],
            cwd=tmp_path,
            env={**own_environment, **variables},
            input=input,
            capture_output=True,
            timeout=60,
        )

    return run


class Terminal:
    """The order entry at a terminal of its own, and what it shows there."""

    def __init__(self, words: list[str], directory: Path, environment: dict[str, str]) -> None:
        self._ours, theirs = os.openpty()
        self._process = subprocess.Popen(
            words, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self._shown = b""

    def enter(self, *lines: str) -> list[str]:
        """Type lines, of which the menu asks for the first; gives the screen when the menu is there again."""
        self._wait_for_the_menu()
        self._type(lines)
        self._wait_for_the_menu()
        return self._shown.rpartition(CLEAR)[2].decode().splitlines()

    def leave(self, line: str) -> tuple[int, str]:
        """Type the last line; gives the exit code and the last line that was shown."""
        self._wait_for_the_menu()
        self._type([line])
        while self._read():
            pass
        return self._process.wait(60), self._shown.decode().splitlines()[-1]

    def close(self) -> None:
        """Take the terminal away, and the program with it if it still runs."""
        os.close(self._ours)
        self._process.kill()
        self._process.wait(60)

    def _type(self, lines: Sequence[str]) -> None:
        self._shown = b""
        os.write(self._ours, "".join(f"{line}\n" for line in lines).encode())

    def _wait_for_the_menu(self) -> None:
        while not self._shown.endswith(b"QUIT: "):
            assert self._read(), self._shown

    def _read(self) -> bytes:
        assert select.select([self._ours], [], [], 60)[0], self._shown
        try:
            more = os.read(self._ours, 10_000)
        except OSError:  # the program has ended
            return b""
        self._shown += more
        return more


@pytest.fixture
def terminal(tmp_path: Path, own_environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """A function that starts the order entry at a terminal, in an empty directory."""
    started = []

    def start(*words: object, **variables: str) -> Terminal:
        command = [sys.executable, str(EXAMPLES / "orders.py"), *map(str, words)]
        started.append(Terminal(command, tmp_path, {**own_environment, **variables}))
        return started[-1]

    yield start
    for each in started:
        each.close()


def expected_totals() -> tuple[int, int, int]:
    """Orders, their worth and what was paid in cents, worked out from the input alone."""
    due: list[int] = []
    customers: list[str] = []
    worth = paid = 0
    for line in INPUT.read_text(encoding="utf-8").splitlines():
        match line.split("|"):
            case ["NEW", customer, _, quantity, price] if int(quantity) > 0:
                owed = sum(cents for other, cents in zip(customers, due, strict=True) if other == customer)
                if owed + int(quantity) * int(price) <= 500_000:
                    customers.append(customer)
                    due.append(int(quantity) * int(price))
                    worth += due[-1]
            case ["PAY", number, amount] if int(number) <= len(due) and int(amount) <= due[int(number) - 1]:
                due[int(number) - 1] -= int(amount)
                paid += int(amount)
    return len(due), worth, paid


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def logged(database: Path) -> list[str]:
    """The lines of the log that lies beside a database, without their times."""
    lines = database.with_name(f"{database.name}.log").read_text(encoding="utf-8").splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", line) for line in lines)
    return [line[24:] for line in lines]


def test_the_totals_of_the_orders_are_right(orders):
    count, worth, paid = expected_totals()

    done = orders(INPUT)

    assert (done.returncode, done.stderr) == (0, b"")
    last = done.stdout.decode().splitlines()[-1]
    assert last == f"{count} orders, worth {worth / 100:,.2f}, paid {paid / 100:,.2f}"
    assert count == 300


@pytest.mark.long
def test_a_pipe_gives_the_same_screens_as_a_file(orders):
    from_file = orders(INPUT)
    from_pipe = orders(input=INPUT.read_bytes())

    assert (from_pipe.returncode, from_pipe.stdout, from_pipe.stderr) == (0, from_file.stdout, b"")


@pytest.mark.long
def test_the_same_input_gives_the_same_database(orders, tmp_path):
    for name in ("one.db", "two.db"):
        assert orders("--database", name, INPUT).returncode == 0

    one, two = (
        [rows(tmp_path / name, f"SELECT * FROM {table}") for table in ("orders", "payments")]
        for name in ("one.db", "two.db")
    )
    assert one == two
    assert len(one[0]) == 300
    assert one[0][0] == (1, "Köhler GmbH", "Work gloves, leather, size 9", 2, 1290)


def test_nothing_is_left_where_no_database_is_named(orders, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    orders(input=b"NEW|Hill Farm|Rope|2|100\n", TMPDIR=str(temporary))

    assert [*tmp_path.iterdir()] == [temporary]
    assert not [*temporary.iterdir()]


def test_a_later_run_goes_on_with_the_orders_of_an_earlier_one(orders, tmp_path):
    orders("--database", "shop.db", input=b"NEW|Hill Farm|Rope|2|100\n")

    done = orders("--database", "shop.db", input=b"PAY|1|150\nNEW|Hill Farm|Nails|1|30\n")

    assert done.stdout.decode().splitlines()[-1] == "2 orders, worth 2.30, paid 1.50"
    assert logged(tmp_path / "shop.db") == [
        "order 1: NEW|Hill Farm|Rope|2|100",
        "order 1: PAY|1|150",
        "order 2: NEW|Hill Farm|Nails|1|30",
    ]


def test_the_log_has_a_line_for_each_transaction(orders, tmp_path):
    entered = [line for line in INPUT.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]

    orders("--database", "shop.db", INPUT)

    lines = logged(tmp_path / "shop.db")
    assert [line.split(": ")[1] for line in lines] == entered
    assert [line for line in lines if line.startswith("refused")] == [
        "refused: NEW|Hill Farm|Roof tile, clay, red|0|185: quantity and price must be above 0",
        "refused: PAY|9999|100: there is no order 9999",
        "refused: PAY|201|99999999: 309.60 is due",
        f"refused: {entered[-2]}: Delgado Builders would owe 5,268.00, the limit is 5,000.00",
    ]


def test_what_is_refused_is_said_and_the_rest_goes_on(orders):
    refused = {
        "NEW|Hill Farm|Rope|0|100": "quantity and price must be above 0",
        "NEW||Rope|1|100": "customer and item are needed",
        "NEW|Hill Farm|Rope|two|100": "'two' is no number of up to nine digits",
        "NEW|Hill Farm|Rope|1|99999999999999999999": "'99999999999999999999' is no number of up to nine digits",
        "NEW|Hill Farm|Tractor|1|500001": "Hill Farm would owe 5,000.01, the limit is 5,000.00",
        "PAY|7|1": "there is no order 7",
        "PAY|1|-5": "'-5' is no number of up to nine digits",
        "SELL|1": "no such transaction",
        "SHOW": "no such transaction",
    }

    done = orders(input="\n".join([*refused, "NEW|Hill Farm|Rope|2|100", "PAY|1|201"]).encode())

    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert [line for line in lines if line.startswith("refused")] == [
        *(f"refused: {entered}: {reason}" for entered, reason in refused.items()),
        "refused: PAY|1|201: 2.00 is due",
    ]
    assert lines[-1] == "1 orders, worth 2.00, paid 0.00"


def test_paid_orders_no_longer_count_against_the_credit(orders):
    done = orders(input=b"NEW|Hill Farm|Tractor|1|500000\nPAY|1|500000\nNEW|Hill Farm|Tractor|1|500000\n")

    assert done.stdout.decode().splitlines()[-1] == "2 orders, worth 10,000.00, paid 5,000.00"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt"], "orders.py: nowhere.txt: No such file or directory\n"),
        (["."], "orders.py: .: Is a directory\n"),
        (["latin.txt"], "orders.py: latin.txt: this is not text in UTF-8\n"),
        (["--database", "nowhere/shop.db"], "orders.py: nowhere/shop.db: unable to open database file\n"),
        (["--database", "latin.txt"], "orders.py: latin.txt: file is not a database\n"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(orders, tmp_path, words, said):
    (tmp_path / "latin.txt").write_text("NEW|Köhler GmbH|Rope|2|100\n" * 100, encoding="latin-1")

    done = orders(*words)

    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", said)


def test_at_a_terminal_orders_are_typed_into_forms(terminal, tmp_path):
    shop = terminal("--database", "shop.db")

    taken = shop.enter("new", "Köhler GmbH", "Rope, 20 m", "2", "1290")
    shop.enter("NEW", "Hill Farm", "Nails", "1", "30")
    receipt = shop.enter("PAY", "1", "2000")
    shown = shop.enter("SHOW", "1")
    left = shop.leave("QUIT")

    assert taken == [
        "ORDER ENTRY" + "shop.db".rjust(49),
        "-" * 60,
        "order           1",
        "customer        Köhler GmbH",
        "item            Rope, 20 m",
        "price                2 x      12.90 =        25.80",
        "due                                          25.80",
        "-" * 60,
        "NEW, PAY, SHOW or QUIT: ",
    ]
    assert [line.strip("| ") for line in receipt[2:-1]] == ["RECEIPT", "order 1", "20.00"]
    assert "due                                           5.80" in shown
    assert left == (0, "2 orders, worth 26.10, paid 20.00")
    assert rows(tmp_path / "shop.db", "SELECT customer, quantity, price FROM orders") == [
        ("Köhler GmbH", 2, 1290),
        ("Hill Farm", 1, 30),
    ]
    assert rows(tmp_path / "shop.db", "SELECT * FROM payments") == [(1, 2000)]
    assert logged(tmp_path / "shop.db") == [
        "order 1: NEW|Köhler GmbH|Rope, 20 m|2|1290",
        "order 2: NEW|Hill Farm|Nails|1|30",
        "order 1: PAY|1|2000",
        "order 1: SHOW|1",
    ]


def test_at_a_terminal_what_is_refused_is_said_above_the_menu(terminal):
    shop = terminal()

    assert shop.enter("PAY", "7", "1") == [
        "ORDER ENTRY" + "nothing is kept".rjust(49),
        "-" * 60,
        "refused: PAY|7|1: there is no order 7",
        "NEW, PAY, SHOW or QUIT: ",
    ]
    assert "refused: SELL: no such transaction" in shop.enter("SELL")
    assert shop.leave(END_OF_FILE) == (0, "0 orders, worth 0.00, paid 0.00")


@pytest.mark.long
def test_recorded_or_not_the_orders_are_the_same(orders, tmp_path):
    plain = orders(INPUT)
    recorded = orders(INPUT, INTERPOSE="1")

    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (plain.returncode, plain.stdout, b"")
    made = names.newest(os.fspath(tmp_path))
    assert made is not None
    experiment = Experiment(made)
    assert not experiment.damages.found
    assert sum(thread.record.recorded for thread in experiment.founder.threads) > 2_000


def test_recorded_or_not_the_terminal_is_the_same(terminal, tmp_path):
    def dialogue(**variables: str) -> list[object]:
        shop = terminal(**variables)
        return [shop.enter("NEW", "Hill Farm", "Nails", "1", "30"), shop.enter("PAY", "1", "30"), shop.leave("QUIT")]

    assert dialogue(INTERPOSE="1") == dialogue()
    assert names.newest(os.fspath(tmp_path)) is not None
