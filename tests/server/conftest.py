"""What tests of the server share: a client, and both loops that a server may run in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from loops import KINDS, Run, Scenario, Served, run_in
from serving import Client, an_engine

from lsmkv.server import Server


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine, in a loop of asyncio's and again in one of uvloop's."""
    return partial(run_in, request.param)


@pytest.fixture
def served(run: Run) -> Served:
    """Runs a scenario beside a server of a store in memory, in both loops."""

    def serve(scenario: Scenario, **options: Any) -> None:
        async def main() -> None:
            async with Server(":memory:", port=0, **options) as server:
                await scenario(server)

        run(main())

    return serve


@pytest.fixture
def client() -> Iterator[Client]:
    """A client of an empty store."""
    with an_engine() as engine:
        yield Client(engine)
