"""What is run inside of a program that is attached to, and how it gets there."""

import ctypes
import errno
import json
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from attaching import BUSY, by_remote_exec
from tracing import PATIENCE_S, environment

from interpose.attach import ptrace
from interpose.attach.code import code
from interpose.attach.symbols import NotELF, symbols

# Its handler raises once, while what attaching brings along opens a file.
INTERRUPTED = """
import os, signal, sys
class Late(Exception):
    pass
def end(number, frame):
    raise Late
enough, late, opened = [], 0, []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
signal.signal(signal.SIGALRM, end)
def hook(event, what):
    if event == "open" and str(what[0]).endswith("SEEN") and not opened:
        opened.append(what)
        os.kill(os.getpid(), signal.SIGALRM)
sys.addaudithook(hook)
print("ready", flush=True)
while not enough:
    try:
        while not enough:
            os.stat("/")
    except Late:
        late += 1
print(late, flush=True)
sys.exit(7)
"""


@by_remote_exec
@pytest.mark.parametrize("seen", ["bundle", "answer"])
def test_what_a_handler_raises_while_our_code_runs_is_raised_in_the_program(seen, running):
    program = running(INTERRUPTED.replace("SEEN", seen))

    program.interpose("attach", str(program.pid))

    assert program.end() == (7, "1\n", "")


def test_registers_are_read_and_written_in_the_size_that_the_kernel_gives(monkeypatch):
    """As Linux does it where the state of AMX makes the set longer than any that was there before."""
    kept = bytes(number % 251 for number in range(11_008))

    def kernel(what, thread, address, data):
        vector = ptrace._Vector.from_address(data)
        if what == ptrace._GET_SET:
            vector.size_bytes = min(vector.size_bytes, len(kept))
            ctypes.memmove(vector.address, kept, vector.size_bytes)
            return 0
        assert ctypes.string_at(vector.address, vector.size_bytes) == kept
        ctypes.set_errno(0 if vector.size_bytes == len(kept) else errno.EFAULT)
        return 0 if vector.size_bytes == len(kept) else -1

    monkeypatch.setattr(ptrace, "_ptrace", kernel)

    assert ptrace.read_registers(1, 0x202) == kept
    ptrace.write_registers(1, 0x202, kept)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have another set")
def test_the_extended_state_of_this_processor_is_put_back_as_it_was(running):
    program = running(BUSY)
    script = f"""
        import os
        from interpose.attach import ptrace
        ptrace.request(ptrace.SEIZE, {program.pid})
        ptrace.request(ptrace.INTERRUPT, {program.pid})
        os.waitpid({program.pid}, 0x40000000)
        before = ptrace.read_registers({program.pid}, 0x202)
        ptrace.write_registers({program.pid}, 0x202, before)
        assert ptrace.read_registers({program.pid}, 0x202) == before
        print(len(before))
    """

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)

    assert (done.stderr, int(done.stdout) >= 576) == ("", True)
    assert program.end() == (7, "True\n", "")


@pytest.mark.parametrize("kind", ["SystemExit", "LookupError"])
def test_an_exception_of_a_handler_of_the_programs_is_raised_again(kind):
    source = textwrap.dedent(f"""
        import sys, types
        def handler():
            raise {kind}(3)
        sys.modules["_imp"] = types.SimpleNamespace(lock_held=handler)
        names = {{}}
        exec(sys.stdin.read(), names)
        assert "{kind}" in names["answer"]
        import ctypes, threading
        here = ctypes.c_ulong(threading.get_ident())
        try:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(here, ctypes.py_object(names["raised"]))
            for _ in range(1000):
                pass
        except {kind} as raised:
            sys.exit(raised.args[0] + 1)
    """)

    text = code("begin", ({},)).text
    done = subprocess.run([sys.executable, "-c", source], input=text, text=True, timeout=PATIENCE_S)

    assert done.returncode == 4


# A program into which the code comes as by attaching, with what goes with it; what it says of that is not ours to show.
REACHED = """
import json, sys
codes = [(start, bundle.encode("latin-1")) for start, bundle in json.load(sys.stdin)]
def run(start, bundle):
    names = {"bundle": memoryview(bundle)}
    exec(start, names)
    return names["answer"]
"""
REACHING = """
import json, sys
from interpose.attach.code import code
begin = code("begin", ({"INTERPOSE": "1", "INTERPOSE_DIR": sys.argv[1], "INTERPOSE_NAME": "t"},))
print(json.dumps([(each.start, each.bundle.decode("latin-1")) for each in (begin, code("end", ()))]))
"""


def reached(directory: Path, source: str, *options: str) -> list:
    """What a program says into which the code to begin and to end a recording came, as `codes`."""

    def run(*words: str, given: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], input=given, text=True, capture_output=True, cwd=directory, env=environment()
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    given = run("-c", REACHING, str(directory), given="")
    return json.loads(run(*options, "-c", REACHED + textwrap.dedent(source), given=given))


