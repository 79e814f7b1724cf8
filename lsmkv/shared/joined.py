"""The state of a member in one epoch: :class:`Joined`, the page and the connections to its owner.

Each call takes a connection that no other call uses, or makes one; so threads do not wait for each
other, and code that interrupts a call, for example a signal handler, never writes into a half-sent
request.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable

from lsmkv.engine.errors import Error, IOError, raise_typed
from lsmkv.engine.util.signals import deferred
from lsmkv.shared.connection import Connection, OwnerGone, plain, silent
from lsmkv.shared.counting import Counting
from lsmkv.shared.frames import (
    MOST_ENDED,
    NUMBER,
    NUMBERS,
    PROTOCOL,
    REVISION,
    WAIT,
)
from lsmkv.shared.system import release
from lsmkv.shared.system.shared_file import Head, SharedFile
from lsmkv.shared.system.shared_page import EPOCH, SUPERSEDED, SharedPage
from lsmkv.shared.system.system import System

_MOMENT = 0.001
"""Seconds: the shortest wait for an owner that is asked at all."""


class Joined:
    """The state of a member in one epoch: the page, and its connections to the owner."""

    def __init__(
        self,
        system: System,
        file: SharedFile,
        head: Head,
        names: dict[str, str],
        patience: float | None,
        counting: Counting,
    ) -> None:
        """:meth:`join` follows."""
        self.is_over: Callable[[], bool] | None = None
        """Returns True if the owner has gone before it was joined."""
        self._system = system
        self._address: bytes = system.sockets.address_of(head.token, head.epoch)
        self._path = os.path.dirname(file.path)
        self._names = names
        self._proofs = file.proofs()
        self._patience = patience
        self._head = head
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._presence: Connection | None = None
        """The first one, which no call uses: as long as it lives the owner notes where this process
        holds the page, and a new owner can find it."""
        self._closed = False
        self.counting = counting
        """Counters of this handle, for owners that read them."""
        self.switches = True
        """True if other greenlets of the thread run while a call waits."""
        self.over: list[int] = []
        """Transactions that are over, which the owner does not know yet."""
        self.page: SharedPage
        self.owner = head.pid
        """The owner's process id."""
        self.owner_does_more = False
        """True if the owner is a process that has opened the store for itself."""
        self.options: object = None
        """The owner's options, as it has sent them."""
        self.revision = 1
        """The revision that both processes support beyond the protocol."""
        self.release = ""
        """The owner's release; empty if it has not said so."""

    def join(
        self, file: SharedFile, hold: Callable[[], None] | None = None, left: float = math.inf
    ) -> None:
        """Connect to the owner, and get the page, within so many seconds.

        ``hold`` takes a member's part of ``LOCK``, and is followed by an answer of the owner, which
        has the rest of it.

        Raises ``ConnectionError`` if no process listens, the owner has gone, or another
        thread has called :meth:`close`, and the error that the owner answers.
        """
        self._presence, page = self._connect(file, hold, self._patience_within(left))
        assert page is not None
        self.page = page
        self.is_over = None

    def ask(
        self,
        make: Callable[[int], bytes],
        progress: Callable[..., object] | None = None,
        *,
        may_take_long: bool = False,
        writes: bool = False,
    ) -> tuple[int, bytes]:
        """:meth:`Connection.ask`, by a connection that is free.

        What may take long is waited for as long as the owner answers others.
        """
        connection = self.take()
        if may_take_long:
            connection.look = self.look
        try:
            return connection.ask(make, progress, writes)
        finally:
            if may_take_long:
                connection.look = None
            self.give_back(connection)

    def ask_in_section(
        self, make: Callable[[int], bytes], left: float = math.inf
    ) -> tuple[int, bytes]:
        """:meth:`ask` for a caller that defers signals: they are delivered while it waits."""
        connection = self.take()
        try:
            connection.wait_in_section(self._patience_within(left))
            answer = connection.ask(make)
            connection.wait_outside(self._patience)
            return answer
        finally:
            self.give_back(connection)

    def _patience_within(self, left: float) -> float | None:
        """The patience of a wait for which so many seconds are left."""
        if left == math.inf:
            return self._patience
        return max(_MOMENT, left if self._patience is None else min(left, self._patience))

    def look(self) -> None:
        """Raise ``BlockingIOError`` if the owner does not answer."""
        try:
            self.ask(plain(WAIT, NUMBERS.pack(SUPERSEDED, 0)))
        except OwnerGone:
            pass  # as the connection says whose answer is waited for
        except Error as error:
            if isinstance(error, IOError) and error.errno == errno.ETIMEDOUT:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def tell(self, kind: int, content: bytes) -> None:
        """:meth:`Connection.tell`, by a connection that is free."""
        connection = self.take()
        try:
            connection.tell(kind, content)
        finally:
            self.give_back(connection)

    def take(self) -> Connection:
        """A connection for the caller alone; :class:`OwnerGone` if there can be none."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._another()
        self._used.add(connection)
        return connection

    def _another(self) -> Connection:
        try:
            with deferred:
                return self._connect(None, None, self._patience)[0]
        except ConnectionError as error:
            raise OwnerGone from error
        except OSError as error:  # the owner does not answer, or there are no more descriptors
            raise_typed(error)

    def give_back(self, connection: Connection) -> None:
        """Let other calls use it, unless its answer is still to come."""
        self._used.discard(connection)
        if connection.failed or self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def ended(self) -> bytes:
        """The numbers in :attr:`over`, to be sent with the next transaction."""
        numbers: list[int] = []
        while self.over and len(numbers) < MOST_ENDED:
            numbers.append(self.over.pop())
        return b"".join(NUMBER.pack(number) for number in numbers)

    def close(self) -> None:
        """Close all connections.  Calls of other threads that wait for an answer end."""
        self.counting.copy()
        self._closed = True
        for connection in list(self._used):
            connection.end()
        while self._idle:
            self._idle.pop().close()
        if self._presence is not None:
            self._presence.close()

    def leave(self) -> None:
        """Close all connections, and the page if there is one."""
        self.close()
        if self._presence is not None:
            self.page.close()

    @property
    def epoch(self) -> int:
        """The epoch that was joined."""
        return self._head.epoch

    @property
    def patience(self) -> float | None:
        """Seconds that a call waits for an answer; None for no limit."""
        return self._patience

    def _connect(
        self, file: SharedFile | None, hold: Callable[[], None] | None, patience: float | None
    ) -> tuple[Connection, SharedPage | None]:
        """A new connection; with the page, for the first one.  Caller defers signals."""
        try:
            return self._greeted(file, hold, patience)
        except BlockingIOError as error:  # no process accepts connections
            raise silent(self._who, False) from error
        except PermissionError as error:  # the owner is another user's
            raise IOError(error.errno, error.strerror, self._path) from error

    @property
    def _who(self) -> str:
        """Name the owner in messages."""
        return f"process {self.owner}, the owner of {self._path},"

    def _greeted(
        self, file: SharedFile | None, hold: Callable[[], None] | None, patience: float | None
    ) -> tuple[Connection, SharedPage | None]:
        socket = self._system.sockets.connect(self._address, patience)
        page: SharedPage | None = None
        connection = Connection(self._system, socket, self._who)
        connection.switches = file is None and self.switches
        connection.waiter = self._system.sockets.waiter()
        self._used.add(connection)
        try:
            if self._closed:
                raise ConnectionResetError(errno.ECONNRESET, "the connections were closed")
            connection.wait_in_section(patience)
            connection.is_over = self.is_over
            if self._presence is not None:
                connection.is_over = self._presence.has_hung_up
            hello = {"protocol": PROTOCOL, "names": self._names}
            hello |= {"revision": REVISION, "release": release.RELEASE}
            if self._proofs is not None:
                hello["proof"] = self._proofs.of_member
            page, greeting = connection.greet(hello)
            if self._proofs is not None and greeting.proof != self._proofs.of_owner:
                raise ConnectionResetError(errno.ECONNRESET, "another process answers")
            if page.words[EPOCH] != self._head.epoch:
                raise ConnectionResetError(errno.ECONNRESET, "another owner answers")
            if file is not None and greeting.file != file.inode():
                raise ConnectionResetError(errno.ECONNRESET, "SHARED was replaced")
            if hold is not None and greeting.revision > 1:
                hold()
            self.owner = greeting.pid
            self.owner_does_more = greeting.only_owns is False
            self.options = greeting.options
            self.revision = min(REVISION, greeting.revision)
            self.release = greeting.release
            held = page.fd if file is not None else self.page.fd
            counts = hold is not None and greeting.counts
            connection.get_ready(held, self.counting if counts else None)
            connection.wait_outside(self._patience)
        except BaseException as error:
            stopped = isinstance(error, BlockingIOError) and self._system.sockets.is_stopped(socket)
            socket.close()
            if page is not None:
                page.close()
            if isinstance(error, OwnerGone):
                raise ConnectionResetError(errno.ECONNRESET, "the owner has gone") from error
            if stopped:
                raise silent(self._who, True) from error
            raise
        finally:
            self._used.discard(connection)
        if file is None:
            page.close()
            return connection, None
        return connection, page
