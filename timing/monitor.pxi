# The process beside the program that compresses its events.

def prepare_monitor(bytes interpreter, bytes path):
    """Set the interpreter that runs the monitor, and the directories for its imports, separated by colons."""
    monitor_prepare(interpreter, path)


def begin_sampling():
    """Let a monitor sample this process, and read its memory for that."""
    monitor_begin_sampling()
