"""Events of locks, for the tests of them."""

LEAST_NS = 50_000_000  # what was made to wait for 100 ms waited at least that long, also on a busy machine


def long_events(done, name="", process=None):
    return [event for event in done.events(name, process) if event.wall_ns > LEAST_NS]


def main_thread(process):
    (thread,) = [thread for thread in process.threads if thread.record.main]
    return thread


def line_of(done, mark):
    """The number of the line of the program that has this mark."""
    lines = (done.directory / "program.py").read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(mark)]
    return number
