"""What the processes of a shared store send each other: any bytes, in both directions."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from judge import Finding, expect

from lsmkv import Error, SharedDB
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.options import make_options
from lsmkv.shared.connection import Connection, OwnerGone, number_in, plain, result_in
from lsmkv.shared.frames import (
    CALL,
    DONE,
    END,
    GREETING,
    HEADER,
    HELLO,
    LEAVING,
    NUMBER,
    PROGRESS,
    PROTOCOL,
    READY,
    WAIT,
    WRITE,
    check_answer,
    frame,
    json_frame,
)
from lsmkv.shared.joining import names_of
from lsmkv.shared.system import sockets
from lsmkv.shared.system.shared_page import SLOTS, SharedPage, close_descriptor, make_page
from lsmkv.shared.system.system import LOCAL

HELLO_FRAME = json_frame(HELLO, 0, {"protocol": PROTOCOL, "names": names_of(make_options())})
READY_FRAME = json_frame(READY, 1, {"descriptor": 0})
_KINDS = 16
_PATIENCE = 10.0
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
_HARMLESS = ("acknowledge_recovery", "compact_range", "flush", "sync")


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kinds and contents, of which each has the bytes before it that say so."""
    at = 0
    while at + 2 <= len(data):
        kind, size = data[at] % _KINDS, data[at + 1]
        yield kind, data[at + 2 : at + 2 + size]
        at += 2 + size


# To an owner


class _Owner(SharedDB):
    """Does nothing for a member that could leave its directory."""

    def _run_method(self, name: str, arguments: dict[str, Any], tell: Any) -> Any:
        if name not in _HARMLESS:
            raise ValueError(f"not {name!r} here")
        return super()._run_method(name, arguments, tell)


class Talk:
    """A connection to an owner, whose answers are checked."""

    def __init__(self, owner: SharedDB, greeted: bool) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE)
        head = owner._part.publishing.head  # type: ignore[union-attr]
        self._socket.connect(LOCAL.sockets.address_of(head.token, head.epoch))
        self._rest = b""
        if greeted:
            expect(self.ask(HELLO_FRAME) == GREETING, "no greeting")
            expect(self.ask(READY_FRAME) == DONE, "not ready")

    def send(self, data: bytes) -> bool:
        """Send bytes; False if the owner has ended the connection."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            return False
        return True

    def ask(self, data: bytes) -> int:
        """Send a request, and return the kind of its answer; 0 if the owner has ended it."""
        return self.answer() if self.send(data) else 0

    def answer(self) -> int:
        """The kind of the next answer; 0 at the end."""
        while True:
            if len(self._rest) >= HEADER.size:
                size, kind, _ = HEADER.unpack_from(self._rest)
                check_answer(size, kind)
                if len(self._rest) >= HEADER.size + size:
                    self._rest = self._rest[HEADER.size + size :]
                    return int(kind)
            try:
                more, fds, _, _ = socket.recv_fds(self._socket, 1 << 16, 1)
            except TimeoutError:
                raise Finding("the owner does not answer") from None
            except ConnectionError:
                more, fds = b"", []
            for fd in fds:
                os.close(fd)
            if not more:
                return 0
            self._rest += more

    def finish(self) -> None:
        """Send nothing more, and read the answers to the end."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the owner has ended it
        while self.answer() > 0:
            pass
        expect(self._rest == b"", "half an answer")

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()


def fuzz_members(data: bytes) -> None:
    """What comes to an owner, at once and as requests: it answers, and goes on serving others."""
    with (
        tempfile.TemporaryDirectory(prefix="lsmkv-fuzz-", dir=_MEMORY) as place,
        _Owner(f"{place}/store", create_if_missing=True) as owner,
        Talk(owner, True) as good,
    ):
        for number, greeted in enumerate((False, True)):
            with Talk(owner, greeted) as bad:
                bad.send(data)
                bad.finish()
            with Talk(owner, greeted) as bad:
                _ask(bad, data)
                bad.finish()
            value = b"%d" % number
            answer = good.ask(frame(WRITE, 2 + number, b"\0" + encode_batch(0, [(b"k", value)])))
            expect(answer == DONE and owner.get(b"k") == value, "another member is not served")
        expect(owner.members == [os.getpid()], "other members")


def _ask(bad: Talk, data: bytes) -> None:
    for number, (kind, content) in enumerate(pieces(data)):
        if kind == WAIT:
            content = content[: NUMBER.size] + NUMBER.pack(1)  # no longer than that
        if not bad.send(frame(kind, number, content)):
            return
        if kind == END:  # the only one that is not answered
            continue
        while (answer := bad.answer()) == PROGRESS:
            pass
        if answer == 0:
            return
        expect(answer != LEAVING, "the owner leaves")


# To a member


def fuzz_answers(data: bytes) -> None:
    """What an owner answers: one of our errors, or what the protocol allows.

    The first byte says what comes with the greeting: the page, another file, or nothing.
    """
    if not data:
        return
    page, reading = make_page(1, 1)
    try:
        for stream in (data[1:], _answers(data[1:])):
            _hear(stream, (-1, reading, 0)[data[0] % 3])
    finally:
        page.close()
        close_descriptor(reading)


def _answers(data: bytes) -> bytes:
    """Frames, each for the request whose answer is awaited."""
    request = 0
    stream = b""
    for kind, content in pieces(data):
        stream += frame(kind, request, content)
        request += kind != PROGRESS
    return stream


def _hear(stream: bytes, descriptor: int) -> None:
    near, far = socket.socketpair()
    near.settimeout(_PATIENCE)
    page: SharedPage | None = None
    with near, far:
        if descriptor >= 0 and stream:
            sockets.send_with(far, stream, descriptor)
        else:
            far.sendall(stream)
        far.shutdown(socket.SHUT_WR)
        connection = Connection(LOCAL, near, "the owner")
        try:
            page, greeting = connection.greet({})
            expect(0 <= greeting.slot < SLOTS, "a slot that there is not")
            number_in(connection.ask(plain(READY)))
            number_in(connection.ask(plain(WRITE)))
            result_in(connection.ask(plain(CALL), lambda *arguments: None))
            number_in(connection.ask(plain(WRITE)))
        except (Error, OwnerGone, ConnectionError):
            pass
        finally:
            if page is not None:
                page.close()
