"""Lists of arguments as of rd_kafka_producev arrive as they were: at ours if they are known, else at the real one."""

import subprocess
from pathlib import Path

TOP = Path(__file__).parents[2]
FLAGS = ["-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{TOP / 'cext'}"]


def test_all_arguments_arrive_and_what_is_known_of_a_list_is_read(compiler, tmp_path):
    sources = [TOP / "cext/program/message_list.c", Path(__file__).with_name("message_list.c")]
    subprocess.run([compiler, *FLAGS, *sources, "-o", tmp_path / "lists"], check=True)
    straight, through = (
        subprocess.run([tmp_path / "lists", *words], capture_output=True, text=True, check=True)
        for words in (["straight"], [])
    )

    assert straight.stdout.count(":") == 7
    assert through.stdout == straight.stdout
    # The fifth is too long; the last two have a tag that is not known.
    assert through.stderr.splitlines() == [
        "none, 0, 0 bytes, 1 words",
        "orders, 0, 0 bytes, 3 words",
        "none, 0xabcdef0123, 9 bytes, 27 words",
        "none, 0, 0 bytes, 95 words",
    ]
