"""A shop whose calls have findings."""

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import LEAST_SHARE, found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event

MS = 1_000_000
SHOP = "/home/u/shop/orders.py"
REQUEST = "wsgi.request"
# Rules that have something to say of most programs, and tests of their own.
GENERAL = ("slow calls", "unexplained wait", "wait for CPU")


class Shop(Build):
    """An experiment in which the calls follow each other, each for a millisecond unless said."""

    def __init__(self, directory, *, wall_ns=SECOND, cpu_ns=0, **log):
        super().__init__(directory, **log)
        self.wall_ns, self.cpu_ns = wall_ns, cpu_ns
        self.rows, self.numbers, self.stacks_of = [], {}, {}
        self.now = {}

    def call(self, name, kind, detail="", *, line=88, times=1, each_ns=MS, thread=1, inside=0, **more):
        """Calls one after the other; gives the number of the last."""
        for _ in range(times):
            number = len(self.rows) + 1
            at = self.now.get(thread, 0)
            self.now[thread] = at + each_ns
            values = {"intrinsic": self.number_of(name, kind), "stack": self.stack_of(line), "thread": thread}
            values |= {"detail": self.string(detail) if detail else 0, "call": number, "parent": inside}
            self.rows.append(event(at, each_ns, **values | more))
        return len(self.rows)

    def ask(self, statement, **more):
        """Execute a statement."""
        self.call("sqlite3.Cursor.execute", "db", statement, **more)

    def request(self, detail, calls):
        """A request that is served, in which `calls` makes calls."""
        number, at = 10_000 + len(self.rows), self.now.get(1, 0)
        calls(number)
        wall_ns = self.now[1] - at
        values = {"intrinsic": self.number_of(REQUEST, "logic"), "detail": self.string(detail)}
        self.rows.append(event(at, wall_ns, call=number, inner_wall_ns=wall_ns, **values))

    def number_of(self, name, kind):
        if name not in self.numbers:
            self.numbers[name] = self.intrinsic(name, kind)
        return self.numbers[name]

    def stack_of(self, line):
        if line not in self.stacks_of:
            self.stacks_of[line] = self.stack(self.site(SHOP, line, f"line_{line}")) if line else 0
        return self.stacks_of[line]

    def map_xml(self):
        return super().map_xml().replace(f'name="{REQUEST}"', f'name="{REQUEST}" transaction="is"')

    def survey(self, consolidator=None):
        for thread in range(1, max(self.now, default=1) + 1):
            mine = [row for row in self.rows if row["thread"] == thread]
            self.events(mine)
            ends = {"end_ns": START_NS + self.wall_ns, "end_cpu_ns": self.cpu_ns}
            self.thread(**ends, recorded=len(mine), main=int(thread == 1), tid=800 + thread)
        self.ended(self.wall_ns, self.cpu_ns)
        return Survey(Analysis(Experiment(str(self.write())), consolidator=consolidator))

    def found(self, least_share=LEAST_SHARE):
        """Rule, calls, time and bound of each finding, without those of general rules."""
        told = found_in(self.survey(), least_share)
        return [(each.rule, each.calls, each.wall_ns, each.bound_ns) for each in told if each.rule not in GENERAL]


BY_NUMBER = "SELECT * FROM orders WHERE number = ?"
