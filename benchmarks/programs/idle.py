"""Counts words and sorts them, in pure Python; prints the seconds of the quickest round.

Usage: idle.py ROUNDS

It calls nothing that interpose records.
"""

import json
import sys
from time import perf_counter

TEXT = "the quick brown fox jumps over the lazy dog while seven wizards box quickly by jove " * 200


class Counter:
    """Words and how often they came."""

    def __init__(self):
        self.counts = {}

    def add(self, word):
        """Count a word."""
        self.counts[word] = self.counts.get(word, 0) + 1

    def most(self):
        """The words, the most frequent first."""
        return sorted(self.counts, key=lambda word: (-self.counts[word], word))


def words(text):
    """The words of a text, found letter by letter."""
    word = ""
    for letter in text:
        if letter.isalpha():
            word += letter
        elif word:
            yield word
            word = ""


def round_seconds():
    """How long it takes to count the words of the text."""
    begun = perf_counter()
    counter = Counter()
    for word in words(TEXT):
        counter.add(word)
    counter.most()
    return perf_counter() - begun


print(json.dumps(min(round_seconds() for _ in range(int(sys.argv[1])))))
