"""A Python is followed whichever way it is started: a row for each way."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from families import lineages, run
from tracing import write_program

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.lineage import tree, walk
from interpose.experiments.model.experiment import Experiment

# Every way to start a Python, a row each: what starts it, and the lineages that come of it. `words` begin with the path
# of the interpreter, `named` with another name, by which one of a virtual environment does not find that, and `near`
# with the path from its own directory, `bin`.
FORKED = "def child(start): pid = os.fork(); pid or start(); os.waitpid(pid, 0)\n"
NEW, THEN = ["_c"], ["_f", "_f_x"]
WAYS = {
    "subprocess.run": ("subprocess.run(words)", NEW),
    "subprocess.Popen": ("subprocess.Popen(words).wait()", NEW),
    "subprocess with a function in between": ("subprocess.run(words, preexec_fn=lambda: None)", THEN),
    "subprocess with a function that calls": ("subprocess.run(words, preexec_fn=lambda: os.stat('/'))", THEN),
    "subprocess in a session of its own": ("subprocess.run(words, start_new_session=True)", NEW),
    "subprocess with executable=": ("subprocess.run(named, executable=words[0])", NEW),
    "subprocess without variables": ("subprocess.run(words, env={})", NEW),
    "subprocess from its directory": ("subprocess.run(near, cwd=bin)", NEW),
    "subprocess from its directory, in bytes": ("subprocess.run(near, cwd=os.fsencode(bin))", NEW),
    "subprocess from its directory, of pathlib": ("subprocess.run(near, cwd=pathlib.Path(bin).parent / bin.name)", NEW),
    "subprocess from its directory without variables": ("subprocess.run(near, cwd=bin, env={})", NEW),
    "subprocess from the one above": ("subprocess.run([f'{bin.name}/{exe.name}', *words[1:]], cwd=bin.parent)", NEW),
    "subprocess from a directory by way of another": ("os.chdir(bin.parent); subprocess.run(near, cwd=bin.name)", NEW),
    "subprocess from its directory with executable=": ("subprocess.run(named, executable=near[0], cwd=bin)", NEW),
    "subprocess by a PATH that leads there": ("subprocess.run(named, env={'PATH': '.'}, cwd=bin)", NEW),
    "subprocess where we are": ("os.chdir(bin); subprocess.run(near)", NEW),
    "subprocess by a path of pathlib": ("subprocess.run([bin / exe.name, *words[1:]])", NEW),
    "subprocess by a link with another name": ("os.symlink(exe, 'link'); subprocess.run(['./link', *words[1:]])", NEW),
    "subprocess through a shell": ("subprocess.run(line, shell=True)", NEW),
    "os.system": ("os.system(line)", NEW),
    "os.popen": ("os.popen(line).read()", NEW),
    "env": ("subprocess.run(['/usr/bin/env', *words])", NEW),
    "exec in a shell": ("subprocess.run(['sh', '-c', f'exec {line}'])", NEW),
    "a shell in a shell": ("subprocess.run(['sh', '-c', f'sh -c {shlex.quote(line)}; true'])", NEW),
    "os.execv": ("child(lambda: os.execv(words[0], words))", THEN),
    "os.execv by another name": ("child(lambda: os.execv(words[0], named))", THEN),
    "os.execve by another name": ("child(lambda: os.execve(words[0], named, os.environ))", THEN),
    "os.execve by another name without variables": ("child(lambda: os.execve(words[0], named, {}))", THEN),
    "os.execv by a name that is none": ("child(lambda: os.execv(words[0], ['no such name', *words[1:]]))", THEN),
    "os.execv where we are": ("os.chdir(bin); child(lambda: os.execv(near[0], near))", THEN),
    "os.execv of pathlib": ("child(lambda: os.execv(exe, words))", THEN),
    "os.execve of an open file": ("child(lambda: os.execve(os.open(exe, os.O_RDONLY), words, os.environ))", THEN),
    "os.execvp": ("child(lambda: os.execvp(words[0], words))", THEN),
    "os.spawnv by another name": ("os.spawnv(os.P_WAIT, words[0], named)", THEN),
    "os.spawnve by another name": ("os.spawnve(os.P_WAIT, words[0], named, os.environ)", THEN),
    "os.posix_spawn": ("os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)", NEW),
    "os.posix_spawn by another name": ("os.waitpid(os.posix_spawn(words[0], named, os.environ), 0)", NEW),
    "os.fork": ("child(lambda: os._exit(0))", ["_f"]),
    "pty.fork": ("pid, _ = pty.fork(); pid or os._exit(0); os.waitpid(pid, 0)", ["_f"]),
    "pty.spawn": ("pty.spawn(words, lambda number: b'')", THEN),
    "asyncio": ("asyncio.run(started(words))", NEW),
    "asyncio from its directory": ("asyncio.run(started(near, cwd=bin))", NEW),
    "multiprocessing, fork": ("processes('fork')", ["_f"]),
    "multiprocessing, spawn": ("processes('spawn')", NEW),
}
STARTS = FORKED + """
async def started(words, **options):
    await (await asyncio.create_subprocess_exec(*words, **options)).wait()

