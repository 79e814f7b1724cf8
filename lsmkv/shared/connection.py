"""A member's connection to its owner: :class:`Connection`, which carries one call at a time.

Under gevent and eventlet, other greenlets go on while a call waits (``system/greenlets.py``); but
not while a handle joins an owner, or has a lease with a name: there the whole thread waits.
"""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Callable
from typing import Any

from lsmkv.engine.db.observe.process_words import LAYOUT
from lsmkv.engine.errors import CorruptionError, Error, IOError, OutcomeUnknownError
from lsmkv.engine.util.signals import LOOK_EVERY, deferred
from lsmkv.shared.counting import Counting
from lsmkv.shared.frames import (
    DONE,
    FAILED,
    GREETING,
    HEADER,
    HELLO,
    LEAST_PATIENCE,
    LEAVING,
    NUMBER,
    PROGRESS,
    READY,
    RESULT,
    check_answer,
    decoded,
    error_in,
    frame,
    json_frame,
)
from lsmkv.shared.system.shared_page import SLOTS, SharedPage
from lsmkv.shared.system.sockets import DONT_WAIT, NO_SIGNAL
from lsmkv.shared.system.system import System

_CHUNK = 65536


class OwnerGone(Exception):
    """The connection ended before the answer came: the owner has closed its store, or is dead."""

    def __init__(self, slot: int = -1, request: int = 0, left: bool = False) -> None:
        super().__init__()
        self.slot = slot
        self.request = request
        self.left = left
        """True if the owner has reported that it has done nothing."""
        # Not a property: compiled, an exception has no table of methods, and asking it crashes.
        self.is_undone = left or slot < 0
        """True if the owner has certainly not begun the request: it was not sent, or refused."""


class Greeting:
    """The owner's first message on a new connection."""

    def __init__(self, content: bytes) -> None:
        """Raises :class:`CorruptionError` for anything else."""
        value = decoded(content)
        numbers = [value.get(name) for name in ("slot", "pid", "file")]
        slot, pid, file = (one if isinstance(one, int) else -1 for one in numbers)
        if not (0 <= slot < SLOTS and pid >= 0 and file >= 0):
            raise CorruptionError("the owner's greeting is invalid")
        self.counts = value.get("counts") is True
        """True if the owner reads what its members count."""
        self.proof = value.get("proof")
        """Proof that the owner can read ``SHARED``; None of an older release."""
        self.only_owns = value.get("only_owns")
        """True if that process does nothing but own the store; None of an older release."""
        revision, name = value.get("revision"), value.get("release")
        self.revision: int = revision if isinstance(revision, int) else 1
        """The revision of the owner's extensions to the protocol."""
        self.release: str = name if isinstance(name, str) else ""
        """Its release of lsmkv; empty if that is older than revision 2."""
        self.options: object = value.get("options")
        """The owner's options (``engine/options/whose.py``); None of an older release."""
        self.slot = slot
        self.pid = pid
        self.file = file
        """The number of the owner's ``SHARED`` in the file system."""


