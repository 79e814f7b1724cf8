"""A process that ends with its starter."""

from __future__ import annotations

import os
import signal

import pytest

from lsmkv.shared.system.attached import Attached
from lsmkv.shared.system.local import SHARES

pytestmark = pytest.mark.skipif(not SHARES, reason="only Linux has what it takes")


@pytest.fixture
def module(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that echoes what it gets, and ends as it is asked to."""
    folder = tmp_path_factory.mktemp("path")
    (folder / "echoing.py").write_text(
        """
import os
from lsmkv.shared.system.attached import connection, leave

def main():
    socket, _ = connection()
    while data := socket.recv(100):
        if data == b"crash":
            os.abort()
        elif data == b"end":
            leave(7)
        elif data == b"hang":
            print("into nothing")
            import threading
            socket.send(b"%d" % threading.active_count())
            threading.Event().wait()
        socket.send(data)
"""
    )
    monkeypatch.syspath_prepend(folder)
    return "echoing"


@pytest.mark.parametrize(
    ("sent", "end"), [(b"crash", (-signal.SIGABRT, "SIGABRT")), (b"end", (7, "exit status 7"))]
)
def test_why_it_has_ended(module: str, sent: bytes, end: tuple[int, str]) -> None:
    process = Attached(module, "test")
    process.connection.sendall(b"hello")
    assert process.connection.recv(100) == b"hello"
    process.connection.sendall(sent)
    assert process.connection.recv(100) == b""
    assert process.end() == end
    assert process.end() == (0, "")


def test_it_ends_with_its_connection_whatever_it_does(module: str) -> None:
    process = Attached(module, "test")
    process.connection.sendall(b"hang")
    assert process.connection.recv(100) == b"2"
    process.connection.close()
    _, status = os.waitpid(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_it_is_killed(module: str) -> None:
    process = Attached(module, "test")
    pid = process.pid
    before = len(os.listdir("/proc/self/fd"))
    assert process.end() == (0, "")
    assert len(os.listdir("/proc/self/fd")) == before - 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_waits_for_its_children_itself(module: str) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system does it
    try:
        process = Attached(module, "test")
        process.connection.sendall(b"end")
        assert process.connection.recv(100) == b""
        assert process.end() == (0, "")
    finally:
        signal.signal(signal.SIGCHLD, before)