def processes(method):
    process = multiprocessing.get_context(method).Process(target=os.getpid)
    process.start()
    process.join()
"""
OF_THE_HELPER = {"multiprocessing, spawn": 1}  # the tracker of resources
# What other programs start reads no start-up file with -S (docs/limits.md); what comes first is forked with the
# variables that its program is to have.
WITHOUT_SITE = {
    "subprocess with a function in between": ["_f", "_c"],
    "subprocess with a function that calls": ["_f", "_c"],
    "subprocess through a shell": [],
    "os.system": [],
    "os.popen": [],
    "env": [],
    "exec in a shell": [],
    "a shell in a shell": [],
}


@pytest.fixture(scope="module")
def needs_its_name() -> bool:
    """Is the interpreter where it was not built for, so that it finds its library by its own name alone?"""
    words = ["no such name", "-c", "1"]
    return bool(subprocess.run(words, executable=sys.executable, env={}, capture_output=True).stderr)


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["-I"], ["-S", "-E"]], ids=" ".join)
@pytest.mark.parametrize("way", WAYS)
def test_a_python_is_followed_whichever_way_it_is_started(tmp_path, way, options, needs_its_name):
    if needs_its_name and way.endswith(("that is none", "name without variables", "a PATH that leads there")):
        pytest.skip("the interpreter does not find its library so")
    start, expected = WAYS[way]
    expected = WITHOUT_SITE.get(way, expected) if "-S" in options else expected
    imports = "import asyncio, multiprocessing, os, pathlib, pty, shlex, subprocess, sys\n"
    words = f"words = [sys.executable, *{options}, '-c', '1']\nnamed, line = ['python', *words[1:]], shlex.join(words)"
    words += "\nexe = pathlib.Path(sys.executable)\nbin, near = exe.parent, [f'./{exe.name}', *words[1:]]"
    program = write_program(tmp_path, f"{imports}{words}\n{STARTS}\nif __name__ == '__main__':\n    {start}\n")

    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # where another name may lead to as well
    done = run(tmp_path, sys.executable, str(program), INTERPOSE="1", PATH=path)

    # Started so, some interpreters warn of their own paths, whoever records them.
    warned = run(tmp_path, sys.executable, str(program), INTERPOSE="0", PATH=path).stderr if done.stderr else ""
    assert (done.returncode, done.stderr) == (0, warned)
    experiment = Experiment(str(tmp_path / "test.1.er"))
    found = lineages(tmp_path / "test.1.er") - Counter([""])
    assert found == Counter(expected) + Counter({"_c": OF_THE_HELPER.get(way, 0)})
    followed = {process.log.pid for process in experiment.processes}
    left_out = [node.pid for _, node in walk(tree(experiment)) if not node.is_followed]
    assert not followed & set(left_out)
    assert "unseen" not in {ending(process).state for process in experiment.processes}
