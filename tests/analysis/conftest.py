"""What the tests of findings look at."""

import pytest
from shops import Shop


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "t.1.er")
