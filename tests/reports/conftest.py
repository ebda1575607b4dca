"""What tests of pages need: a browser, kept for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()
