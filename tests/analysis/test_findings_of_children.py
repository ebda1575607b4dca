"""Findings about child processes: only those are named that lived while they were waited for."""

import re

import pytest
from shops import MS

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.findings.waits import PIPE
from interpose.experiments.model.experiment import Experiment
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND, START_NS, Build, event

# Another thread waits at a pipe, from the beginning to the end.
WATCHES = """
    import os, subprocess, threading, time
    reader, writer = os.pipe()
    def watch():
        os.read(reader, 1)
    watcher = threading.Thread(target=watch)
    watcher.start()
    before = time.perf_counter()
"""
ENDS = """
    os.write(writer, b"x")
    watcher.join()
"""


def told(done):
    """What is found in the recording of a program, as rule, subject and sentence."""
    survey = Survey(Analysis(done.experiment))
    findings = found_in(survey)
    words = Sentences(findings, str(done.directory), survey.matters_ns)
    return [(each.rule, each.about, words.of(each)) for each in findings]


def polling(tmp_path, started_by, lived_ns, taken_ns=10_000_000):
    """What is found if the package joblib polls 50 times, and `started_by` started a child."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    own = build.stack(build.site("/home/u/app.py", 8, "main"))
    polls = build.stack(build.site("/venv/lib/site-packages/joblib/parallel.py", 1820, "_retrieve", own=0), own)
    starts = build.stack(build.site(f"/venv/lib/site-packages/{started_by}", 40, "start", own=0), own)
    sleep = build.intrinsic("time.sleep", "sleep")
    build.events([
        event(number * taken_ns, taken_ns, call=number + 1, stack=polls, intrinsic=sleep) for number in range(50)
    ])
    build.child(end_ns=START_NS + lived_ns, pid=77, how=3, stack=starts, command=build.string("/usr/bin/worker"))
    build.thread(end_ns=START_NS + 50 * taken_ns)
    build.ended(50 * taken_ns, 0)
    survey = Survey(Analysis(Experiment(str(build.write()))))
    findings = found_in(survey)
    words = Sentences(findings, "/home/u", survey.matters_ns)
    return [(each.rule, each.wall_ns, f"{words.of(each)} {advice_for(each)}") for each in findings if each.rows]


def test_a_package_that_polls_waits_for_the_children_that_it_started(tmp_path):
    ((rule, wall_ns, sentence),) = polling(tmp_path, "joblib/externals/loky/process_executor.py", 400_000_000)

    assert (rule, wall_ns) == ("child processes", 400_000_000)
    assert "waited for" not in sentence
    assert "At app.py:8 main, joblib slept again and again while child processes (worker) ran (400 ms" in sentence


def test_sleeps_of_a_tenth_of_a_second_which_take_longer_are_polls(tmp_path):
    taken_ns = 104_137_385  # in the mean: gunicorn's, while it waits for its workers to end

    ((rule, wall_ns, _),) = polling(tmp_path, "joblib/externals/loky/process_executor.py", 50 * taken_ns, taken_ns)

    assert (rule, wall_ns) == ("child processes", 50 * taken_ns)


@pytest.mark.parametrize(
    ("started_by", "lived_ns"),
    [("other/service.py", 500_000_000), ("joblib/externals/loky/process_executor.py", 100_000_000)],
)
def test_a_package_that_polls_does_not_wait_for_children_of_others_or_that_ended_early(tmp_path, started_by, lived_ns):
    ((rule, wall_ns, sentence),) = polling(tmp_path, started_by, lived_ns)

    assert (rule, wall_ns) == ("slow calls", 500_000_000)
    assert "An installed package sleeps there until something else is done" in sentence


@pytest.mark.parametrize(("own_ns", "is_told"), [(300_000_000, True), (9_000_000, False)])
def test_what_recording_took_in_children_is_told_if_it_is_much_of_the_wait(tmp_path, own_ns, is_told):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    wait = build.intrinsic("os.waitpid", "process")
    build.events([event(0, SECOND, stack=build.stack(build.site("/home/u/app.py", 8, "main")), intrinsic=wait)])
    build.child(end_ns=START_NS + SECOND, pid=77, how=1, number=1)
    build.thread(end_ns=START_NS + SECOND)
    build.ended(SECOND, 0)
    path = str(build.write())
    child = Build(tmp_path / "t.1.er" / "_f1.er", pid=77)
    child.thread(end_ns=START_NS + SECOND, own_wall_ns=own_ns)
    child.ended(SECOND, 0)
    child.write()

    survey = Survey(Analysis(Experiment(path)))
    (found,) = [each for each in found_in(survey) if each.rule == "child processes"]

    assert found.recording_ns == own_ns
    told = Sentences([found], "/home/u", survey.matters_ns).of(found)
    assert ("Recording took 300 ms in them (estimated)." in told) == is_told


def assert_watch_is_slow(done):
    watches = [(rule, sentence) for rule, _, sentence in told(done) if " watch" in sentence]
    assert [rule for rule, sentence in watches if "os.read" in sentence] == ["slow calls"]
    assert "child processes" not in [rule for rule, _ in watches]


def test_a_pipe_to_oneself_is_no_wait_for_children_that_have_ended(traced):
    done = traced("""
    import os, subprocess, threading, time
    subprocess.run(["true"])
    reader, writer = os.pipe()
    watcher = threading.Thread(target=lambda: os.read(reader, 1))
    watcher.start()
    time.sleep(0.3)
    os.write(writer, b"x")
    watcher.join()
    """)

    assert "child processes" not in [rule for rule, _, _ in told(done)]
    assert [sentence for rule, _, sentence in told(done) if rule == "slow calls" and "os.read" in sentence]


def test_a_wait_at_a_pipe_is_not_blamed_on_a_child_that_lived_for_little_of_it(traced):
    done = traced(WATCHES + """
    subprocess.run(["true"])
    time.sleep(10 * (time.perf_counter() - before) + 0.3)
    """ + ENDS)

    assert_watch_is_slow(done)


def test_a_wait_at_a_pipe_counts_while_a_child_lived(traced):
    done = traced(WATCHES + """
    subprocess.run(["sleep", "0.9"])
    print(time.perf_counter() - before)
    time.sleep(0.5)
    """ + ENDS)
    survey = Survey(Analysis(done.experiment))

    (found,) = [each for each in found_in(survey) if each.unit == PIPE]
    assert 0.9e9 <= found.wall_ns <= float(done.stdout) * 1e9
    assert found.about == "sleep"


@pytest.mark.parametrize("variables", [{}, {"INTERPOSE_CONSOLIDATE": "1"}])
def test_a_wait_at_a_pipe_between_the_lives_of_children_is_no_wait_for_them(traced, variables):
    done = traced("""
    import os, subprocess, threading
    reader, writer = os.pipe()
    def watch():
        threading.Timer(0.4, lambda: os.write(writer, b"x")).start()
        os.read(reader, 1)
    watch()
    subprocess.run(["sleep", "0.8"])
    watch()
    """, **variables)

    assert_watch_is_slow(done)


def test_waits_of_threads_at_pipes_of_a_line_that_makes_them_are_no_waits_for_children_that_lived_between(traced):
    done = traced("""
    import os, subprocess, threading
    def watch():
        reader, writer = os.pipe(); threading.Timer(0.4, os.write, (writer, b"x")).start(); os.read(reader, 1)
    def watch_all():
        threads = [threading.Thread(target=watch) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    watch_all()
    subprocess.run(["sleep", "0.8"])
    watch_all()
    """)

    assert not [sentence for rule, _, sentence in told(done) if rule == "child processes" and " watch" in sentence]


@pytest.mark.parametrize(("pause_s", "variables"), [("1", {}), ("0.05", {"INTERPOSE_CONSOLIDATE": "1"})])
def test_waits_for_the_output_of_children_count_with_pauses_between_them(traced, pause_s, variables):
    done = traced("""
    import subprocess, sys, time
    waited = 0
    def read_all():
        global waited
        child = subprocess.Popen(["sleep", "0.5"], stdout=subprocess.PIPE, bufsize=0)
        before = time.perf_counter()
        child.stdout.read()
        waited += time.perf_counter() - before
        child.wait()
    for _ in range(3):
        read_all()
        time.sleep(float(sys.argv[1]))
    print(waited)
    """, pause_s, **variables)

    found = [each for each in found_in(Survey(Analysis(done.experiment))) if each.unit == PIPE]
    assert [each.about for each in found] == ["sleep"]
    assert found[0].wall_ns <= float(done.stdout) * 1e9


def test_a_recorded_child_lived_until_it_ended_even_if_its_parent_waited_for_it_later(traced):
    done = traced("""
    import os, subprocess, sys, threading, time
    reader, writer = os.pipe()
    before = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    def watch():
        os.read(reader, 1)
    watcher = threading.Thread(target=watch)
    watcher.start()
    while open(f"/proc/{child.pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    time.sleep(10 * (time.perf_counter() - before))
    os.write(writer, b"x")
    watcher.join()
    child.wait()
    """)

    assert_watch_is_slow(done)


def test_a_child_that_waits_for_its_parent_waits_for_no_child(traced, tmp_path):
    (tmp_path / "worker.py").write_text("import os\ngiven = os.dup(0)\nwhile os.read(given, 10):\n    pass\n")
    done = traced("""
    import subprocess, sys, time
    worker = subprocess.Popen([sys.executable, sys.argv[1]], stdin=subprocess.PIPE)
    time.sleep(0.5)
    worker.stdin.close()
    worker.wait()
    """, str(tmp_path / "worker.py"))

    assert not [sentence for rule, _, sentence in told(done) if rule == "child processes" and "worker.py:" in sentence]


def test_a_child_that_had_ended_is_not_among_those_that_were_waited_for(traced):
    done = traced("""
    import subprocess, sys
    subprocess.run(["true"])
    sleeper = subprocess.Popen(["sleep", "0.4"])
    def waits():
        sleeper.wait()
    waits()
    """)

    assert [about for rule, about, _ in told(done) if rule == "child processes"] == ["sleep"]


def test_repeated_work_is_counted_in_all_transactions(traced):
    done = traced("""
    import interpose, os
    for round in range(40):
        with interpose.transaction(f"name {round % 4}"):
            for _ in range(1000):
                os.stat("/usr")
    """)

    (sentence,) = [sentence for rule, _, sentence in told(done) if rule == "repeated work"]
    assert 'os.stat was called 40,000 times for "/usr"' in sentence


def test_children_started_and_waited_for_at_a_line_are_counted(traced):
    done = traced("""
    import subprocess
    def item():
        subprocess.run(["sleep", "0.05"])
    for _ in range(8):
        item()
    """)

    (sentence,) = [sentence for rule, _, sentence in told(done) if rule == "child processes"]
    assert re.match(r"The program waited for 8 child processes \(sleep\) at \S+ item, \d\S* ms each \(", sentence)


def test_waits_for_children_that_were_started_elsewhere_are_counted_as_waits(traced):
    done = traced("""
    import subprocess
    started = [subprocess.Popen(["sleep", f"0.{number}"]) for number in range(1, 5)]
    def finish():
        for each in started:
            each.wait()
    finish()
    """)

    (sentence,) = [sentence for rule, _, sentence in told(done) if rule == "child processes" and "finish" in sentence]
    assert re.match(r"The program waited 4 times for child processes \(sleep\) at \S+ finish, \S+ ms each \(", sentence)


def test_a_wait_for_one_child_has_no_count(traced):
    done = traced("""
    import subprocess
    subprocess.run(["sleep", "0.3"])
    """)

    (sentence,) = [sentence for rule, _, sentence in told(done) if rule == "child processes"]
    assert sentence.startswith("The program waited for child processes (sleep) at ")
    assert "each" not in sentence


@pytest.mark.parametrize("children", [1, 3])
def test_a_loop_that_awaits_children_is_not_said_to_have_waited_as_often_as_it_polled(traced, children):
    done = traced(f"""
    import asyncio
    async def job():
        child = await asyncio.create_subprocess_exec("sleep", "1")
        await child.wait()
    async def main():
        await asyncio.gather(*[job() for _ in range({children})])
    asyncio.run(main())
    """)

    (sentence,) = [sentence for rule, _, sentence in told(done) if rule == "child processes"]
    assert sentence.startswith("The program waited for child processes (sleep) at ")
    assert " each" not in sentence
    assert re.search(r"\). \S+:4 job started them\.$", sentence)


def native_children(shop, *, wait4_ms):
    """The sentence, and the advice, about children of C code that are not recorded."""
    shop.call("libc.waitpid", "process", times=3, each_ns=60 * MS)
    shop.call("libc.wait4", "process", each_ns=wait4_ms * MS)
    survey = shop.survey()
    (finding,) = [each for each in found_in(survey) if each.rule == "child processes"]
    return Sentences([finding], "/", survey.matters_ns).of(finding), advice_for(finding)


def test_children_started_by_c_code_are_counted_with_all_their_time(shop):
    shop.call("libc.fork", "process", times=3, each_ns=5 * MS)
    shop.call("libc.system", "process", each_ns=45 * MS)
    sentence, advice = native_children(shop, wait4_ms=0)

    assert sentence.startswith("The program waited for 4 child processes at ")
    assert ", 60.0 ms each (240 ms of " in sentence
    assert advice.startswith("Look at what C code starts here: ")


@pytest.mark.parametrize(
    ("wait4_ms", "before", "after"),
    [
        (0, "waited 3 times for child processes", ", 60.0 ms each (180 ms of 1.00 s)."),
        (90, "waited for child processes", "(270 ms of 1.00 s), mostly in 3 calls of libc.waitpid."),
    ],
)
def test_a_number_of_waits_is_that_of_the_time_beside_it(shop, wait4_ms, before, after):
    sentence, _ = native_children(shop, wait4_ms=wait4_ms)

    assert before in sentence and sentence.endswith(after)


# Workers live as long as the program. A thread for each waits for its end.
WATCHED = """
    import multiprocessing, subprocess, threading, time
    def work(queue):
        {work}
    def watch(process):
        process.join()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    worker = context.Process(target=work, args=(queue,))
    worker.start()
    {watches}
    {meanwhile}
    queue.put(None)
    {ends}
"""
IN_A_THREAD = {
    "watches": "watcher = threading.Thread(target=watch, args=(worker,)); watcher.start()",
    "ends": "watcher.join()",
}
COMPUTES = "while time.process_time() < 0.4: pass"


def waits_told(done):
    assert done.returncode == 0, done.stderr
    return [(about, sentence) for rule, about, sentence in told(done) if rule == "child processes"]


@pytest.mark.parametrize("other", ["pass", "subprocess.run(['true'])"])
def test_a_thread_that_watches_a_worker_without_work_is_no_cause(traced, other):
    done = traced(WATCHED.format(work="queue.get()", meanwhile=f"{other}\n    {COMPUTES}", **IN_A_THREAD))

    assert not [sentence for _, sentence in waits_told(done) if " watch" in sentence]


def test_a_thread_that_watches_a_worker_that_computes_waits_for_it(traced):
    done = traced(WATCHED.format(work=COMPUTES, meanwhile="subprocess.run(['true'])", **IN_A_THREAD))

    ((about, sentence),) = waits_told(done)
    assert (about, " watch" in sentence) == ("forked", True)


def test_the_main_thread_that_waits_for_a_worker_without_work_waits_for_it(traced):
    meanwhile = "threading.Timer(0.5, queue.put, [None]).start(); watch(worker)"
    done = traced(WATCHED.format(work="queue.get()", watches="pass", meanwhile=meanwhile, ends="pass"))

    ((about, sentence),) = waits_told(done)
    assert (about, " watch" in sentence) == ("forked", True)


@pytest.mark.parametrize(
    ("kind", "intrinsic", "taken_ns"), [("process", "os.waitpid", SECOND), ("sleep", "time.sleep", SECOND // 100)]
)
@pytest.mark.parametrize(("is_main", "is_own"), [(0, 0), (1, 0), (0, 1)])
def test_threads_of_packages_that_watch_over_children_are_no_cause(
    tmp_path, kind, intrinsic, taken_ns, is_main, is_own
):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    own = build.stack(build.site("/home/u/app.py", 8, "main")) if is_own else 0
    watches = build.stack(build.site("/venv/lib/site-packages/cluster/process.py", 250, "_watch", own=0), own)
    number, times = build.intrinsic(intrinsic, kind), SECOND // taken_ns
    build.events([
        event(each * taken_ns, taken_ns, call=each + 1, stack=watches, intrinsic=number) for each in range(times)
    ])
    build.child(end_ns=START_NS + SECOND, pid=77, how=3, stack=watches, command=build.string("/usr/bin/worker"))
    build.thread(end_ns=START_NS + SECOND, main=is_main)
    build.ended(SECOND, 0)

    found = found_in(Survey(Analysis(Experiment(str(build.write())))))

    assert ("child processes" in [each.rule for each in found]) == bool(is_main or is_own)


def test_of_children_that_lived_at_once_a_wait_is_for_those_whose_ends_it_saw(traced):
    done = traced("""
    import subprocess, threading
    def first(child):
        child.wait()
    def second(child):
        child.wait()
    long = subprocess.Popen(["sleep", "1"])
    short = subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE)
    waiter = threading.Thread(target=first, args=(long,))
    waiter.start()
    threading.Timer(0.6, short.stdin.close).start()
    second(short)
    waiter.join()
    """)

    functions = re.compile(r" at \S+ (\w+)")
    found = {functions.search(sentence)[1]: about for about, sentence in waits_told(done)}
    assert found == {"first": "sleep", "second": "sh"}


def test_a_wait_for_the_program_behind_a_pseudo_terminal_is_told_as_one(traced):
    done = traced("""
        import os, pty, time
        child, master = pty.fork()
        if not child:
            time.sleep(0.5)
            os._exit(os.write(1, b"done") - 4)
        os.read(master, 100)
        os.waitpid(child, 0)
    """).ended_well()

    told = Sentences(findings := found_in(Survey(Analysis(done.experiment))), "", 10**9)

    assert any(told.of(each).startswith("The program waited at a pseudo-terminal while child") for each in findings)
