"""A file system in memory whose calls wait at gates, and stores of :mod:`lsmkv.aio` in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest

import lsmkv
from lsmkv import aio
from lsmkv.engine.env.base import RandomAccessFile, WritableFile
from lsmkv.engine.env.memory import MemoryDirectory, MemoryEnv

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 64}
PATIENCE = 60.0
"""Seconds after which a test that waits for what never comes fails."""


class Gate:
    """Where threads stop while it is shut."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._opened.set()
        self._came = threading.Semaphore(0)

    def shut(self) -> None:
        self._opened.clear()

    def open(self) -> None:
        self._opened.set()

    def come(self) -> None:
        """A thread passes, or stops here."""
        if not self._opened.is_set():
            self._came.release()
            assert self._opened.wait(PATIENCE)

    async def somebody(self) -> None:
        """Until one more thread has stopped here."""
        assert await asyncio.to_thread(self._came.acquire, timeout=PATIENCE)


class GatedFile(WritableFile):
    """A file whose ``sync`` goes through a gate."""

    def __init__(self, inner: WritableFile, gate: Gate) -> None:
        self.inner = inner
        self.gate = gate
        self.path = inner.path

    def append(self, data: bytes) -> None:
        self.inner.append(data)

    def size(self) -> int:
        return self.inner.size()

    def truncate(self, length: int) -> None:
        self.inner.truncate(length)

    def sync(self) -> None:
        self.gate.come()
        self.inner.sync()

    def close(self) -> None:
        self.inner.close()


class GatedReads(RandomAccessFile):
    """A table whose reads go through a gate."""

    def __init__(self, inner: RandomAccessFile, gate: Gate) -> None:
        self.inner = inner
        self.gate = gate
        self.path = inner.path
        self.size = inner.size

    def read(self, offset: int, length: int) -> bytes:
        self.gate.come()
        return self.inner.read(offset, length)

    def close(self) -> None:
        self.inner.close()


class GatedDirectory(MemoryDirectory):
    """Its logs are synced through one gate, its tables synced and read through others."""

    env: GatedEnv

    def create(self, name: str) -> Any:
        gate = self.env.log if name.endswith(".log") else self.env.table
        return GatedFile(super().create(name), gate)

    def append_to(self, name: str) -> Any:
        return GatedFile(super().append_to(name), self.env.log)

    def open(self, name: str) -> Any:
        file = super().open(name)
        return GatedReads(file, self.env.reads) if name.endswith(".ldb") else file


class GatedEnv(MemoryEnv):
    """A file system in memory with gates in it."""

    def __init__(self) -> None:
        super().__init__()
        self.log, self.table, self.reads = Gate(), Gate(), Gate()

    def open_directory(self, path: str, create: bool = False) -> MemoryDirectory:
        inner = super().open_directory(path, create)
        directory = GatedDirectory(inner.path, self.mutex, inner._folder)
        directory.env = self
        return directory


def gated(env: GatedEnv, **options: Any) -> aio.DB:
    return aio.open_db("db", env=env, create_if_missing=True, **options)


def reopened(env: GatedEnv) -> lsmkv.DB:
    """The store by the plain face; a lock that was not given up would be an error."""
    return lsmkv.DB("db", env=env)


async def turns(count: int = 20) -> None:
    """Let the event loop go round, which it can only if nothing blocks it."""
    for _ in range(count):
        await asyncio.sleep(0)


async def all_threads_busy(env: GatedEnv, db: aio.DB) -> list[asyncio.Task[None]]:
    """Puts that hold every thread for calls until the gate of logs is opened."""
    env.log.shut()
    puts = [
        asyncio.create_task(db.put(b"busy", b"", sync=True))
        for _ in range(aio.threads.CALL_THREADS)
    ]
    await env.log.somebody()
    return puts


async def filled(db: aio.DB, count: int = 100) -> dict[bytes, bytes]:
    content = {b"%04d" % i: b"v%d" % i for i in range(count)}
    async with db.write_batch() as batch:
        for key, value in content.items():
            batch.put(key, value)
    return content


async def cancel_midway(
    env_gate: Gate, work: Coroutine[Any, Any, Any], meanwhile: Awaitable[Any] | None = None
) -> None:
    """Cancel ``work`` when it stands at the gate: it ends when the gate opens, and not before."""
    env_gate.shut()
    task = asyncio.ensure_future(work)
    await env_gate.somebody()
    for _ in range(3):  # impatience changes nothing
        task.cancel()
        await turns()
        assert not task.done()
    if meanwhile is not None:
        await meanwhile
    env_gate.open()
    with pytest.raises(asyncio.CancelledError):
        await task
