"""Lines and calls recorded at once: the report says what tracing lines does to its figures."""

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences

BOTH = {"INTERPOSE": "calls,lines"}


def test_the_calibration_of_lines_is_overhead(traced):
    done = traced("pass", **BOTH)
    rows = {row.kind: row.sums for row in profile(Analysis(done.experiment), "kind").rows}

    assert rows["code"].self_cpu_ns < rows["overhead"].self_cpu_ns


def test_the_finding_of_a_program_that_computes_names_the_cost_of_tracing_its_lines(traced):
    done = traced("total = 0\nfor number in range(2_000_000):\n    total += number\n", **BOTH)
    survey = Survey(Analysis(done.experiment))
    (computing,) = [each for each in found_in(survey) if each.rule == "computing"]
    words = Sentences([computing], str(done.directory), survey.matters_ns)

    assert "CPU time between recorded calls, with the cost of tracing its lines" in words.of(computing)
    assert advice_for(computing) == "See what each line takes without that cost: interpose lines."
