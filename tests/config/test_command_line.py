"""What is kept of command lines: no secret, however it is written, and what helps to tell programs apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.config.command_line import kept_arguments

SECRET = "hunter2"


def kept(*words: str) -> list[str]:
    """What is kept of what a program was given."""
    return kept_arguments(["python", "app.py", *words])[1:]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-Ic", SECRET], ["-Ic", "?"]),
        (["-uc", SECRET], ["-uc", "?"]),
        (["-c" + SECRET], ["-c?"]),
        (["-Ec" + SECRET, "5"], ["-Ec?", "5"]),
        (["-cm" + SECRET], ["-c?"]),
        (["-cimport W;" + SECRET, "x.py"], ["-c?", "?"]),
        (["-I", "-W", "error", "-X", "dev", "-c", SECRET, SECRET], ["-I", "-W", "error", "-X", "dev", "-c", "?", "?"]),
        (["-m", "shop.web", SECRET], ["-m", "shop.web", "?"]),
        (["-mshop.web", "--port", "80"], ["-mshop.web", "--port", "80"]),
        (["-", SECRET], ["-", "?"]),
        (["main.py", SECRET], ["main.py", "?"]),
        (["-X", f"name={SECRET}", "-X", "dev", "a.py"], ["-X", "name=?", "-X", "dev", "a.py"]),
        ([f"-Xname={SECRET}", "-Ximporttime", "a.py"], ["-Xname=?", "-Ximporttime", "a.py"]),
        (["-X", "utf8=1", "-Xfrozen_modules=off", "a.py"], ["-X", "utf8=1", "-Xfrozen_modules=off", "a.py"]),
        ([f"-Wignore:{SECRET}:UserWarning:m:5", "a.py"], ["-Wignore:?:UserWarning:m:5", "a.py"]),
        (["-W", f"ignore:{SECRET}", "a.py"], ["-W", "ignore:?", "a.py"]),
        (["-W", "error::DeprecationWarning", "a.py"], ["-W", "error::DeprecationWarning", "a.py"]),
    ],
)
def test_of_the_interpreters_words_code_and_values_are_not_kept(words, shown):
    assert kept_arguments(["python", *words]) == shown


@pytest.mark.parametrize(
    "words",
    [
        ["-e" + SECRET],
        ["-e", SECRET],
        ["--eval=" + SECRET],
        ["--execute", f"select '{SECRET}'"],
        ["-p", SECRET],
        ["-p" + SECRET],
        ["-a", SECRET],
        ["-P", SECRET],
        ["-pw", SECRET],
        ["-password", SECRET],
        ["-U", f"bob:{SECRET}"],
        [f"-ubob:{SECRET}"],
        [f"--user=bob:{SECRET}"],
        ["--proxy", f"bob:{SECRET}@h"],
        [f"scott/{SECRET}@db"],
        [f"//u:{SECRET}@h"],
        *[[f"--{name}", SECRET] for name in ("pw", "pin", "otp", "psk", "jwt", "session", "cookie", "password", "x")],
        *[[f"--{name}={SECRET}"] for name in ("pw", "pin", "otp", "psk", "jwt", "session", "cookie", "password", "x")],
        [f"--password:{SECRET}"],
        ["-H", f"Cookie: {SECRET}"],
        ["-H", f"Authorization: Bearer {SECRET}"],
        [f"Bearer {SECRET}"],
        [f"alter user bob password '{SECRET}'"],
        ["--password=", SECRET],
        ["--password", "--", SECRET],
        ["--password", "--" + SECRET],
        [f"https://bob:hun?{SECRET}@host/"],
        [f"https://host/?a=1;sig={SECRET}"],
        [f"https://host/#sig={SECRET}"],
        [f"http://bob:12?{SECRET}@h/"],
        [f"API_KEY={SECRET}"],
        [f"{SECRET}="],
        [f"--{SECRET} x y"],
        [f'--headers={{"x-api-key": "{SECRET}"}}'],
        [f"host=db user=u password={SECRET}"],
        [f"/p:{SECRET}"],
        [f"@{SECRET}"],
        [f"app:{SECRET}"],
        [f"/srv/{SECRET}/../x"],
        ["password", SECRET],
    ],
    ids=" ".join,
)
def test_no_secret_is_kept_however_it_is_written(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    shown = kept(*words)

    assert SECRET not in "\0".join(shown)
    assert "?" in "".join(shown)
    assert len(shown) == len(words)


@pytest.mark.parametrize(
    "words",
    [
        *[[f"--{name}", "123456"] for name in ("pin", "otp", "password", "api-key", "session-id", "cvv")],
        *[[f"--{name}", "123456"] for name in ("userPin", "PIN", "pincode", "2fa", "pins", "pin2", "smspin", "puk1")],
        *[[f"--{name}", "123456"] for name in ("code", "onetimecode", "cardnumber", "iban", "unlock")],
        *[["--pins", "123456", "1123456"], ["--pin", "=", "123456"], ["pin", ":", "123456"]],
        *[["--otp2=123456"], ["PIN=123456"], ["-o", "pin=123456"]],
        *[["/pin", "123456"], ["/pin:123456"], ["+pin", "123456"]],
        ["--pin=123456"],
        ["-p123456"],
        ["-p", "123456"],
        ["--password", "--", "123456"],
        ["pin", "123456"],
        ["4111111111111111"],
        ["4111 1111 1111 1111"],
    ],
    ids=" ".join,
)
def test_numbers_that_are_secrets_are_not_kept(words):
    assert "11" not in "".join(kept(*words))
    assert "123456" not in "".join(kept(*words))


def test_numbers_existing_paths_modules_and_plain_words_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").touch()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "web.py").touch()
    words = ["--workers", "4", "-n5", "-j=8", "-0.5", "1e-3", "512MiB", "10s", "100%", "-vvv", "-rf", "--verbose"]
    words += ["orders.csv", "--in=orders.csv", "-Ishop", "/etc", "shop.web", "shop.web:app"]
    words += ["--level", "DEBUG", "run", "--", "-"]

    assert kept(*words) == words
    assert kept("shop.web:hunter2", "shop.none", "none.csv") == ["shop.web:?", "?", "?"]


def test_of_ten_thousand_words_few_are_looked_for_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").touch()
    looked_for = []
    monkeypatch.setattr("os.path.lexists", lambda path: looked_for.append(path) or True)

    shown = kept(*["a.csv"] * 10_000)

    assert (len(looked_for), len(shown)) == (100, 10_000)
    assert (shown[0], shown[-1]) == ("a.csv", "?")


@given(st.lists(st.text(max_size=20), max_size=8))
def test_every_word_keeps_its_place_and_what_is_hidden_is_its_end(words):
    shown = kept_arguments(["python", "app.py", *words])

    assert len(shown) == len(words) + 1
    for word, given_word in zip(shown[1:], words, strict=True):
        assert word == given_word or (word.endswith("?") and given_word.startswith(word[:-1]))
