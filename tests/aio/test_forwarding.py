"""Methods that pass their call on to a thread have the arguments and types of the plain ones."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import pydoc
import threading
from typing import Any

import pytest
from gates import GatedEnv, all_threads_busy, gated, turns

import lsmkv
from lsmkv import aio
from lsmkv.aio import db as module
from lsmkv.aio.forwarding import forwarded


class Plain:
    """Stands for an object of the engine."""

    def tell(self, key: Any, number: int = 5, *, flag: bool = False) -> tuple[Any, ...]:
        """The arguments, and the thread."""
        return key, number, flag, threading.current_thread().name


class Telling:
    """Has the same method twice, once for calls that take long."""

    def __init__(self) -> None:
        self.threads = aio.threads.CallThreads()

    def _opened(self) -> tuple[aio.threads.CallThreads, Plain]:
        return self.threads, Plain()

    @forwarded(Plain.tell, "key")
    def tell(self) -> None:
        """Its own docstring."""

    @forwarded(Plain.tell, long=True)
    def tell_slowly(self) -> None:
        """Another one."""


async def test_arguments_are_passed_on() -> None:
    one = Telling()
    try:
        assert (await one.tell(b"k"))[:3] == (b"k", 5, False)
        assert (await one.tell(b"k", 6, flag=True))[:3] == (b"k", 6, True)
        assert (await one.tell(number=7, key=b"k"))[:3] == (b"k", 7, False)
        assert (await one.tell(b"k"))[3].startswith("lsmkv-aio_")
        assert (await one.tell_slowly(b"k"))[3].startswith("lsmkv-aio-long")
        with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
            await one.tell(b"k", other=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="key must be"):
            await one.tell("text")
    finally:
        await one.threads.end(lambda: None)


async def test_a_key_is_copied_when_the_call_is_made() -> None:
    env = GatedEnv()
    async with gated(env) as db:
        busy = await all_threads_busy(env, db)
        key, value = bytearray(b"a"), bytearray(b"1")
        writing = [asyncio.create_task(db.put(key, value))]
        writing.append(asyncio.create_task(db.put(key=memoryview(b"b"), value=value)))
        await turns()
        key[:], value[:] = b"x", b"y"
        env.log.open()
        await asyncio.gather(*writing, *busy)
        assert await db.multi_get([b"a", b"b", b"x"]) == [b"1", b"1", None]


def test_help_shows_the_arguments_and_the_own_docstring() -> None:
    assert str(inspect.signature(aio.DB.put)) == str(inspect.signature(lsmkv.DB.put))
    assert list(inspect.signature(aio.Cache(".").touch).parameters) == ["key", "expire", "retry"]
    assert inspect.iscoroutinefunction(aio.DB.put)
    assert (aio.DB.put.__name__, aio.DB.put.__qualname__) == ("put", "DB.put")
    shown = pydoc.render_doc(aio.DB.put, renderer=pydoc.plaintext)
    assert "put(self, key: " in shown
    assert "Set ``key`` to ``value``" in shown


def test_examples_of_their_docstrings_are_found() -> None:
    names = {test.name.rpartition(".")[2] for test in doctest.DocTestFinder().find(module)}
    assert {"ingest", "checkpoint", "refresh", "rewrite_tables"} <= names
