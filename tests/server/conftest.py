"""What tests of the server share: a client, and both loops that a server may run in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from loops import KINDS, new_loop
from serving import Client, an_engine

from lsmkv.server import Server
from lsmkv.server.script_choice import ScriptChoice


@pytest.fixture(params=KINDS)
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Runs a test that is a coroutine, in a loop of asyncio's and again in one of uvloop's."""
    with asyncio.Runner(loop_factory=lambda: new_loop(request.param)) as runner:
        yield runner


@pytest.fixture
def scripts() -> str:
    """Where scripts run; tests of scripts replace it."""
    return "inline"


@pytest.fixture
def server(runner: asyncio.Runner, scripts: str) -> Iterator[Server]:
    """A server of a store in memory, in the loop of the test."""
    server = Server(":memory:", port=0, scripts=scripts)
    runner.run(server.start())
    yield server
    runner.run(server.stop())


@pytest.fixture
def client(scripts: str) -> Iterator[Client]:
    """A client of an empty store."""
    with an_engine(scripts=ScriptChoice(scripts)) as engine:
        yield Client(engine)
