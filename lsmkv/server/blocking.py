"""Clients that wait for an element of a list, sorted set or stream: BLPOP, BZPOPMIN, XREAD, ..."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from lsmkv.engine.errors import Error
from lsmkv.server.database import Database
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.resp import NO_REPLY, CommandError, Reply

_log = logging.getLogger("lsmkv.server")

Place = tuple[int, bytes]
"""The index of a database, and a key."""


class Waiter(Protocol):
    """The part of a session that waiting needs."""

    database: Database
    running: bool
    skips: int
    wait: Wait | None
    on_unblocked: Callable[[], None]

    def reply(self, reply: Reply, /) -> None:
        """Answer the command."""

    def reply_to_write(self, reply: Reply, /) -> None:
        """Answer a command that has written."""


class Wait:
    """The wait of a blocked client for keys."""

    def __init__(
        self,
        session: Waiter,
        places: list[Place],
        kind: int,
        attempt: Callable[[list[bytes]], Reply],
        otherwise: Reply,
        gone: Reply,
    ) -> None:
        self.session = session
        self.places = places
        self.kind = kind
        """The kind that its keys must have.  Keys of another kind do not end the wait."""
        self.attempt = attempt
        """Runs the command again with some of its keys.  Returns its reply, or ``NO_REPLY``."""
        self.otherwise = otherwise
        """The reply after a timeout."""
        self.gone = gone
        """The reply if a key is removed or becomes one of another kind; ``NO_REPLY`` to wait on."""
        self.cancel_timer: Callable[[], object] | None = None


class Waits:
    """The waiting clients of each key, in the order in which they are served."""

    def __init__(self, space: Keyspace) -> None:
        self._space = space
        self._by_place: dict[Place, dict[Wait, None]] = {}

    def __len__(self) -> int:
        return len({wait for waits in self._by_place.values() for wait in waits})

    def wait(
        self,
        session: Waiter,
        keys: list[bytes],
        kind: int,
        seconds: float,
        attempt: Callable[[list[bytes]], Reply],
        otherwise: Reply,
        gone: Reply = NO_REPLY,
    ) -> Reply:
        """Return the reply of ``attempt`` if it has one now.  Otherwise block the client.

        The client waits for keys of one kind, and gets whatever arrives first, whatever the order
        of its keys.  0 seconds means no timeout.  In a transaction no command blocks.
        """
        reply = attempt(keys)
        if reply is not NO_REPLY:
            return reply
        if session.running:
            return otherwise
        places = [(session.database.index, key) for key in dict.fromkeys(keys)]
        wait = session.wait = Wait(session, places, kind, attempt, otherwise, gone)
        for place in places:
            self._by_place.setdefault(place, {})[wait] = None
            self._space.awaited[place] = len(self._by_place[place])
        if seconds > 0:
            loop = asyncio.get_running_loop()
            wait.cancel_timer = loop.call_later(seconds, self._time_is_over, wait).cancel
        return NO_REPLY

    def serve(self) -> None:
        """Serve the waiting clients whose keys are ready.  That may make further keys ready."""
        space = self._space
        while space.ready:
            ready, space.ready = list(dict.fromkeys(space.ready)), []
            for place in ready:
                for wait in list(self._by_place.get(place, ())):
                    reply = self._attempt(wait, place)
                    space.keep()
                    if reply is not NO_REPLY:
                        self._end(wait, wait.session.reply_to_write, reply)

    def _attempt(self, wait: Wait, place: Place) -> Reply:
        """Run a command that waits, and return its reply.  Its errors go to its own client, not to
        the client whose write woke it."""
        space = self._space
        try:
            if space.stale:
                space.recover()
            entry = space.find(space.databases[place[0]], place[1])
            if entry is None or entry.kind != wait.kind:
                return wait.gone
            return wait.attempt([place[1]])
        except CommandError as error:
            space.undo()
            return error
        except Error as error:
            space.undo()
            return CommandError(f"ERR {type(error).__name__}: {error}")
        except Exception:
            space.undo()
            _log.exception("a command that waits failed")
            return CommandError("ERR internal error: the server's log has the details")

    def unblock(self, session: Waiter, error: bool) -> bool:
        """CLIENT UNBLOCK.  Returns whether the client was blocked."""
        if session.wait is None:
            return False
        unblocked = CommandError("UNBLOCKED client unblocked via CLIENT UNBLOCK")
        self._end(session.wait, session.reply, unblocked if error else session.wait.otherwise)
        return True

    def remove(self, session: Waiter) -> None:
        """Remove a client that is gone, or that resets its connection."""
        wait = session.wait
        if wait is None:
            return
        session.wait = None
        if wait.cancel_timer is not None:
            wait.cancel_timer()
        for place in wait.places:
            waits = self._by_place[place]
            waits.pop(wait, None)
            if waits:
                self._space.awaited[place] = len(waits)
            else:
                del self._by_place[place], self._space.awaited[place]

    def _time_is_over(self, wait: Wait) -> None:
        self._end(wait, wait.session.reply, wait.otherwise)

    def _end(self, wait: Wait, answer: Callable[[Reply], None], reply: Reply) -> None:
        session = wait.session
        self.remove(session)
        answer(reply)
        session.skips >>= 1
        session.on_unblocked()
