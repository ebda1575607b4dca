"""What the administrator of this machine forbids: users, programs or kinds that must not be recorded.

/etc/interpose.conf has lines such as `users = alice, @students`, `programs = /opt/payroll/*, wages.py` and `kinds = db,
net`, and comments after `#`. This module is imported only if the file exists. An invalid line forbids everything,
because somebody wanted to forbid something. The traced program imports it, so it imports next to nothing.
"""

import os
import stat

from interpose.errors import Caught
from interpose.kinds import KINDS

LARGEST_BYTES = 1 << 16
EVERYBODY = "*"
WHAT = (*KINDS, "lines", "coverage")
LONGEST_PATTERN = 256


class Forbidden(Caught):
    """Why nothing may be recorded here: by which line of the file."""


class Policy:
    """What a file forbids: for each of users, programs and kinds, words with the places that say them."""

    __slots__ = ("kinds", "programs", "users")

    def __init__(self):
        self.users = {}
        self.programs = {}
        self.kinds = {}


def read(path):
    """The policy in the file at `path`; None without the file. Raises Forbidden if it cannot be understood."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Forbidden(f"{path}: {error.strerror}") from None
    try:
        data = os.read(descriptor, LARGEST_BYTES + 1)
        is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError as error:
        raise Forbidden(f"{path}: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if not is_plain:
        raise Forbidden(f"{path}: is not a regular file")
    if len(data) > LARGEST_BYTES:
        raise Forbidden(f"{path}: longer than {LARGEST_BYTES:,} bytes")
    return parse(data.decode("utf-8", "replace"), path)


def parse(text, path):
    """The policy that the text says. Raises Forbidden, with the line, where it says nothing that is known."""
    policy = Policy()
    for number, line in enumerate(text.splitlines(), 1):
        line, place = line.partition("#")[0].strip(), f"{path}:{number}"
        word, equals, values = (part.strip() for part in line.partition("="))
        if not line:
            continue
        if word not in Policy.__slots__ or not equals:
            raise Forbidden(f"{place}: is not users, programs or kinds = ...")
        for value in (each.strip() for each in values.split(",")):
            if not _tells(word, value):
                raise Forbidden(f"{place}: {word} are not told by {value[:40]!r}")
            getattr(policy, word).setdefault(value, place)
    return policy


def _tells(word, value):
    if word == "users" and value != EVERYBODY:
        return value and "*" not in value and "?" not in value
    return 0 < len(value) <= LONGEST_PATTERN and (word != "kinds" or value in (*WHAT, EVERYBODY))


def check(policy, arguments, owner=None):
    """Raise Forbidden where nothing may be recorded of the process with the command line `arguments`. It is ours, or
    that of `owner`: the numbers of its users, and of its groups."""
    for name in _names_of_user(*(owner or _ourselves())) if policy.users else ():
        if name in policy.users:
            raise Forbidden(f"forbidden by {policy.users[name]}: users = {name}")
    programs = _names_of_program(arguments) if policy.programs else ()
    for pattern, place in policy.programs.items():
        if any(matches(pattern, name) for name in programs):
            raise Forbidden(f"forbidden by {place}: programs = {pattern}")
    if EVERYBODY in policy.kinds:
        raise Forbidden(f"forbidden by {policy.kinds[EVERYBODY]}: kinds = *")


def _ourselves():
    return {os.getuid(), os.geteuid()}, {os.getgid(), os.getegid(), *os.getgroups()}


def _names_of_user(users, groups):
    import grp
    import pwd

    yield EVERYBODY
    for number in users:
        yield str(number)
        try:
            yield pwd.getpwuid(number).pw_name
        except (KeyError, OSError):
            pass  # it has none
    for number in groups:
        yield f"@{number}"
        try:
            yield f"@{grp.getgrgid(number).gr_name}"
        except (KeyError, OSError):
            pass


def _names_of_program(arguments):
    """The names of the program: its interpreter, what it runs as given and as an absolute path, and its module."""
    from interpose.config.program import split_command

    how, what = split_command(arguments)
    found = [arguments[0], os.path.basename(arguments[0]), how]
    if how == "-m":
        found += [what, f"-m {what}"]
    elif what:
        found += [what, os.path.basename(what), os.path.abspath(what), os.path.realpath(what)]
    return found


def matches(pattern, text):
    """Whether a text is like a pattern, in which `*` stands for anything and `?` for a letter."""
    pattern_at = text_at = 0
    star, resumed = -1, 0
    while text_at < len(text):
        letter = pattern[pattern_at : pattern_at + 1]
        if letter == "*":
            star, resumed = pattern_at, text_at
            pattern_at += 1
        elif letter and letter in ("?", text[text_at]):
            pattern_at += 1
            text_at += 1
        elif star >= 0:
            resumed += 1
            pattern_at, text_at = star + 1, resumed
        else:
            return False
    return not pattern[pattern_at:].strip("*")
