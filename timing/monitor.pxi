# The process beside the program that compresses what is recorded.

def prepare_monitor(bytes interpreter, bytes path):
    """Say which interpreter runs the monitor, and where it finds what it imports (directories with colons between)."""
    monitor_prepare(interpreter, path)


def begin_sampling():
    """Have a monitor sample this process, and let it read what it samples."""
    monitor_begin_sampling()
