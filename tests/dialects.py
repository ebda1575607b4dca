"""SQL of each dialect made at random: every literal and comment is full of canaries, names are not.

What stands in them is what a scanner of another dialect would stumble over: quotes, brackets, the beginnings and ends
of comments, backslashes, dollars.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

CANARY = "canary"
NUMBER = "7733"  # how each number begins, and nothing else
DIALECTS = ("any", "sqlite", "postgresql", "mysql", "oracle")  # as cext/core/statement.h numbers them
STUMBLING = ("'", '"', "`", "[", "]", "--", "-- ", "/*", "*/", "#", "$$", "$a$", "\\", ";", "\n", "{", "}", "(", ")")
MORE = (" ", ",", "é", " from ", "=", " set x = ", " identified by ", "1", ".", "q'[", "]'", "/*!", "E'", ":", "%s")
SAFE = tuple(each for each in (*STUMBLING, *MORE) if "\\" not in each)


class Statements:
    """Statements of one dialect, always the same for a seed."""

    def __init__(self, dialect: str, seed: int, bare: list[str] | None = None) -> None:
        self.random = random.Random(f"{dialect} {seed}")
        self.dialect = dialect
        self.texts: list[Callable[[], str]] = getattr(self, f"_texts_of_{dialect}")()
        self.names: list[Callable[[], str]] = getattr(self, f"_names_of_{dialect}")()
        self.comments: list[Callable[[], str]] = getattr(self, f"_comments_of_{dialect}")()
        self.bare: list[str] = BARE[dialect] if bare is None else bare

    def take(self, count: int) -> Iterator[str]:
        """So many of them."""
        for _ in range(count):
            yield self._statement()

    def _statement(self) -> str:
        chance = self.random.random()
        if self.bare and chance < 0.05:
            return self.random.choice(self.bare).replace(" ", self._space()).replace("NAME", self._name())
        if chance < 0.3:
            rows = ", ".join(f"({self._values()})" for _ in range(self.random.randint(1, 3)))
            words = ["insert", "into", self._name(), "(", self._plain_name(), ")", "values", rows]
        elif chance < 0.5:
            words = ["update", self._name(), "set", self._plain_name(), "=", self._literal(), "where"]
            words.append(self._condition())
        else:
            words = ["select", self._values(), ",", self._plain_name(), "from", self._name(), "where"]
            words += [self._condition()] + ["or", self._condition()] * self.random.randint(0, 2)
        return self._space() * self.random.randint(0, 1) + "".join(word + self._space() for word in words)

    def _condition(self) -> str:
        name = self._plain_name()
        if self.random.random() < 0.3:
            return f"{name} in ({self._values()})"
        return f"{name}{self._space()}{self.random.choice('=<>')}{self._space()}{self._literal()}"

    def _values(self) -> str:
        literals = (self._literal() for _ in range(self.random.randint(1, 4)))
        return f"{self.random.choice([',', ', ', ' ,'])}".join(literals)

    def _literal(self) -> str:
        if self.random.random() < 0.2:
            return self.random.choice([NUMBER, f"{NUMBER}.{NUMBER}", f"-{NUMBER}", f"{NUMBER}e-3"])
        return self.random.choice(self.texts)()

    def _plain_name(self) -> str:
        """One that is in every place a name."""
        return self.random.choice(["a", "b_1", "t.c", "naïve"])

    def _name(self) -> str:
        return self.random.choice(self.names)()

    def _space(self) -> str:
        return self.random.choice(self.comments)() if self.random.random() < 0.15 else self.random.choice(" \n\t")

    def _text(self, without: str = "", among: tuple[str, ...] = (*STUMBLING, *MORE)) -> str:
        """Canaries with what is stumbled over between them, and nothing `without`."""
        pieces = [self.random.choice(among) for _ in range(self.random.randint(0, 4))]
        text = CANARY.join(["", *pieces, ""]) or CANARY
        while without and without in text:
            text = text.replace(without, "")
        return text

    def _inner_name(self, without: str) -> str:
        """What stands in a name's quotes: the same without canaries, and never nothing."""
        return "n" + self._text().replace(CANARY, "m").replace(without, "") + "n"

    # --- texts

    def _doubled(self, prefix: str = "", quote: str = "'", among: tuple[str, ...] = (*STUMBLING, *MORE)) -> str:
        return f"{prefix}{quote}{self._text(among=among).replace(quote, quote * 2)}{quote}"

    def _escaped(self, prefix: str = "", quote: str = "'") -> str:
        text = self._text().replace("\\", "\\\\").replace(quote, self.random.choice(["\\" + quote, quote * 2]))
        return f"{prefix}{quote}{text}{quote}"

    def _texts_of_sqlite(self) -> list[Callable[[], str]]:
        return [self._doubled, self._doubled, lambda: self._doubled(quote='"')]

    def _texts_of_postgresql(self) -> list[Callable[[], str]]:
        def dollars(tag: str) -> str:
            return f"${tag}${self._text(f'${tag}$')}_${tag}$"

        return [
            self._doubled,
            lambda: self._doubled(among=SAFE),
            lambda: self._escaped(self.random.choice("eE")),
            lambda: self._doubled(self.random.choice(["U&", "N", "b", "x"]), among=SAFE),
            lambda: dollars(self.random.choice(["", "a", "é_1", "tag"])),
        ]

    def _texts_of_mysql(self) -> list[Callable[[], str]]:
        return [
            self._escaped,
            lambda: self._escaped(quote='"'),
            lambda: self._doubled(among=SAFE),
            lambda: self._doubled(quote='"', among=SAFE),
            lambda: self._doubled(self.random.choice(["_utf8mb4", "n", "x"]), among=SAFE),
        ]

    def _texts_of_oracle(self) -> list[Callable[[], str]]:
        def quoted(ends: str) -> str:
            text = self._text(ends[-1] + "'")
            return f"{self.random.choice(['q', 'Q', 'nq'])}'{ends[0]}{text}_{ends[-1]}'"

        ways = ["[]", "{}", "()", "<>", "!", "|"]
        return [self._doubled, lambda: self._doubled("N"), lambda: quoted(self.random.choice(ways))]

    # --- names

    def _quoted_name(self, quote: str) -> str:
        return f"{quote}{self._inner_name(quote)}{quote}"

    def _names_of_sqlite(self) -> list[Callable[[], str]]:
        bracketed = lambda: f"[{self._inner_name(']')}]"  # noqa: E731
        return [self._plain_name, lambda: self._quoted_name('"'), lambda: self._quoted_name("`"), bracketed]

    def _names_of_postgresql(self) -> list[Callable[[], str]]:
        quoted = lambda: self._quoted_name('"')  # noqa: E731
        return [self._plain_name, quoted, lambda: "a$b$", lambda: f"x.{quoted()}"]

    def _names_of_mysql(self) -> list[Callable[[], str]]:
        return [self._plain_name, lambda: self._quoted_name("`"), lambda: "a$b$c"]

    def _names_of_oracle(self) -> list[Callable[[], str]]:
        return [self._plain_name, lambda: self._quoted_name('"'), lambda: "a#b$c"]

    # --- comments

    def _line(self, begins: str = "--") -> str:
        return f"{begins}{self._text().replace(chr(10), ' ')}\n"

    def _block(self) -> str:
        return f"/* {self._text('*/').replace('/*', '').replace('*/', '')} */"

    def _comments_of_sqlite(self) -> list[Callable[[], str]]:
        return [self._line, self._block]

    def _comments_of_postgresql(self) -> list[Callable[[], str]]:
        return [self._line, self._block, lambda: f"/* {self._block()} {CANARY} {self._block()}*/"]

    def _comments_of_mysql(self) -> list[Callable[[], str]]:
        return [lambda: self._line("-- "), lambda: self._line("#"), self._block]

    def _comments_of_oracle(self) -> list[Callable[[], str]]:
        return [self._line, self._block]