class Connection:
    """A connection to the owner, for one call at a time."""

    def __init__(self, system: System, socket: Any, owner: str) -> None:
        """``owner`` is what messages call it."""
        self._system = system
        self._owner = owner
        self._socket = socket
        self.slot = -1
        """Known once it is greeted."""
        self._withdraws = False  # whether the owner begins nothing that it reads after a hang-up
        self._patience = 0.0
        self._request = 0
        self._rest = b""  # what came after a frame of a call's progress
        self.failed = False
        """True if an answer may still come that no call waits for."""
        self._until = 0.0  # until when to wait on where a wait has ended
        self._passing = -1  # a descriptor to send with the next message
        self.is_over: Callable[[], bool] | None = None
        """Returns True if the owner has gone, and another process may have the name of its socket;
        called while the greeting is awaited."""
        self.waiter: Any = None
        """Waits where there are greenlets (:func:`lsmkv.shared.system.greenlets.waiter`)."""
        self.switches = True
        """True if other greenlets run while a call waits."""
        self.look: Callable[[], None] | None = None
        """Called by a wait that may take long, each time that its patience is over, to continue the
        wait; ``BlockingIOError`` ends it."""

    def greet(self, hello: dict[str, Any]) -> tuple[SharedPage, Greeting]:
        """Say who this process is; the page, which is the caller's to close, and the answer.

        Raises the error that the owner answers, and ``OSError``.
        """
        try:
            self._send(json_frame(HELLO, 0, hello))
        except ConnectionError:
            pass  # it has been refused before it could ask; the reason may have come
        while True:
            try:
                if self.waiter is not None and self.switches:
                    self._switch(False)
                self._rest, fd = self._system.sockets.receive_with(self._socket, _CHUNK)
                break
            except BlockingIOError:
                self._wait_on()
        page: SharedPage | None = None
        try:
            if not self._rest:
                raise ConnectionResetError(errno.ECONNRESET, "the owner has closed the connection")
            kind, content = self._receive(0)
            if kind == FAILED:
                raise error_in(content)
            if kind != GREETING or fd < 0:
                raise CorruptionError("the owner's greeting is invalid")
            greeting = Greeting(content)
            try:
                mapped: SharedPage = self._system.pages.SharedPage(fd, False)
                page = mapped
            except ValueError as error:
                raise CorruptionError("the owner's greeting is invalid") from error
        finally:
            if page is None and fd >= 0:
                self._system.pages.close_descriptor(fd)
        self.slot = greeting.slot
        self._withdraws = greeting.revision > 1
        return mapped, greeting

    def ask(
        self,
        make: Callable[[int], bytes],
        progress: Callable[..., object] | None = None,
        writes: bool = False,
    ) -> tuple[int, bytes]:
        """Send the frame that ``make`` returns for a request's number, and return the answer.

        Raises the error that the owner answers, and :class:`OwnerGone`.  If no answer comes in
        time, it hangs up and raises :class:`IOError`: then a request that ``writes`` is
        certainly not carried out; :class:`OutcomeUnknownError` if that is not certain.
        """
        self._request += 1
        request = self._request
        self.failed = True
        kind, content = self._exchange(make(request), request, writes)
        while kind == PROGRESS:
            if progress is not None:
                progress(*_arguments(content))
            kind, content = self._exchange(b"", request, writes)
        self.failed = False
        if kind == FAILED:
            raise error_in(content)
        if kind == LEAVING:
            raise OwnerGone(self.slot, request, left=True)
        return kind, content

    def _exchange(self, message: bytes, request: int, writes: bool) -> tuple[int, bytes]:
        """Send the message, if there is one, and receive the next frame."""
        whole = False
        try:
            if self._passing >= 0:
                fd, self._passing = self._passing, -1
                self._system.sockets.send_with(self._socket, message, fd)
            elif message and self.waiter is None:
                self._socket.sendall(message, NO_SIGNAL)
            elif message:
                self._send(message)
            whole = True
            return self._receive(request)
        except BlockingIOError as error:
            failure = silent(self._owner, self._system.sockets.is_stopped(self._socket))
            if not writes:
                raise failure from error
            if whole and not self._withdraw():
                raise OutcomeUnknownError(
                    f"{failure.strerror}; it is unknown whether the write happens"
                ) from error
            raise IOError(errno.ETIMEDOUT, f"{failure.strerror}; nothing was written") from error
        except OSError as error:
            raise OwnerGone(self.slot, request) from error

    def _withdraw(self) -> bool:
        """Hang up.  Returns True if the owner certainly does not begin the last request."""
        self.end()
        enough = self._withdraws and self._patience >= LEAST_PATIENCE
        return enough and bool(self._system.sockets.is_unread(self._socket))

    def get_ready(self, held: int, counting: Counting | None) -> None:
        """Say where this process holds the page, and hand over the memory that it counts in, if it
        does."""
        ready: dict[str, Any] = {"descriptor": held}
        memory, fd = (None, -1) if counting is None else counting.hand_over()
        try:
            if fd >= 0:
                ready["counts"] = LAYOUT
                self._passing = fd
            number_in(self.ask(lambda request: json_frame(READY, request, ready)))
        finally:
            if fd >= 0:
                self._system.pages.close_descriptor(fd)
        if counting is not None and memory is not None:
            counting.begin(memory)

    def set_patience(self, seconds: float | None) -> None:
        """Set the longest time of each later wait."""
        self._patience = math.inf if seconds is None else seconds
        self._system.sockets.set_patience(self._socket, 0.0 if seconds is None else seconds)

    def end(self) -> None:
        """End the call that uses it now, with :class:`OwnerGone`."""
        self._system.sockets.end(self._socket)

    def has_hung_up(self) -> bool:
        """True if the owner has closed it, or is dead."""
        return bool(self._system.sockets.has_hung_up(self._socket))

    def tell(self, kind: int, content: bytes) -> None:
        """Send a message that has no answer; :class:`OwnerGone` if that is impossible."""
        self._request += 1
        try:
            self._socket.sendall(frame(kind, self._request, content), NO_SIGNAL)
        except OSError as error:
            self.failed = True
            raise OwnerGone(self.slot, self._request) from error

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _receive(self, request: int) -> tuple[int, bytes]:
        """The kind and the content of the next frame."""
        data = self._rest or self._more()
        while len(data) < HEADER.size:
            data += self._more()
        size, kind, number = HEADER.unpack_from(data)
        check_answer(size, kind)
        if number != request:
            raise CorruptionError(f"an answer to request {number:,}, expected {request:,}")
        end = HEADER.size + size
        if len(data) < end:
            parts = [data]
            missing = end - len(data)
            while missing > 0:
                parts.append(self._more())
                missing -= len(parts[-1])
            data = b"".join(parts)
        self._rest = data[end:]
        return kind, data[HEADER.size : end]

    def wait_in_section(self, seconds: float | None) -> None:
        """Wait for answers for so many seconds at most, and deliver signals."""
        self._until = math.inf if seconds is None else time.monotonic() + seconds
        self.set_patience(LOOK_EVERY if seconds is None else min(seconds, LOOK_EVERY))

    def wait_outside(self, seconds: float | None) -> None:
        """Let each wait take so long at most, and be interrupted."""
        self._until = 0.0
        self.is_over = None
        self.set_patience(seconds)

    def _wait_on(self) -> None:
        """Deliver signals; raises ``BlockingIOError`` once it has waited for long enough, and
        ``ConnectionResetError`` if the owner has gone."""
        if self.is_over is not None and self.is_over():
            raise ConnectionResetError(errno.ECONNRESET, "the owner has gone")
        if self.look is not None:
            self.look()
        elif time.monotonic() >= self._until:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        deferred.deliver()

    def _send(self, message: bytes) -> None:
        """Send everything."""
        if self.waiter is None or not self.switches:
            self._socket.sendall(message, NO_SIGNAL)
            return
        at = 0
        while at < len(message):
            try:
                at += self._socket.send(message[at:], NO_SIGNAL | DONT_WAIT)
            except BlockingIOError:
                self._switch(True)

    def _switch(self, writes: bool) -> None:
        """Let other greenlets go on until the socket is ready; ``BlockingIOError`` if that takes
        too long."""
        if not self.waiter(self._socket.fileno(), writes, self._patience):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def _more(self) -> bytes:
        while True:
            try:
                if self.waiter is not None and self.switches:
                    self._switch(False)
                data: bytes = self._socket.recv(_CHUNK)
                break
            except BlockingIOError:
                self._wait_on()
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "the owner has closed the connection")
        return data


def silent(owner: str, stopped: bool) -> IOError:
    """The error of a call that has waited for long enough; ``owner`` is what messages call it."""
    state = ": it is stopped, and continues after SIGCONT" if stopped else ""
    return IOError(errno.ETIMEDOUT, f"{owner} does not answer{state}")


def _arguments(content: bytes) -> list[Any]:
    """Return the arguments of a call of ``progress``."""
    arguments = decoded(content).get("arguments")
    if not isinstance(arguments, list):
        raise CorruptionError("a progress message without arguments")
    return arguments


def number_in(answer: tuple[int, bytes]) -> int:
    """The number of a DONE."""
    kind, content = answer
    if kind != DONE:
        raise Error(f"the owner has sent an unexpected answer of kind {kind}")
    number: int = NUMBER.unpack(content)[0]
    return number


def result_in(answer: tuple[int, bytes]) -> Any:
    """The result of a call."""
    kind, content = answer
    if kind != RESULT:
        raise Error(f"the owner has sent an unexpected answer of kind {kind}")
    return decoded(content).get("result")


def plain(kind: int, content: bytes = b"") -> Callable[[int], bytes]:
    """Return a function that makes such a frame for a request's number."""
    return lambda request: frame(kind, request, content)
