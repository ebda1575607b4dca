"""What is kept of a command line: the program and the names of options, and of values what is known to be harmless.

Nobody can tell from its look whether a value is a secret, so this is a list of harmless values, not of secrets. The
traced program imports this module when it starts, so it imports next to nothing.
"""

import os

from interpose.config.program import find_program, option_with_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HIDDEN = "?"
BETWEEN = ("--", "=", ":")  # what may be between a name and its value
LONGEST_NAME = 40
LONGEST_NUMBER = 8  # in digits; longer ones are of cards, accounts and people
LOOKED_FOR_AT_MOST = 100  # values that are looked for on the disk
UNITS = ("", "%", "b", "k", "m", "g", "t", "kb", "mb", "gb", "kib", "mib", "gib", "ns", "us", "ms", "s", "h", "d")
# Words that say what a program does, and so often that they tell nothing of its user.
PLAIN_WORDS = (
    *("true", "false", "yes", "no", "on", "off", "none", "null", "auto", "all", "default", "debug", "info", "warning"),
    *("error", "critical", "run", "start", "stop", "serve", "server", "web", "worker", "beat", "shell", "test", "init"),
    *("list", "show", "help", "version", "migrate", "runserver", "app", "application", "main", "utf-8", "localhost"),
)
# After names like these even a number is a secret.
SECRET_WORDS = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "bearer", "dsn", "session", "cookie", "card")
SECRET_PARTS = (
    *("pw", "pin", "pincode", "puk", "otp", "totp", "mfa", "2fa", "psk", "code", "unlock"),
    *("jwt", "sid", "sig", "tan", "cvv", "cvc", "ssn", "pat", "pan", "iban", "account"),
)
SECRET_ENDS = ("pin", "otp", "code")  # of smspin and onetimecode
SECRET_LETTERS = "aPpUuKk"


def kept_arguments(arguments: "Sequence[str]") -> list[str]:
    """The words of a command line after the interpreter's own, with `?` for possible secrets.

    The interpreter's options, the script or module, and the names of options are kept. So are numbers, existing paths,
    modules on the disk and a few plain words, unless the word before suggests a secret.
    """
    _, _, place = find_program(arguments)
    return [*_of_interpreter(arguments[1:place]), *_of_program(arguments[place:])]


def _of_interpreter(words: "Sequence[str]") -> "Iterator[str]":
    """The interpreter's options and what it runs; code given by `-c` is not kept."""
    rest = iter(words)
    for word in rest:
        letter, attached = option_with_word(word) if word[:1] == "-" else ("", "")
        yield word[: len(word) - len(attached)] + _of_option(letter, attached) if attached else word
        if letter and not attached:
            yield from [_of_option(letter, following) for following in [next(rest, "")] if following]


def _of_option(letter: str, word: str) -> str:
    """What is kept of `-X name=value`, `-W action:message:category`, and of words of other options."""
    if letter == "-X":
        name, sign, value = word.partition("=")
        return name + sign + (_value(value, may_look=True) if value else "")
    if letter == "-W":
        action, *message = word.split(":", 2)
        return ":".join([action, *[HIDDEN if text else "" for text in message[:1]], *message[1:]])
    return HIDDEN if letter == "-c" else word


def _of_program(words: "Sequence[str]") -> "Iterator[str]":
    of_secret = False
    for place, word in enumerate(words):
        may_look = place < LOOKED_FOR_AT_MOST
        if of_secret:
            of_secret = word in BETWEEN or _is_number(word)  # --pin = 1234, --pins 12 34
            yield word if word in BETWEEN else HIDDEN
        elif word.startswith("--") or _is_option(word):
            shown, of_secret = _long_option(word, may_look) if word.startswith("--") else _short_options(word, may_look)
            yield shown
        else:
            of_secret = _is_secret(word)
            yield _value(word, may_look)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not _is_number(word)


def _long_option(word: str, may_look: bool) -> tuple[str, bool]:
    """What is kept of an option, and whether the next word may be a secret."""
    end = min([place for place in (word.find("="), word.find(":")) if place > 0], default=len(word))
    name, value = word[2:end], word[end + 1 :]
    if name and not _is_name(name):
        return HIDDEN, _is_secret(name)
    of_secret = _is_secret(name)
    shown = HIDDEN if of_secret and value else _value(value, may_look)
    return word[: end + 1] + shown, of_secret and not value


def _short_options(word: str, may_look: bool) -> tuple[str, bool]:
    """The same for `-x`, for `-vvv` or `-rf`, and for `-n5`, where the value is attached."""
    letter, rest = word[1], word[2:]
    of_secret = letter in SECRET_LETTERS or _is_secret(word[1:])
    if not rest:
        return word, of_secret
    if of_secret or not letter.isascii():
        return word[:2] + HIDDEN, of_secret
    is_cluster = rest.isascii() and rest.isalpha() and (len(rest) < 3 or not rest.strip(letter))
    if is_cluster:
        return word, any(each in rest for each in SECRET_LETTERS)
    equals = rest.startswith("=")
    return word[: 2 + equals] + _value(rest[equals:], may_look), False


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and text.isascii() and text.replace("-", "_").replace(".", "_").isidentifier()


def _is_secret(name: str) -> bool:
    lowered = name.lower()
    if any(word in lowered for word in SECRET_WORDS):
        return True
    apart = "".join(["-" + each if each.isupper() else each for each in name]).lower()  # userPin, but PIN as well
    parts = [part for text in (lowered, apart) for part in _parts(text)]
    singular = [part[:-1] for part in parts if part.endswith("s")]
    return not {*parts, *singular}.isdisjoint(SECRET_PARTS) or any(part.endswith(SECRET_ENDS) for part in parts)


def _parts(name: str) -> list[str]:
    """The words of a name, without the numbers behind them: of -user_pin2, user and pin."""
    apart = "".join([each if each.isalnum() else " " for each in name]).split()
    return [part.rstrip("0123456789") for part in apart]


def _value(word: str, may_look: bool) -> str:
    """The word where it is known to be harmless; else `?`, behind the module's name where one is written before it."""
    if word.lower() in PLAIN_WORDS or not word.strip("-./") or _is_number(word):
        return word
    if not may_look:
        return HIDDEN
    if "\0" not in word and os.path.lexists(word):
        return word
    module, colon, attribute = word.partition(":")
    if not _is_module(module):
        return HIDDEN
    return module + colon + (attribute if attribute in PLAIN_WORDS or not attribute else HIDDEN)


def _is_number(word: str) -> bool:
    """Whether it is a number, perhaps with a unit: 8, -1, 0.5, 1e-3, 512MiB."""
    number = word.lstrip("+-")
    unit = number.lstrip("0123456789.")
    number = number[: len(number) - len(unit)]
    mantissa, exponent, power = unit.partition("e") if unit.startswith("e") else (unit, "", "")
    digits = number.replace(".", "", 1)
    if len(word) > 2 * LONGEST_NUMBER or not digits.isdecimal() or not digits.isascii() or len(digits) > LONGEST_NUMBER:
        return False
    return power.lstrip("+-").isdecimal() and len(power) < 4 if exponent else mantissa.lower() in UNITS


def _is_module(name: str) -> bool:
    """Whether there is a module with that name below the working directory."""
    path = name.replace(".", "/")
    named = all(part.isidentifier() for part in name.split("."))
    return named and (os.path.isfile(path + ".py") or os.path.isdir(path))
