"""Writes a package of many modules, and tests of it: what `coverage.py imports` and `suite` use.

Usage: imported.py DIRECTORY MODULES
"""

import json
import sys
from pathlib import Path

MODULE = '''
"""Module {number} of a package that is imported to see what importing costs."""

LIMIT = {number}


class Account{number}:
    """An account with a balance."""

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def pay_in(self, amount):
        if amount <= 0:
            raise ValueError(amount)
        self.balance += amount
        return self.balance

    def pay_out(self, amount):
        if amount > self.balance:
            raise ValueError(amount)
        self.balance -= amount
        return self.balance


def settle(accounts):
    """The sum of all that is more than the limit."""
    total = 0
    for account in accounts:
        if account.balance > LIMIT:
            total += account.balance - LIMIT
        elif account.balance < 0:
            total -= 1
    return total


def describe(accounts, *, sep=", "):
    """Each in words."""
    words = []
    for account in accounts:
        if not account.owner:
            continue
        words.append(f"{{account.owner}}: {{account.balance}}")
    return sep.join(words)


def total():
    """What is settled of three accounts."""
    return settle([Account{number}("a", 100), Account{number}("b"), Account{number}("", {number})])
'''

TESTS = '''
class Test{number}(unittest.TestCase):
    def setUp(self):
        self.account = module{number}.Account{number}("x", 10)

    def test_paying_in(self):
        for amount in range(1, 40):
            self.assertGreater(self.account.pay_in(amount), 10)
        with self.assertRaises(ValueError):
            self.account.pay_in(0)

    def test_paying_out(self):
        self.assertEqual(self.account.pay_out(10), 0)
        with self.assertRaises(ValueError):
            self.account.pay_out(1)

    def test_in_words(self):
        for _ in range(20):
            self.assertEqual(module{number}.describe([self.account] * 5, sep="").count("x"), 5)
        self.assertEqual(module{number}.total(), max(100 - {number}, 0))
'''


def write(directory, modules):
    """Write it."""
    package = Path(directory, "imported")
    package.mkdir()
    names = [f"module{number}" for number in range(modules)]
    for number, name in enumerate(names):
        (package / f"{name}.py").write_text(MODULE.format(number=number))
    imports = f"from imported import {', '.join(names)}\n"
    total = f"\n\ndef total():\n    return sum(each.total() for each in ({', '.join(names)}))\n"
    (package / "__init__.py").write_text(imports + total)
    tests = "".join(TESTS.format(number=number) for number in range(modules))
    (package / "tests.py").write_text(f"import unittest\n\n{imports}\n{tests}")


write(sys.argv[1], int(sys.argv[2]))
print(json.dumps(int(sys.argv[2])))
