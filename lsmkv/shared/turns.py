"""Turns of a shared store: its owner has the queue of all processes.

``engine/db/handles/transaction_turns.py`` says what turns are, and has the queue.  The owner's
threads use it directly.  A member asks the owner for its place with a TURN, and again until its
turn has come, on a connection that it keeps for this alone.  TURN_OVER ends the turn, and so does
the end of the connection, since a process has died or a thread was interrupted.

**The word.**  No process asks the owner for anything while none has or wants a turn: the owner
stores in a word of the page whose turns there are, one bit for each of 63 groups of keys, and all
of them for a call that may be about any key.  A member looks at it before each attempt.  The top
bit says that the owner has a queue at all; where it is missing, since the owner's release is older,
there are turns within each process alone.  Members of such releases do not look at the word.

**When the owner goes**, the queue begins again with the next one.  A caller that has had a turn
then, or waited for one, makes another attempt.  Its turn, if it needs one, is that of the next
queue.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any, Final

from lsmkv.engine.db.handles.transaction_turns import Place, SharedQueue, Turn, Turns
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import get_ident
from lsmkv.engine.util.ticket import Ticket
from lsmkv.shared.connection import Connection, OwnerGone, number_in, plain
from lsmkv.shared.frames import NUMBERS, TURN, TURN_OVER
from lsmkv.shared.group_commit import MemberConnection
from lsmkv.shared.joined import Joined
from lsmkv.shared.system.shared_page import TURNS, SharedPage

_GROUPS: Final = 63
_ALL: Final = (1 << _GROUPS) - 1
_HAS_QUEUE: Final = 1 << _GROUPS
_LOOK_EVERY: Final = 0.1
"""Seconds after which the owner checks whether a turn has lasted too long, while members wait."""
_NEVER: Final = float("inf")


def _group_of(key: bytes) -> int:
    return zlib.crc32(key) % _GROUPS


def _bits_of(key: bytes | None) -> int:
    return _ALL if key is None else 1 << _group_of(key)


def _name_of(key: bytes | None) -> bytes | None:
    """Return the name that stands for a key in the owner's queue."""
    return None if key is None else b"%d" % _group_of(key)


class HandleTurns(SharedQueue):
    """The queue of the store for one handle, whatever its part in the store is."""

    def __init__(self, handle: Callable[[], Any]) -> None:
        """``handle`` returns a :class:`~lsmkv.shared.handle.SharedHandle`, or None."""
        self._handle = handle

    def is_free(self, key: bytes | None) -> bool:
        turns = self._turns()
        return turns is None or turns.is_free(key)

    def place(self, key: bytes | None) -> Place | None:
        turns = self._turns()
        return None if turns is None else turns.place(key)

    def _turns(self) -> SharedQueue | None:
        handle = self._handle()
        part = None if handle is None else handle._part
        return None if part is None else part.turns


# The owner's half


class _Queue(Turns):
    """The queue, whose state is in the page."""

    def __init__(self, page: SharedPage) -> None:
        super().__init__()
        self._words: Any = page.words
        self._words[TURNS] = _HAS_QUEUE

    def _changed(self) -> None:
        bits = 0
        for turn in self._queue:
            bits |= _ALL if turn.key is None else 1 << int(turn.key)
        self._words[TURNS] = _HAS_QUEUE | bits


class OwnerPlace(Place):
    """The place of a thread of the owner."""

    def __init__(self, queue: Turns, key: bytes | None) -> None:
        self._queue = queue
        self._ticket = Ticket()
        self._turn = Turn(_name_of(key), self._ticket.lock.release)
        self._joined = False

    def wait(self, seconds: float) -> bool:
        if not self._joined:
            self._joined = True
            self._queue.join(self._turn)
        if self._ticket.acquire_soon(min(seconds, _LOOK_EVERY)):
            return True
        self._queue.advance()
        return False

    def holds(self) -> bool:
        return self._queue.holds(self._turn)

    def end(self) -> None:
        self._queue.leave(self._turn)


class _Asked:
    """A member's place, and its request."""

    def __init__(self, member: MemberConnection, turn: Turn) -> None:
        self.member = member
        self.turn = turn
        self.request = 0
        self.until = 0.0
        """The time at which the request is to be answered (``time.monotonic``)."""


