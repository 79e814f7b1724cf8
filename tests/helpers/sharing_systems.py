"""What processes share a store by must do, on the real system and in a simulation.

Each function takes two processes' halves of one system: what has the functions of
``lsmkv.shared.system.sockets``, or what has those of ``lsmkv.shared.system.shared_page``, or
directories.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from lsmkv.engine.env.base import Directory
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.shared_page import EPOCH, SEQUENCE, SUPERSEDED

ADDRESS = b"\0lsmkv test %d"


def _raises(kind: type[BaseException], call: Callable[[], object]) -> Any:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def connections(near: Any, far: Any, address: bytes) -> None:
    """Bytes, ends, and what a thread that polls learns of them."""
    _raises(ConnectionRefusedError, lambda: near.connect(address, None))
    listening = far.listen(address)
    assert far.accept(listening) is None
    alarm = far.Alarm()
    poll = far.polling.epoll()
    poll.register(listening.fileno(), far.polling.EPOLLIN)
    poll.register(alarm.fd, far.polling.EPOLLIN)
    assert poll.poll(0.0, 9) == []

    client = near.connect(address, 60.0)
    client.sendall(b"hello", 0)
    assert [fd for fd, _ in poll.poll(-1.0, 9)] == [listening.fileno()]
    server = far.accept(listening)
    poll.register(server.fileno(), far.polling.EPOLLIN)
    assert [fd for fd, _ in poll.poll(-1.0, 9)] == [server.fileno()]
    buffer = memoryview(bytearray(100))
    assert bytes(buffer[: server.recv_into(buffer)]) == b"hello"
    _raises(BlockingIOError, lambda: server.recv_into(buffer))
    assert poll.poll(0.0, 9) == []

    assert server.send(b"to you", 0) == 6
    assert (client.recv(2), client.recv(100)) == (b"to", b" you")
    near.set_patience(client, 0.01)
    assert _raises(BlockingIOError, lambda: client.recv(1)).errno == errno.EAGAIN
    alarm.ring()
    alarm.ring()
    assert [fd for fd, _ in poll.poll(-1.0, 9)] == [alarm.fd]
    alarm.quiet()
    assert poll.poll(0.0, 9) == []

    server.send(b"rest", 0)
    poll.unregister(server.fileno())
    server.close()
    assert server.fileno() == -1
    assert (client.recv(100), client.recv(100)) == (b"rest", b"")
    _raises(ConnectionError, lambda: client.sendall(b"more", 0))
    client.close()

    client = near.connect(address, None)
    server = far.accept(listening)
    client.sendall(b"unread", 0)
    server.close()
    _raises(ConnectionResetError, lambda: client.recv(100))
    client.close()

    client = near.connect(address, None)
    server = far.accept(listening)
    near.end(client)
    assert client.recv(1) == server.recv(1) == b""
    for one in (client, server):
        one.close()

    client = near.connect(address, None)
    listening.close()
    _raises(ConnectionError, lambda: client.recv(1) or _closed())
    client.close()
    _raises(ConnectionRefusedError, lambda: near.connect(address, None))
    poll.close()
    alarm.close()


def _closed() -> None:
    raise ConnectionResetError  # an end without an error is one, too


def pages(near: Any, far: Any, near_pages: Any, far_pages: Any, address: bytes, pid: int) -> None:
    """A page is handed over to process ``pid``, is read only there, and outlives who made it."""
    listening = far.listen(address)
    client = near.connect(address, None)
    server = far.accept(listening)
    page, reading = far_pages.make_page(7, 99)
    assert page.words[EPOCH] == 7
    far.send_with(server, b"greeting", reading)
    content, fd = near.receive_with(client, 100)
    assert content == b"greeting"
    seen = near_pages.SharedPage(fd, False)
    page.words[SEQUENCE] = 5
    page.note(3, 11, 20, 4)
    assert (seen.words[SEQUENCE], seen.noted(3), seen.superseded) == (5, (11, 23), False)
    _raises(TypeError, lambda: seen.words.__setitem__(SEQUENCE, 6))
    server.send(b"x", 0)
    assert near.receive_with(client, 100) == (b"x", -1)

    if hasattr(far_pages, "find_page"):  # elsewhere its name leads to it
        found = far_pages.find_page(pid, seen.fd, 99)
        assert found.words[SEQUENCE] == 5
        found.close()
        assert far_pages.find_page(pid, seen.fd, 98) is None
        assert far_pages.find_page(pid, seen.fd + 1000, 99) is None
        assert not far_pages.end_page([(pid, seen.fd + 1000)], 99)
    assert not seen.superseded
    page.close()
    far_pages.close_descriptor(reading)
    assert far_pages.end_page([(pid, seen.fd)], 99)
    assert page.words[SEQUENCE] == SUPERSEDED
    seen.supersede()
    assert seen.superseded
    seen.close()
    _raises(OSError, lambda: near_pages.SharedPage(fd, False))
    for one in (client, server, listening):
        one.close()


def leases(one: Any, other: Any, pid: int) -> None:
    """Two directories of one place: ``LOCK``, ``SHARED`` and its leases.  ``pid`` is of ``one``."""
    assert other.lock_holder("LOCK") is None
    lock = one.lock("LOCK")
    assert other.lock_holder("LOCK") == pid
    _raises(OSError, lambda: other.lock("LOCK"))
    lock.close()
    lock.close()
    assert other.lock_holder("LOCK") is None
    other.lock("LOCK").close()

    _raises(FileNotFoundError, lambda: _place(other).shared_file("SHARED", False))
    file = _place(one).shared_file("SHARED", True)
    assert not one.is_shared("SHARED")
    head = file.begin_epoch()
    file.announce(head, 12)
    again = _place(other).shared_file("SHARED", False)
    seen = again.read_head()
    assert seen is not None
    assert (seen.epoch, seen.token, seen.pid, seen.ready) == (1, head.token, head.pid, True)
    assert again.recovered_after(0) == 12
    assert again.inode() == file.inode()

    again.lease(5)
    again.lease(5)
    again.lease_log(3)
    assert file.is_leased(5, 5)
    assert file.is_leased(0, 9)
    assert not file.is_leased(6, 9)
    assert not again.is_leased(0, 9), "its own leases are not another's"
    assert (file.is_log_leased(2), file.is_log_leased(4)) == (False, True)
    assert one.is_shared("SHARED")
    assert file.leases_in(file.leased()) == ([5], 3)
    again.release(5)
    assert not file.is_leased(0, 9)
    one.remove("SHARED")
    assert file.is_leased_at_all(), "a file without a name is one, too"
    again.close()
    again.release_log(3)
    assert not file.is_leased_at_all()
    _raises(OSError, again.read_head)
    file.close()

    claiming, too_late = _place(one), _place(other)
    assert claiming.claim_start()
    assert not too_late.claim_start()
    claiming.end_start()
    assert too_late.claim_start()
    too_late.end_start()
    other.close()
    one.close()


def _place(directory: Any) -> Any:
    """By what a directory is shared; one of a simulation has that itself."""
    return place_of(directory) if isinstance(directory, Directory) else directory


def program(run: Any) -> None:
    """All of it, in a simulation."""
    near, far = run.process("near"), run.process("far")
    run.env.open_directory("/db", create=True)
    one, other = Lent(near, near.env), Lent(far, far.env)
    connections(one.sockets, other.sockets, ADDRESS % 1)
    pages(one.sockets, other.sockets, one.pages, other.pages, ADDRESS % 2, near.pid)
    leases(one.open_directory("/db"), other.open_directory("/db"), near.pid)


class Lent:
    """What is of a simulated process, for the main thread, which belongs to it in each call."""

    def __init__(self, process: Any, inner: Any) -> None:
        self._process = process
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return self._in_process(getattr, self._inner, name)

    def __call__(self, *arguments: Any) -> Any:
        given = [one._inner if isinstance(one, Lent) else one for one in arguments]
        return self._in_process(self._inner, *given)

    def __getitem__(self, at: int) -> Any:
        return self._in_process(self._inner.__getitem__, at)

    def __setitem__(self, at: int, value: int) -> None:
        self._in_process(self._inner.__setitem__, at, value)

    def _in_process(self, call: Callable[..., Any], *arguments: Any) -> Any:
        thread = self._process.system.scheduler.current
        before, thread.group = thread.group, self._process
        try:
            return self._lend(call(*arguments))
        finally:
            thread.group = before

    def _lend(self, one: Any) -> Any:
        if isinstance(one, tuple):
            return tuple(self._lend(each) for each in one)
        simulated = type(one).__module__.startswith("lsmkv.testing.") or callable(one)
        return Lent(self._process, one) if simulated else one
