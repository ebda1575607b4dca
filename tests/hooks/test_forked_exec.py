"""A child with a `preexec_fn` is a Python until its program runs, and that program from then on."""

import os

from starting import told

from interpose.analysis.recording.children import children_of
from interpose.analysis.recording.ending import ending

COMPUTES = "['sh', '-c', 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done']"


def _children(done):
    return {each.program: each for each in children_of(done.experiment)}


def test_a_program_that_is_not_python_has_its_time_and_is_told_as_not_followed(traced):
    done = traced(f"""
        import os, resource, subprocess
        for _ in range(2):
            subprocess.run(["sleep", "0.3"], preexec_fn=os.setsid)
        subprocess.run({COMPUTES}, preexec_fn=os.setsid)
        print(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))
    """).ended_well()
    cpu_s = float(done.stdout)

    became = [(ending(each).state, os.path.basename(ending(each).command)) for each in done.experiment.processes]
    assert became == [("exit", ""), ("exec", "sleep"), ("exec", "sleep"), ("exec", "sh")]
    for process in done.experiment.processes[1:]:
        (became,) = process.not_followed
        assert became.why in ("not Python", "another C library")  # an interpreter may come with its own
        assert process.started_as.record.start_ns < became.record.start_ns <= process.started_as.record.end_ns
    children = _children(done)
    assert [children[name].count for name in ("sleep", "sh")] == [2, 1]
    assert children["sleep"].wall_ns >= 600_000_000
    assert abs(sum(each.cpu_ns for each in children.values()) / 1e9 - cpu_s) < 0.001


def test_a_python_is_what_the_child_became_whatever_its_variables(traced):
    done = traced("""
        import os, subprocess, sys
        for variables in (None, dict(os.environ), {}):
            subprocess.run([sys.executable, "-c", "1"], preexec_fn=os.setsid, env=variables)
    """).ended_well()

    for forked in done.experiment.processes[1:]:
        if forked.parent:
            (python,) = forked.descendants
            assert (ending(forked).state, ending(python).state) == ("exec", "exit")
            assert os.path.realpath(ending(forked).command) == os.path.realpath(python.log.executable)
            assert python.log.pid == forked.log.pid
            assert python.started_as.record.start_ns <= python.log.start_ns
            assert forked.not_followed == []
    assert done.experiment.founder.not_followed == []
    assert [each.count for each in children_of(done.experiment)] == [3]


def test_a_child_that_becomes_no_program_stays_the_python_that_it_is(traced):
    done = traced("""
        import os, subprocess
        open("no-program", "w").write("x")
        os.chmod("no-program", 0o755)
        for words, function in ((["no-such"], os.getpid), (["./no-program"], os.getpid), (["true"], lambda: 1 / 0)):
            try:
                subprocess.run(words, preexec_fn=function)
            except (OSError, subprocess.SubprocessError) as error:
                print(type(error).__name__)
    """).ended_well()

    assert done.stdout.split() == ["FileNotFoundError", "OSError", "SubprocessError"]
    assert told(done.experiment) == [("", "exit", 0), *[(f"_f{each}", "exit", 255) for each in (1, 2, 3)]]
    assert _children(done)["forked"].failed == 3


def test_what_is_run_in_other_ways_is_noted_once(traced):
    done = traced("""
        import asyncio, os, subprocess
        async def main():
            await (await asyncio.create_subprocess_exec("true", preexec_fn=os.setsid, close_fds=False)).wait()
        asyncio.run(main())
        subprocess.run(["true"], preexec_fn=lambda: os.execvp("sleep", ["sleep", "0"]))
        subprocess.run(["true"])
        child = os.fork()
        if not child:
            os.execvp("true", ["true"])
        os.waitpid(child, 0)
    """).ended_well()

    became = [os.path.basename(each.not_followed[0].command) for each in done.experiment.processes[1:]]
    assert became == ["true", "sleep", "true"]
    assert [len(each.not_followed) for each in done.experiment.processes] == [1, 1, 1, 1]


def test_what_the_function_calls_changes_nothing(traced):
    done = traced(f"""
        import os, resource, subprocess, sys
        def tried(start):
            try:
                start()
            except OSError:
                pass
        def function():
            os.write(2, b"")
            subprocess.run(["true"])
            subprocess.run(["true"], preexec_fn=os.getpid)
            tried(lambda: subprocess.run(["no-such"]))
            tried(lambda: subprocess.run(["no-such"], preexec_fn=os.getpid))
            tried(lambda: os.execv("no-such", ["no-such"]))
        for variables in (None, dict(os.environ)):
            subprocess.run({COMPUTES}, preexec_fn=function, env=variables)
            subprocess.run([sys.executable, "-c", "1"], preexec_fn=function, env=variables)
        print(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))
    """).ended_well()

    founder = done.experiment.founder
    became = [[ending(each).state, os.path.basename(ending(each).command)] for each in founder.descendants]
    assert [name.rstrip("0123456789.") for _, name in became] == ["sh", "python"] * 2, became
    assert {state for state, _ in became} == {"exec"}
    assert abs(sum(each.cpu_ns for each in children_of(done.experiment)) / 1e9 - float(done.stdout)) < 0.001
