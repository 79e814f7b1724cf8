"""Engines of a server, run tick by tick."""

from __future__ import annotations

import errno
import os

from serving import parsed

from lsmkv import DB, Env
from lsmkv.server.commands import COMMANDS
from lsmkv.server.encoding import EXPIRY_BOUND, GARBAGE_ENDS, TWO_U64
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.settings import Settings

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def engine_of(db: DB) -> Engine:
    engine = Engine(db, Keyspace(db), COMMANDS, Settings())
    engine.schedule = lambda callback: None
    return engine


def tick(engine: Engine, *lines: str) -> bytes:
    """Run commands and commit; the replies."""
    sent: list[bytes] = []
    session = engine.open_session()
    session.send = sent.append
    for line in lines:
        engine.run(session, line.encode().split())
    engine.commit()
    engine.close_session(session)
    return b"".join(sent)


def open_store(env: Env, **options: int) -> DB:
    return DB("/db", create_if_missing=True, env=env, **options)  # type: ignore[arg-type]


def agrees(engine: Engine) -> None:
    """What the keyspace has in memory is what the store has."""
    space = engine.space
    fresh = Keyspace(engine.db)
    sizes = [(one.id, one.size) for one in space.databases]
    assert sizes == [(one.id, one.size) for one in fresh.databases]
    stored = engine.db.get(GARBAGE_ENDS)
    first, behind = (0, 0) if stored is None else TWO_U64.unpack(stored)
    assert len(space.garbage) == behind - first
    assert space.expiry._bound == (engine.db.get(EXPIRY_BOUND) or b"x")
    assert not space.has_changes


class Clients:
    """Clients of one engine, whose requests come in one tick."""

    def __init__(self, engine: Engine, count: int) -> None:
        self._engine = engine
        self.sent: list[list[bytes]] = [[] for _ in range(count)]
        self.sessions = [engine.open_session() for _ in range(count)]
        for session, sent in zip(self.sessions, self.sent, strict=True):
            session.send = sent.append

    def tick(self, *requests: tuple[int, str]) -> list[list[object]]:
        """Run requests, each with its client's number, and commit; what each client gets."""
        for number, line in requests:
            self._engine.run(self.sessions[number], line.encode().split())
        self._engine.commit()
        replies: list[list[object]] = [parsed(b"".join(sent)) for sent in self.sent]
        for sent in self.sent:
            sent.clear()
        return replies


def refused(reply: object) -> bool:
    return str(reply).startswith("MISCONF ")
