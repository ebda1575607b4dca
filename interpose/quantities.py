"""Durations, sizes and rates as people write them: `500us`, `2.5s`, `1h`; `512MiB`, `1.5GiB`; `100` a second.

Settings, options of commands, filters and expressions all read them here, so that they know the same units. This is
imported inside the traced program when it starts, so it imports nothing.
"""

TIMES_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
SIZES_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
LETTERS = "abcdefghijklmnopqrstuvwxyzBKMGT"
LONGEST_NUMBER = 20
ABOVE_ALL = 1 << 62  # what the recorder's counters can hold
USUAL_HZ, HIGHEST_HZ = 100.0, 1000.0  # of sampling
A_DURATION = "a duration like 2.5s"
A_SIZE = "a size like 512MiB"


def duration_ns(text: str, bare: str = "") -> int:
    """The nanoseconds of `10ms`; a number alone is of the unit `bare`, if one is given, and 0 needs none. Raises
    ValueError."""
    return 0 if text == "0" else _product(text, TIMES_NS, bare, A_DURATION)


def recorded_ns(text: str, bare: str = "") -> int:
    """The same for what the recorder is given, which counts 146 years."""
    found_ns = duration_ns(text, bare)
    if found_ns >= ABOVE_ALL:
        raise ValueError("longer than any program runs")
    return found_ns


def size_bytes(text: str, bare: str = "") -> int:
    """The bytes of `512MiB`; a number alone is of the unit `bare`, if one is given. Raises ValueError."""
    return _product(text, SIZES_BYTES, bare, A_SIZE)


def _product(text: str, units: dict[str, int], bare: str, what: str) -> int:
    number = text.rstrip(LETTERS)
    factor = units.get(text[len(number) :] or bare)
    if factor is None or len(number) > LONGEST_NUMBER or not is_decimal(number):
        raise ValueError(f"not {what} ({', '.join(units)})")
    return round(times(number, factor))


def is_decimal(number: str) -> bool:
    """Whether it is digits, and at most one point among them."""
    return number.isascii() and number.replace(".", "", 1).isdigit()


def times(number: str, factor: int) -> int | float:
    """The product of a decimal number and `factor`, exact where it is whole."""
    whole, _, part = number.partition(".")
    if not part:
        return int(whole) * factor
    product, rest = divmod(int(whole + part) * factor, 10 ** len(part))
    return float(number) * factor if rest else product


def rate_hz(text: str) -> float | None:
    """Times a second for `auto` or a number; None for `off`. Raises ValueError."""
    if text == "auto":
        return USUAL_HZ
    if text in ("off", "0"):
        return None
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= HIGHEST_HZ:
        raise ValueError(f"{text!r} is not auto, off or a rate up to {HIGHEST_HZ:.0f} a second")
    return found
