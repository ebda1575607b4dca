"""The identities of traces and spans: the same in the traced program and in exports, and never twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.experiments.metadata.log import Log
from interpose.exports.identities import call_of, seed_of, span_of, trace_of
from interpose.timing import shims

pytestmark = pytest.mark.every_python

WORD, HALF = st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1)


@given(HALF, WORD, WORD, HALF, HALF)
def test_the_traced_program_and_the_exports_use_the_same_identities(pid, start_ns, time_ns, thread, call):
    seed = seed_of(Log(pid=pid, start_ns=start_ns, time_ns=time_ns))

    high, low, span = shims.identities(pid, start_ns, time_ns, thread, call)

    assert trace_of(seed) == f"{high:016x}{low:016x}"
    assert span_of(seed, thread, call) == f"{span:016x}"


@pytest.mark.any_python
@given(WORD, HALF, HALF)
def test_an_identity_leads_back_to_its_call(seed, thread, call):
    span = int(span_of(seed, thread, call), 16)

    assert call_of(seed, span) == (thread, call) or span == 1


@pytest.mark.any_python
def test_no_two_calls_of_several_processes_share_an_identity():
    seeds = [seed_of(Log(pid=pid, start_ns=10**9, time_ns=10**18)) for pid in range(100, 110)]

    found = {span_of(seed, thread, call) for seed in seeds for thread in range(5) for call in range(2000)}

    assert len(found) == 10 * 5 * 2000
    assert len({trace_of(seed) for seed in seeds}) == 10


@pytest.mark.any_python
def test_an_identity_is_never_zero():
    assert int(span_of(0, 0, 0), 16) == 1
