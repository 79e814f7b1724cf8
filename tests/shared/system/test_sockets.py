"""Unix sockets without a file, for processes of one user."""

from __future__ import annotations

import os
import socket

import pytest

from lsmkv.shared.system import sockets
from lsmkv.shared.system.shared_page import HAS_PAGES

pytestmark = pytest.mark.skipif(not HAS_PAGES, reason="Linux alone")

ADDRESS = b"\0lsmkv-test-%d" % os.getpid()


def test_two_ends() -> None:
    listening = sockets.listen(ADDRESS)
    assert sockets.accept(listening) is None
    client = sockets.connect(ADDRESS, None)
    server = sockets.accept(listening)
    assert sockets.peer(server) == (os.getpid(), os.getuid(), os.getgid())
    server.send(b"hello")
    assert client.recv(10) == b"hello"
    for one in (client, server, listening):
        one.close()
    with pytest.raises(ConnectionRefusedError):
        sockets.connect(ADDRESS, None)


def test_a_descriptor_comes_with_bytes() -> None:
    listening = sockets.listen(ADDRESS)
    client = sockets.connect(ADDRESS, None)
    server = sockets.accept(listening)
    read, write = os.pipe()
    sockets.send_with(server, b"a pipe", read)
    content, received = sockets.receive_with(client, 100)
    os.write(write, b"x")
    assert (content, os.read(received, 1)) == (b"a pipe", b"x")
    server.send(b"none")
    assert sockets.receive_with(client, 100) == (b"none", -1)
    for fd in (read, write, received):
        os.close(fd)
    for one in (client, server, listening):
        one.close()


@pytest.mark.parametrize("patience", [0.05, 1e-9])
def test_patience_ends(patience: float) -> None:
    listening = sockets.listen(ADDRESS)
    client = sockets.connect(ADDRESS, patience)
    with pytest.raises(BlockingIOError):
        client.recv(1)
    client.close()
    listening.close()


def test_only_one_of_several_descriptors_is_kept() -> None:
    """The kernel rounds the room for one up to that for two."""
    client, server = socket.socketpair()
    before = len(os.listdir("/proc/self/fd"))
    socket.send_fds(server, [b"x"], [0, 1])
    content, received = sockets.receive_with(client, 100)
    assert content == b"x"
    os.close(received)
    assert len(os.listdir("/proc/self/fd")) == before
    client.close()
    server.close()


def test_an_alarm_rings_until_it_is_quiet() -> None:
    alarm = sockets.Alarm()
    poll = sockets.polling.poll()
    poll.register(alarm.fd, sockets.polling.POLLIN)
    assert poll.poll(0) == []
    alarm.ring()
    alarm.ring()
    assert len(poll.poll(0)) == 1
    alarm.quiet()
    assert poll.poll(0) == []
    alarm.close()
    alarm.ring()
    alarm.close()
