# Forks and programs that this process starts, and those that started it.

cdef enum:
    PATH_BYTES = 4096

def choose_descendants(bytes wanted, bytes command=b""):
    """Choose which descendants are recorded, of this process with its command line; returns what is wrong with the
    choice."""
    cdef const char *wrong = follow_choose(wanted, command)
    return wrong.decode("utf-8", "replace") if wrong != NULL else ""


def is_followed(bytes lineage):
    """Is a descendant with this process's command line and that lineage to be recorded?"""
    return bool(follow_matches(lineage))


def shared_files(int pid):
    """The paths (bytes) of the files that the process has mapped and writes to; None where the kernel does not say."""
    cdef char path[PATH_BYTES]
    cdef uint64_t place = 0
    cdef int left = 1, maps = shared_files_open(pid)
    found = []
    while maps >= 0 and left > 0:
        left = shared_files_next(maps, &place, path, sizeof(path))
        if left > 0:
            found.append(path)
    if maps >= 0:
        close_descriptor(maps)
    return None if left < 0 else found


def forks():
    """Before a fork: its number is the parent's to give."""
    recorder_forks()


def has_forked():
    """After it, in the parent."""
    recorder_has_forked()


def forked():
    """After it, in the child: begin its subexperiment."""
    recorder_forked()
    descriptors_inherited()
    forget_holders()
    awaits_forget()


def has_started():
    """The process has just started, so what pipes it has are inherited."""
    descriptors_inherited()


def knows_of_forks():
    """Whether this process was already registered for forks, which is done once."""
    global _forks_are_told
    told, _forks_are_told = _forks_are_told, True
    return told


def boot_library(bytes path, words):
    """The library to preload into the program at `path`, started with `words` (bytes), so that it is recorded; b"" if
    none is needed or possible."""
    cdef const char *given[33]
    kept = list(words)[:32]
    for place, word in enumerate(kept):
        given[place] = word
    given[len(kept)] = NULL
    return preload_library() if preload_is_needed(path, given, True) else b""


def why_not_followed(bytes path):
    """Why a process that runs the file at `path` cannot be followed, in words; empty if it can."""
    cdef reason found = program_reason(path)
    return "" if preload_follows(found) else reason_words(found).decode()
