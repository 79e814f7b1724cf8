"""The event loops that a server runs in: asyncio's and uvloop's, which raise different errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from lsmkv.server import Server

KINDS = ["asyncio", "uvloop"]
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end, as ``asyncio.run`` does."""
Scenario = Callable[[Server], Awaitable[None]]
Served = Callable[..., None]
"""Runs a scenario beside a server of a store in memory; options are the server's."""


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    """A loop; the test is skipped where uvloop is not."""
    if kind == "asyncio":
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop


def run_in(kind: str, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a new loop."""
    with asyncio.Runner(loop_factory=lambda: new_loop(kind)) as runner:
        return runner.run(main)