def test_what_recording_takes_comes_with_the_code_and_is_read_from_no_file(tmp_path):
    answer, opened, loaded, file, finders = reached(
        tmp_path,
        """
        opened = []
        sys.addaudithook(lambda event, what: opened.append(str(what[0])) if event == "open" else None)
        answer = run(*codes[0])
        ours = sys.modules["interpose"]
        print(json.dumps([answer, opened, ours.__loader__.path, ours.__file__, len(sys.meta_path)]))
        """,
        "-S",
    )

    assert "experiment" in answer
    assert not [path for path in opened if path.endswith((".py", ".pyc")) and "interpose" in path]
    assert loaded == file
    assert finders == 3


@pytest.mark.long
@pytest.mark.parametrize("sort", ["Exception", "FileNotFoundError"])
def test_where_a_handler_of_the_programs_raises_meanwhile_it_is_told_what_has_become_of_it(sort, tmp_path):
    told = reached(
        tmp_path,
        """
        import ast, os
        class Enough(SORT):
            pass
        def is_recorded():
            laid_by = vars(sys.modules.get("interpose", sys)).get("_laid_by", {})
            shims = sys.modules.get("interpose.timing.shims") or laid_by.get("interpose.timing.shims")
            return shims is not None and shims.is_recording()
        def attempt(code, at):
            seen = 0
            def look(frame, event, argument):
                nonlocal seen
                if frame.f_code.co_filename != "<string>" and "interpose" not in frame.f_code.co_filename:
                    return None
                seen += event == "line"
                if event == "line" and seen == at:
                    sys.settrace(None)
                    raise Enough('Enough')
                return look
            sys.settrace(look)
            try:
                answer = run(*code)
            finally:
                sys.settrace(None)
            return seen, ast.literal_eval(answer)
        run(*codes[0])
        run(*codes[1])
        told = []
        for code, other in (codes, codes[::-1]):
            lines, _ = attempt(code, 0)
            run(*other)
            for at in [*range(lines - 60, lines - 12), *range(20, lines - 60, lines // 60)]:
                was, (_, answer) = is_recorded(), attempt(code, at)
                told.append([was, answer, is_recorded(), len([name for name in os.listdir() if name.endswith(".er")])])
                if is_recorded() != was:
                    run(*other)
                assert is_recorded() == was, answer
        print(json.dumps(told))
        """.replace("SORT", sort),
    )

    begun = [(answer, is_recorded) for was, answer, is_recorded, _ in told if not was]
    ended = [(answer, is_recorded) for was, answer, is_recorded, _ in told if was]
    assert all(("experiment" in answer) == is_recorded for answer, is_recorded in begun)
    assert all(("left" in answer) == (not is_recorded) for answer, is_recorded in ended)
    whys = [answer.get("raised", answer.get("why", "")) for answer, _ in (*begun, *ended)]
    assert all("Enough" in why for why in whys) or sort != "Exception"  # of files ours pass over what is missing
    assert {is_recorded for _, is_recorded in begun} == {is_recorded for _, is_recorded in ended} == {False, True}
    assert sum(is_recorded for _, is_recorded in begun) + 2 + len(ended) >= told[-1][3]


def test_where_compiled_code_is_of_another_sort_it_is_compiled_in_the_program(tmp_path):
    answers = reached(
        tmp_path,
        """
        sys.modules["_frozen_importlib_external"].MAGIC_NUMBER = b"else"
        print(json.dumps([run(*code) for code in codes]))
        """,
        "-B",
    )

    assert "experiment" in answers[0]
    assert answers[1] == "{'left': 0}"


@pytest.mark.long
def test_attaching_again_takes_little_memory_at_any_time(tmp_path):
    peaks = reached(
        tmp_path,
        """
        import tracemalloc
        many = [[] for _ in range(300_000)]
        for code in codes * 2:
            run(*code)
        tracemalloc.start()
        peaks = []
        for code in codes:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            assert "why" not in run(*code)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        print(json.dumps(peaks))
        """,
    )

    begins, ends = peaks
    assert begins < 384 << 10  # 325 to 345 kilobytes; more than 900, had it all to be read and compiled again
    assert ends < 128 << 10


def test_symbols_are_where_a_file_says(tmp_path):
    found = symbols(f"/proc/{os.getpid()}/exe", ["main", "no_such_symbol"])
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF\x02\x01" + bytes(40) + b"\xff" * 200)
    (tmp_path / "empty").touch()

    assert "no_such_symbol" not in found
    for name in ("broken", "empty"):
        with pytest.raises(NotELF):
            symbols(str(tmp_path / name), ["main"])
