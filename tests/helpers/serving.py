"""What tests of the server share: an engine without sockets, and clients of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest

from lsmkv import DB, MemoryEnv
from lsmkv.engine.env.process import interpreter
from lsmkv.server.command import Table
from lsmkv.server.commands import COMMANDS
from lsmkv.server.commands.raw import RAW_COMMANDS
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.quoting import split_words
from lsmkv.server.raw_keyspace import RawKeyspace
from lsmkv.server.settings import Settings

PLACES = [
    "inline",
    pytest.param(
        "process", marks=pytest.mark.skipif(not interpreter(), reason="no process can be started")
    ),
]
"""Where scripts run."""


@contextlib.contextmanager
def an_engine(
    env: MemoryEnv | None = None, *, raw: bool = False, read_only: bool = False, **settings: Any
) -> Iterator[Engine]:
    """An engine of a store in memory.  What a command writes is in the store at once."""
    table: Table = RAW_COMMANDS if raw else COMMANDS
    env = env or MemoryEnv()
    with DB("/db", env=env, read_only=read_only, create_if_missing=not read_only) as db:
        space = (RawKeyspace if raw else Keyspace)(db, writable=not read_only)
        engine = Engine(db, space, table, Settings(**settings))
        yield engine
        engine.evaluator.close()


_NOT_WHOLE = object()


def parsed(data: bytes) -> list[Any]:
    """The replies in these bytes; an error as text, everything else as hiredis has it."""
    reader = hiredis.Reader(notEnoughData=_NOT_WHOLE)
    reader.feed(data)
    found = []
    while reader.has_data():
        reply = reader.gets()
        assert reply is not _NOT_WHOLE, f"not whole: {data!r}"
        found.append(shown(reply))
    return found


def shown(reply: Any) -> Any:
    if isinstance(reply, hiredis.ReplyError):
        return str(reply)
    if isinstance(reply, list):
        return [shown(one) for one in reply]
    if isinstance(reply, dict):
        return {key: shown(value) for key, value in reply.items()}
    return reply


class Client:
    """A client of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.session = engine.open_session("127.0.0.1:1000", "127.0.0.1:6379")

    def __call__(self, *request: str | bytes) -> Any:
        """The reply to a request: a line, or its words.

        None stands for null and for no reply; several replies, as of SUBSCRIBE, are a tuple.
        """
        if len(request) == 1 and isinstance(request[0], str):
            words = split_words(request[0].encode())
        else:
            words = [one.encode() if isinstance(one, str) else one for one in request]
        self.engine.run(self.session, words)
        return self.received()

    def asked(self, line: str) -> bytes:
        """What has come, as bytes, once a line was asked; nothing is asked by an empty one."""
        if line:
            self.engine.run(self.session, split_words(line.encode()))
        return self.session.take_output()

    def received(self) -> Any:
        """What has come since it was asked last."""
        replies = parsed(self.session.take_output())
        return None if not replies else replies[0] if len(replies) == 1 else tuple(replies)

    def plays(self, *steps: tuple[str, Any]) -> None:
        """Check the replies to requests, one after the other."""
        for request, expected in steps:
            reply = self(request)
            assert reply == expected, f"{request}: {reply!r}, not {expected!r}"
