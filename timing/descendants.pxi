# Forks and programs that this process starts.

def choose_descendants(bytes wanted, bytes command=b""):
    """Choose which descendants are recorded, of this process with its command line; gives what is wrong with that."""
    cdef const char *wrong = follow_choose(wanted, command)
    return wrong.decode("utf-8", "replace") if wrong != NULL else ""


def is_followed(bytes lineage):
    """Is a descendant with this process's command line and that lineage to be recorded?"""
    return bool(follow_matches(lineage))


def forks():
    """Before a fork: its number is the parent's to give."""
    recorder_forks()


def has_forked():
    """After it, in the parent."""
    recorder_has_forked()


def forked():
    """After it, in the child: begin its subexperiment."""
    recorder_forked()
    forget_holders()
    awaits_forget()


def knows_of_forks():
    """Was it said before that this process is to be told of forks? It need be said once."""
    global _forks_are_told
    told, _forks_are_told = _forks_are_told, True
    return told


def boot_library(bytes path, words):
    """The library to be preloaded into the program at `path`, started with `words` (bytes), for it to be recorded; b""
    where none is needed, or none can be."""
    cdef const char *given[33]
    kept = list(words)[:32]
    for place, word in enumerate(kept):
        given[place] = word
    given[len(kept)] = NULL
    return preload_library() if preload_is_needed(path, given, True) else b""
