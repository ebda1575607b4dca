"""The system library's network: what is recorded of each call, and whether it waits for a request or an answer."""

import shutil
import subprocess

import pytest
from exercises import assert_program_is_recorded


def test_every_call_of_the_network_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "network")


@pytest.fixture
def certificate(tmp_path):
    """A certificate of this host for itself, its key, and parameters, in the program's directory."""
    pytest.importorskip("ssl")
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    for words in (
        f"{made} -keyout key -out certificate",
        "genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out parameters",
    ):
        subprocess.run(["openssl", *words.split()], cwd=tmp_path, capture_output=True, check=True)


def test_every_call_of_an_encrypted_connection_is_recorded_as_it_was(certificate, traced):
    assert_program_is_recorded(traced, "encryption")


def test_only_a_servers_wait_for_the_next_request_is_idle(traced):
    assert_program_is_recorded(traced, "requests")


def test_a_wait_is_of_the_kind_of_what_was_registered_with_it(traced):
    assert_program_is_recorded(traced, "several_waits")


def test_what_is_moved_is_counted_whatever_it_lies_in(traced):
    assert_program_is_recorded(traced, "arrays")