class OwnerTurns(SharedQueue):
    """The queue of a shared store.  The listener's thread calls all but ``is_free`` and ``place``,
    which any thread may call."""

    def __init__(self, page: SharedPage, ring: Callable[[], None]) -> None:
        """``ring`` wakes the listener."""
        self.queue = _Queue(page)
        self._ring = ring
        self.thread = 0
        """The listener's: a finalizer there may interrupt the queue, and never waits for it."""
        self._asked: dict[int, _Asked] = {}  # by the slots of connections
        self._waiting: dict[int, _Asked] = {}
        """Members with a request that must be answered, by slot."""

    def is_free(self, key: bytes | None) -> bool:
        return get_ident() == self.thread or self.queue.is_free(_name_of(key))

    def place(self, key: bytes | None) -> Place | None:
        return None if get_ident() == self.thread else OwnerPlace(self.queue, key)

    def ask(self, member: MemberConnection, request: int, content: bytes) -> None:
        """Handle a member's TURN.  :class:`CorruptionError` for one that no member sends."""
        group, milliseconds = NUMBERS.unpack(content)
        if group > _GROUPS:
            raise CorruptionError(f"a request for a turn of the invalid group {group:,}")
        asked = self._asked.get(member.slot)
        if asked is None or (asked.turn.since > 0 and not self.queue.holds(asked.turn)):
            turn = Turn(b"%d" % group if group < _GROUPS else None, self._ring)
            asked = self._asked[member.slot] = _Asked(member, turn)
            self.queue.join(turn)
        asked.request = request
        asked.until = time.monotonic() + milliseconds / 1000
        self._waiting[member.slot] = asked

    def end(self, member: MemberConnection) -> None:
        """Handle a member's TURN_OVER, or the end of its connection."""
        asked = self._asked.pop(member.slot, None)
        if asked is not None:
            self._waiting.pop(member.slot, None)
            self.queue.leave(asked.turn)

    def answers(self) -> list[tuple[MemberConnection, int, int]]:
        """Return the members to answer now, their requests, and the milliseconds that they have
        their turns; 0 for those that have to ask again."""
        found: list[tuple[MemberConnection, int, int]] = []
        if not self._waiting:
            return found
        self.queue.advance()
        now = time.monotonic()
        for slot, asked in list(self._waiting.items()):
            since = asked.turn.since
            if since > 0 or now >= asked.until:
                left = max(1, int(1000 * (since + self.queue.longest - now))) if since > 0 else 0
                found.append((asked.member, asked.request, left))
                del self._waiting[slot]
        return found

    def seconds(self) -> float:
        """Seconds until :meth:`answers` must be called again."""
        if not self._waiting:
            return _NEVER
        first = min(asked.until for asked in self._waiting.values())
        return max(0.0, min(first - time.monotonic(), _LOOK_EVERY))

    def close(self) -> None:
        """End the turns of members, which ask the next owner."""
        for asked in self._asked.values():
            self.queue.leave(asked.turn)
        self._asked.clear()
        self._waiting.clear()


# The member's half


class MemberTurns(SharedQueue):
    """The owner's queue, for the threads of a member in one epoch."""

    def __init__(self, joined: Joined, may_write: bool) -> None:
        self._joined = joined
        self._may_write = may_write

    def is_free(self, key: bytes | None) -> bool:
        taken: int = self._joined.page.words[TURNS] & _bits_of(key)
        return taken == 0 or not self._may_write

    def place(self, key: bytes | None) -> Place | None:
        if not self._may_write or self._joined.page.words[TURNS] < _HAS_QUEUE:
            return None
        return MemberPlace(self._joined, key)


class MemberPlace(Place):
    """The place of a thread of a member, as long as its owner answers."""

    def __init__(self, joined: Joined, key: bytes | None) -> None:
        self._joined = joined
        self._group = _GROUPS if key is None else _group_of(key)
        self._connection: Connection | None = None
        self._until = 0.0
        """The time at which the turn ends (``time.monotonic``)."""
        self._lost = False
        """True if the owner has gone."""

    def wait(self, seconds: float) -> bool:
        """True also if the owner has gone: the next attempt finds another."""
        patience = self._joined.patience
        if patience is not None:
            seconds = min(seconds, patience / 2)  # so that it is the owner who ends it
        wanted = NUMBERS.pack(self._group, int(1000 * seconds))
        with deferred:
            try:
                connection = self._connection
                if connection is None:
                    connection = self._connection = self._joined.take()
                left = _ask(connection, wanted)
            except OwnerGone:
                self._lost = True
                self.end()
                return True
            self._until = time.monotonic() + left / 1000
        return left > 0

    def holds(self) -> bool:
        return (
            not self._lost and time.monotonic() < self._until and not self._joined.page.superseded
        )

    def end(self) -> None:
        with deferred:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            try:
                if not connection.failed:
                    connection.tell(TURN_OVER, b"")
            except OwnerGone:
                pass  # the turn ends with the connection
            finally:
                self._joined.give_back(connection)


def _ask(connection: Connection, wanted: bytes) -> int:
    return deferred.interruptible(lambda: number_in(connection.ask(plain(TURN, wanted))))
