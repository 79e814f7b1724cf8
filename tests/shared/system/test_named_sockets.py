"""Unix sockets with a name, as on macOS; what only macOS has is imitated."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import macos_rules
import pytest
import sharing_systems

from lsmkv.engine.env import forks
from lsmkv.shared.system import named_page, named_sockets
from lsmkv.shared.system.local import SHARES
from lsmkv.shared.system.sockets import Socket, module

pytestmark = pytest.mark.skipif(not SHARES, reason="this system shares no store")

EPOCH = 7


@pytest.fixture(autouse=True)
def darwin(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What sockets do there."""
    methods = macos_rules.methods_of_sockets(module.socket)
    for name, method in methods.items():
        monkeypatch.setattr(Socket, name, method, raising=False)
    return methods


@pytest.fixture
def token() -> Iterator[int]:
    made = int.from_bytes(os.urandom(7), "little")
    yield made
    named_sockets.forget(made, EPOCH)


def test_they_do_what_linux_does(token: int) -> None:
    sharing_systems.connections(
        named_sockets, named_sockets, named_sockets.address_of(token, EPOCH)
    )


def test_they_hand_over_pages(token: int) -> None:
    sharing_systems.pages(
        *(named_sockets, named_sockets, named_page, named_page),
        named_sockets.address_of(token, EPOCH),
        os.getpid(),
    )


def test_a_name_is_short_and_its_owner_s_alone(token: int) -> None:
    longest = named_sockets.address_of((1 << 63) - 1, (1 << 29) - 1)
    assert len(longest) < 104
    path = Path(os.fsdecode(named_sockets.address_of(token, EPOCH)))
    listening = named_sockets.listen(os.fsencode(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listening.close()
    assert not path.exists()
    listening.close()


def test_who_is_at_the_other_end(token: int) -> None:
    address = named_sockets.address_of(token, EPOCH)
    listening = named_sockets.listen(address)
    client = named_sockets.connect(address, None)
    server = named_sockets.accept(listening)
    assert named_sockets.peer(server) == (os.getpid(), os.getuid(), os.getgid())
    for one in (client, server, listening):
        one.close()


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack("@IIh2xI60x", 0, os.getuid() + 1, 1, 0),
        struct.pack("@IIh2xI60x", 1, os.getuid(), 1, 0),
        b"",
    ],
)
def test_another_user_is_refused(
    token: int, darwin: dict[str, Any], monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    address = named_sockets.address_of(token, EPOCH)
    listening = named_sockets.listen(address)

    def getsockopt(self: Any, level: int, option: int, size: int = 0) -> Any:
        return answer if option == 1 else darwin["getsockopt"](self, level, option, size)

    with monkeypatch.context() as patched:
        patched.setattr(Socket, "getsockopt", getsockopt)
        with pytest.raises(PermissionError):
            named_sockets.connect(address, None)
        assert named_sockets.accept(listening) is None
    listening.close()


def test_one_that_has_gone_again_is_not_accepted(
    token: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS refuses to set options of its socket."""
    address = named_sockets.address_of(token, EPOCH)
    listening = named_sockets.listen(address)
    client = named_sockets.connect(address, None)

    def setsockopt(*_arguments: Any) -> None:
        raise OSError(22, "Invalid argument")

    with monkeypatch.context() as patched:
        patched.setattr(Socket, "setsockopt", setsockopt)
        assert named_sockets.accept(listening) is None
    client.close()
    listening.close()


def test_what_a_kill_leaves_is_removed(token: int) -> None:
    path = Path(os.fsdecode(named_sockets.address_of(token, EPOCH)))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(ConnectionRefusedError):
        named_sockets.connect(os.fsencode(path), None)
    named_sockets.forget(token, EPOCH)
    assert not path.exists()
    with pytest.raises(ConnectionRefusedError):
        named_sockets.connect(os.fsencode(path), None)
    named_sockets.forget(token, EPOCH)
    path.write_bytes(b"not a socket")
    named_sockets.forget(token, EPOCH)
    path.unlink()


def test_a_forked_child_removes_no_name(token: int) -> None:
    address = named_sockets.address_of(token, EPOCH)
    listening = named_sockets.listen(address)
    child = os.fork()
    if child == 0:
        listening.close()
        os._exit(0 if listening.fileno() == -1 and os.path.exists(address) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert os.path.exists(address)
    listening.close()


def test_two_cannot_have_one_name(token: int) -> None:
    address = named_sockets.address_of(token, EPOCH)
    listening = named_sockets.listen(address)
    with pytest.raises(OSError, match="in use"):
        named_sockets.listen(address)
    named_sockets.connect(address, None).close()
    listening.close()


def test_a_spare_is_a_descriptor() -> None:
    before = len(os.listdir("/dev/fd"))
    spare = named_sockets.ReserveDescriptor()
    spare.renew()
    assert len(os.listdir("/dev/fd")) == before + 1
    spare.close()
    spare.close()
    assert len(os.listdir("/dev/fd")) == before
    spare.renew()
    spare.close()


def test_an_alarm_is_closed_in_a_child() -> None:
    alarm = named_sockets.Alarm()
    assert {one for one in forks.noted() if one in (alarm._near, alarm._far)}
    alarm.close()
    alarm.ring()
    alarm.close()


def test_a_descriptor_is_waited_for_once() -> None:
    poll = named_sockets.polling.epoll()
    with pytest.raises(FileNotFoundError):
        poll.unregister(0)
    poll.close()
