"""Eight threads that make thumbnails in Python code."""

from concurrent.futures import ThreadPoolExecutor


def shrink(rows):
    return [[sum(row[at : at + 4]) // 4 for at in range(0, len(row), 4)] for row in rows[::4]]


def thumbnail(number):
    rows = [[(number + x * y) % 256 for x in range(320)] for y in range(240)]
    return shrink(rows)


with ThreadPoolExecutor(8) as executor:
    print(len(list(executor.map(thumbnail, range(80)))))
