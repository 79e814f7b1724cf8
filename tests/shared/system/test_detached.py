"""A process that outlives its starter: its request, its answer, and what it does not inherit."""

from __future__ import annotations

import os
import pickle
import signal

import pytest

from lsmkv.shared.system.detached import Detached
from lsmkv.shared.system.local import SHARES

pytestmark = pytest.mark.skipif(not SHARES, reason="only Linux has what it takes")


def answer_to(request: bytes) -> bytes:
    process = Detached("lsmkv.shared.owner_process", "test", "place", request)
    try:
        while True:
            answer = process.receive(0.1)
            if answer is not None:
                return answer
    finally:
        process.close()


@pytest.mark.parametrize("request_size", [0, 10, 1 << 20])
def test_an_answer_comes_whole(request_size: int) -> None:
    outcome, error, _ = pickle.loads(answer_to(b"x" * request_size))
    assert outcome == "failed"
    assert isinstance(error, ValueError)


def test_it_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    answer_to(b"x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_module_that_is_not_there_gives_no_answer() -> None:
    process = Detached("lsmkv.no_such_module", "test", "place", b"x")
    answer = None
    while answer is None:
        answer = process.receive(0.1)
    process.close()
    assert answer == b""


def test_a_program_that_waits_for_its_children_itself() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system does it
    try:
        assert pickle.loads(answer_to(b"x"))[0] == "failed"
    finally:
        signal.signal(signal.SIGCHLD, before)