BARE = {
    "sqlite": [
        f"pragma key = {CANARY}",
        f'pragma "key" = {CANARY}',
        f"pragma main.[rekey] ( {CANARY} )",
        f"explain pragma key = {CANARY}",
        f"explain query plan attach 'x' as y key {CANARY}",
        f"\ufeffpragma key = {CANARY}",
        f"pragma\ufeffkey = {CANARY}",
        f"attach 'x' as y key {CANARY}",
        f"select 1 ; pragma hexkey={CANARY}",
        f"create virtual table x using y(z={CANARY})",
        f"create virtual table x using y(password {CANARY})",
    ],
    "postgresql": [
        f"set my.token = {CANARY}",
        f'set "my.token" to {CANARY}',
        f"set local my.token to {CANARY}",
        f"alter role NAME set my.token = {CANARY}",
        f"alter database NAME set my.token to {CANARY} ; select 1",
        f"begin ; set session my.token = {CANARY}",
    ],
    "mysql": [
        f"set global x = {CANARY}",
        f"change master to master_password = {CANARY}",
        f'create user u identified by "{CANARY}"',
        f"alter user NAME identified with p as '{CANARY}'",
        f"prepare s from \"'{CANARY}'\"",
    ],
    "oracle": [
        f"create user u identified by {CANARY}",
        f'alter user NAME identified by "{CANARY}" replace {CANARY}',
        f"grant connect to NAME identified by {CANARY}",
        f"set role r identified by {CANARY}",
        f"administer key management set keystore open identified by {CANARY}",
        f"connect u/{CANARY}@db",
        f"create database link l connect to u identified by {CANARY} using 'x'",
    ],
}
