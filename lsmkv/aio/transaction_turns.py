"""Turns of tasks: ``handles/transaction_turns.py``, for functions that run in an event loop.

All calls of one store come from one event loop.  No task holds a thread while it waits for its turn
or while its function runs.  Where processes share the store, a task whose turn has come in this one
asks every few milliseconds whether it has among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

from lsmkv.engine.db.handles.transaction_turns import Attempts, Turns
from lsmkv.engine.errors import ConflictError

T = TypeVar("T")

_LOOK_EVERY = 0.1  # seconds
_ASK_EVERY = 0.005

InThread = Callable[[Callable[[float], bool], float], Awaitable[bool]]
"""Calls a function in a thread."""


class _Call:
    """A call under way.  The tasks that its function starts know it by their context."""

    def __init__(self, turns: Turns, outer: _Call | None) -> None:
        self._turns = turns
        self._outer = outer
        self.active = True

    def is_inside(self, turns: Turns) -> bool:
        """Return True if this call, or one around it, is running in the same store."""
        if self.active and self._turns.store == turns.store:
            return True
        return self._outer is not None and self._outer.is_inside(turns)


_current: ContextVar[_Call | None] = ContextVar("lsmkv.aio call", default=None)


async def call(
    turns: Turns, key: bytes | None, attempt: Callable[[], Awaitable[T]], in_thread: InThread
) -> T:
    """Await ``attempt()`` until it raises no :class:`ConflictError`, and return its result."""
    outer = _current.get()
    own = _Call(turns, outer)
    attempts = Attempts(turns, key, nested=outer is not None and outer.is_inside(turns))
    token = _current.set(own)
    try:
        while True:
            if attempts.need_turn():
                await _wait(turns, attempts)
                if turns.shared is None:
                    attempts.begin_turn(0.0)
                else:
                    while not await in_thread(attempts.begin_turn, 0.0):
                        await asyncio.sleep(_ASK_EVERY)
            try:
                return await attempt()
            except ConflictError as conflict:
                pause = attempts.pause_after(conflict)
            await asyncio.sleep(pause)
    finally:
        own.active = False
        _current.reset(token)
        attempts.end()


async def _wait(turns: Turns, attempts: Attempts) -> None:
    """Wait until the turn of these attempts has come."""
    came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    attempts.queue_up(partial(_wake, came))
    while not came.done():
        await asyncio.wait([came], timeout=_LOOK_EVERY)
        turns.advance()


def _wake(came: asyncio.Future[None]) -> None:
    if not came.done():
        came.set_result(None)
