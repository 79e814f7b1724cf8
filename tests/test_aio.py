"""lsmkv.aio: the same answers as the store itself, and nothing broken by a cancellation."""

from __future__ import annotations

import asyncio
import inspect
import pathlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lsmkv
from lsmkv import aio
from lsmkv.db.handles.turns import FREE_ATTEMPTS
from lsmkv.env.base import RandomAccessFile, WritableFile
from lsmkv.env.faulty import FaultyEnv
from lsmkv.env.memory import MemoryDirectory, MemoryEnv

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


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("lsmkv-aio"):
            thread.join(PATIENCE)
            assert not thread.is_alive()


async def turns(count: int = 20) -> None:
    """Let the event loop go round, which it can only if nothing blocks it."""
    for _ in range(count):
        await asyncio.sleep(0)


async def filled(db: aio.DB, count: int = 100) -> dict[bytes, bytes]:
    content = {b"%04d" % i: b"v%d" % i for i in range(count)}
    async with db.write_batch() as batch:
        for key, value in content.items():
            batch.put(key, value)
    return content


# The same names


def public_names(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("ours", "model", "extra"),
    [
        (aio.DB, lsmkv.DB, {"open", "contains", "options"}),
        (aio.Iterator, lsmkv.Iterator, {"closed"}),
        (aio.Snapshot, lsmkv.Snapshot, {"open"}),
        (aio.PrefixedDB, lsmkv.PrefixedDB, {"contains"}),
        (aio.Transaction, lsmkv.Transaction, set()),
        (aio.WriteBatch, lsmkv.WriteBatch, set()),
    ],
)
def test_names_and_arguments_are_those_of_the_plain_classes(
    ours: type, model: type, extra: set[str]
) -> None:
    for name in public_names(ours) - extra:
        there = inspect.getattr_static(model, name)
        here = inspect.getattr_static(ours, name)
        if isinstance(there, property):
            assert isinstance(here, property)
        elif lsmkv.COMPILED:
            assert callable(there)  # compiled functions tell no signature; the pure ones do
        elif name != "iterator":  # which has a chunk, and keywords by Unpack
            assert parameters(here) == parameters(there), name


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found]


def test_everything_public_has_a_docstring() -> None:
    for name in aio.__all__:
        thing = getattr(aio, name)
        assert thing.__doc__
        for member in public_names(thing) if isinstance(thing, type) else ():
            assert inspect.getattr_static(thing, member).__doc__, (name, member)


def test_every_method_does_what_the_plain_one_does(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        path = tmp_path / "db"
        async with aio.open_db(path, create_if_missing=True, **TINY) as db:
            assert (db.path, db.name, db.closed) == (str(path), str(path), False)
            assert db.options.block_size == 64
            await db.put(b"a", bytearray(b"1"))
            await db.put(b"b", memoryview(b"2"), sync=True)
            await db.delete(b"a", sync=True)
            plain = lsmkv.WriteBatch()
            plain.put(b"c", b"3")
            await db.write(plain, sync=True)
            batch = db.write_batch()
            batch.append(plain)
            batch.delete(b"b")
            batch.put(b"d", b"4")
            assert len(batch) == 3
            assert batch.approximate_size() > 12
            await batch.write()
            batch.clear()
            assert len(batch) == 0
            assert await db.get(b"a") is None
            assert await db.get(b"a", 5) == 5
            assert await db.get(b"c", 5, verify_checksums=True, fill_cache=False) == b"3"
            assert await db.multi_get([b"d", b"x", b"c"]) == [b"4", None, b"3"]
            assert await db.contains(b"c")
            assert not await db.contains(b"b")
            assert await db.may_contain(b"c")
            assert (await db.explain(b"c")).found
            await db.sync()
            await db.flush()
            await db.compact_range()
            await db.compact_range(b"a", b"b")
            assert await db.verify() == []
            await db.check()
            await db.refresh()
            await db.checkpoint(tmp_path / "copy")
            assert await db.get_property("leveldb.num-files-at-level0") == "0"
            assert await db.get_property("nonsense") is None
            assert await db.approximate_size(b"a", b"z") > 0
            assert len(await db.approximate_sizes((b"a", b"b"), (b"b", b"z"))) == 2
            assert (await db.stats()).writes == 5
            assert [pair async for pair in db] == [(b"c", b"3"), (b"d", b"4")]
            assert [k async for k in db.iterator(reverse=True, include_value=False)] == [b"d", b"c"]
        assert db.closed
        assert repr(db) == f"<lsmkv.aio.DB {str(path)!r} (closed)>"
        for directory in (path, tmp_path / "copy"):
            with lsmkv.DB(directory) as sync_db:
                assert list(sync_db) == [(b"c", b"3"), (b"d", b"4")]

    asyncio.run(main())


def test_snapshots_stay_as_they_were() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            await db.put(b"k", b"old")
            async with db.snapshot() as entered:
                awaited = await db.snapshot()
                await db.put(b"k", b"new")
                for snapshot in (entered, awaited):
                    assert await snapshot.get(b"k") == b"old"
                    assert await snapshot.get(b"none", 1) == 1
                    assert [pair async for pair in snapshot] == [(b"k", b"old")]
                    assert not snapshot.closed
            await awaited.close()
            await awaited.close()
            for snapshot in (entered, awaited):
                assert snapshot.closed
                with pytest.raises(lsmkv.ClosedError):
                    await snapshot.get(b"k")
                with pytest.raises(lsmkv.ClosedError):
                    await snapshot.open()
            with pytest.raises(lsmkv.ClosedError, match="not taken yet"):
                db.snapshot().iterator()

    asyncio.run(main())


def test_batches_and_transactions_are_discarded_by_an_exception() -> None:
    async def put_and_fail(group: Any) -> None:
        async with group:
            group.put(b"k", b"v")
            raise RuntimeError

    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            for group in (db.write_batch(), db.transaction()):
                with pytest.raises(RuntimeError):
                    await put_and_fail(group)
                assert await db.get(b"k") is None
            with pytest.raises(RuntimeError):
                await put_and_fail(db.write_batch(transaction=False))
            assert await db.get(b"k") == b"v"

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["update", "run"])
def test_tasks_that_conflict_take_turns(kind: str) -> None:
    """Function and store are called in turns: no task is called more often than there are tasks,
    but for its attempts before the turn."""
    tasks = 16
    calls = [0] * tasks
    most = [0] * tasks

    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            turns: Any = db._turns
            turns.longest = PATIENCE

            async def increment(own: int) -> None:
                async def slow(old: bytes | None) -> bytes:
                    calls[own] += 1
                    await asyncio.sleep(0)
                    return b"%d" % (int(old or 0) + 1)

                async def slow_run(transaction: aio.Transaction) -> None:
                    transaction.put(b"n", await slow(await transaction.get(b"n")))

                for _ in range(20):
                    calls[own] = 0
                    if kind == "update":
                        await db.update(b"n", slow)
                    else:
                        await db.run(slow_run)
                    most[own] = max(most[own], calls[own])

            await asyncio.gather(*map(increment, range(tasks)))
            assert await db.get(b"n") == b"%d" % (tasks * 20)

    asyncio.run(main())
    assert max(most) <= FREE_ATTEMPTS + tasks


def test_update_and_run_take_plain_functions_and_async_ones() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:

            async def nothing(old: bytes | None) -> None:
                pass

            assert await db.update(b"k", lambda old: old) is None
            assert await db.update(b"k", lambda old: bytearray(b"1"), sync=True) == b"1"
            assert await db.update(b"k", nothing) is None
            assert not await db.contains(b"k")
            with pytest.raises(TypeError, match="value"):
                await db.update(b"k", lambda old: 1)  # type: ignore[arg-type, return-value]

            def plain(transaction: aio.Transaction) -> str:
                transaction.put(b"k", b"2")
                return "plain"

            async def failing(transaction: aio.Transaction) -> None:
                transaction.put(b"k", b"3")
                raise LookupError

            assert await db.run(plain) == "plain"
            with pytest.raises(LookupError):
                await db.run(failing)
            assert await db.get(b"k") == b"2"
        with pytest.raises(lsmkv.ClosedError):
            await db.update(b"k", nothing)
        with pytest.raises(lsmkv.ClosedError):
            await db.run(plain)

    asyncio.run(main())


def test_a_call_inside_a_call_and_a_cancelled_one_hold_up_nobody() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            turns: Any = db._turns
            turns.longest = PATIENCE
            calls = 0
            inside = asyncio.Event()

            async def outer(old: bytes | None) -> bytes:
                nonlocal calls
                calls += 1
                if calls <= FREE_ATTEMPTS:
                    await db.put(b"k", b"%d" % calls)
                    return b""
                inner = db.update(b"k2", lambda old: b"inner")
                child = db.run(lambda transaction: transaction.put(b"k3", b"child"))
                await asyncio.gather(inner, child)
                inside.set()
                await asyncio.sleep(PATIENCE)
                return b""

            task = asyncio.create_task(db.update(b"k", outer))
            async with asyncio.timeout(PATIENCE / 2):
                await inside.wait()
                waiting = asyncio.create_task(db.update(b"k", lambda old: b"waited"))
                await asyncio.sleep(0.05)
                assert not waiting.done()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await waiting == b"waited"
            assert await db.multi_get([b"k2", b"k3"]) == [b"inner", b"child"]

    asyncio.run(main())


def test_transactions_conflict() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            await db.put(b"n", b"1")
            async with db.transaction() as one:
                one.put(b"n", b"%d" % (int(await one.get(b"n", b"0")) + 1))
                one.delete(b"none")
                await one.commit()  # and not again at the end of the block
            assert await db.get(b"n") == b"2"
            two = db.transaction()
            await two.__aenter__()
            await two.get(b"n")
            await db.put(b"n", b"9")
            two.put(b"m", b"1")
            with pytest.raises(lsmkv.ConflictError):
                await two.__aexit__(None, None, None)
            assert await db.get(b"m") is None
            async with db.transaction() as three:
                three.put(b"m", b"1")
                three.rollback()
            assert await db.get(b"m") is None
            with pytest.raises(lsmkv.ClosedError):
                await three.get(b"m")
            with pytest.raises(lsmkv.ClosedError):
                await three.__aenter__()
            with pytest.raises(lsmkv.ClosedError, match="not begun"):
                await db.transaction().get(b"m")

    asyncio.run(main())


# Iterators

STEPS = st.lists(
    st.sampled_from(
        ["next"] * 6 + ["prev"] * 6 + ["seek_to_start", "seek_to_stop", b"", b"11", b"20", b"41"]
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(
    STEPS,
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([{}, {"start": b"07"}, {"stop": b"31"}, {"prefix": b"1"}]),
    st.sampled_from([{}, {"include_value": False}, {"include_key": False, "include_value": False}]),
)
def test_an_iterator_moves_as_the_plain_iterator(
    steps: list[Any], chunk: int, reverse: bool, bounds: Any, shape: Any
) -> None:
    arguments = {**bounds, **shape, "reverse": reverse}

    async def main() -> None:
        env = MemoryEnv()
        with lsmkv.DB("db", env=env, create_if_missing=True, **TINY) as sync_db:
            for i in range(0, 40, 2):
                sync_db.put(b"%02d" % i, b"x" * 60)
            model = sync_db.iterator(**arguments)
            expected = [model_step(model, step) for step in steps]
        async with aio.open_db("db", env=env, **TINY) as db:
            iterator = db.iterator(chunk=chunk, **arguments)
            assert [await aio_step(iterator, step) for step in steps] == expected

    asyncio.run(main())


def model_step(iterator: lsmkv.Iterator, step: Any) -> Any:
    if isinstance(step, bytes):
        return iterator.seek(step)
    try:
        return getattr(iterator, step)()
    except StopIteration:
        return "the end"


async def aio_step(iterator: aio.Iterator, step: Any) -> Any:
    if isinstance(step, bytes):
        return await iterator.seek(step)
    try:
        return await getattr(iterator, step)()
    except StopAsyncIteration:
        return "the end"


@pytest.mark.parametrize("chunk", [1, 2, 99, 100, 101, 1000])
def test_chunks_are_bounded_and_lose_nothing(chunk: int) -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            content = await filled(db)
            iterator = db.iterator(chunk=chunk)
            seen = []
            async for pair in iterator:
                seen.append(pair)
                assert len(iterator._chunk_entries) <= chunk
            assert seen == list(content.items())

    asyncio.run(main())


def test_chunks_are_bounded_in_bytes_too() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            for i in range(8):
                await db.put(b"%d" % i, bytes(aio.iterator.CHUNK_BYTES // 2))
            iterator = db.iterator()
            count = 0
            async for _ in iterator:
                count += 1
                assert len(iterator._chunk_entries) <= 2
            assert count == 8

    asyncio.run(main())


def test_an_iterator_sees_the_store_as_of_its_first_trip() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            content = await filled(db)
            async with db.iterator(chunk=3) as entered:
                seen = []
                async for key, value in db.iterator(chunk=3):
                    await db.delete(key)
                    seen.append((key, value))
                assert seen == list(content.items())
                assert [pair async for pair in entered] == seen
            assert [pair async for pair in db] == []

    asyncio.run(main())


def test_tasks_that_share_an_iterator_get_each_entry_once() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            content = await filled(db)
            iterator = db.iterator(chunk=7, include_value=False)
            seen: list[bytes] = []

            async def take() -> None:
                async for key in iterator:
                    seen.append(key)
                    await turns(1)

            await asyncio.gather(*(take() for _ in range(5)))
            assert sorted(seen) == list(content)

    asyncio.run(main())


def test_entries_before_a_damaged_block_are_returned() -> None:
    env = FaultyEnv()
    with lsmkv.DB("db", env=env, create_if_missing=True, **TINY) as sync_db:
        for i in range(200):
            sync_db.put(b"%04d" % i, b"x" * 50)
        sync_db.compact_range()

    def by_model(seen: list[bytes]) -> None:
        with lsmkv.DB("db", env=env, **TINY) as db:
            for key, _ in db.iterator(fill_cache=False):
                seen.append(key)
                if len(seen) == 50:
                    env.fail_at(30, calls={"read"}, sticky=True)

    async def by_aio(seen: list[bytes]) -> None:
        async with aio.open_db("db", env=env, **TINY) as db:
            async for key, _ in db.iterator(fill_cache=False, chunk=50):
                seen.append(key)
                if len(seen) == 50:
                    env.fail_at(30, calls={"read"}, sticky=True)

    expected: list[bytes] = []
    with pytest.raises(lsmkv.IOError):
        by_model(expected)
    env.heal()
    seen: list[bytes] = []
    with pytest.raises(lsmkv.IOError):
        asyncio.run(by_aio(seen))
    assert 50 < len(expected) < 200
    assert seen == expected


def test_next_during_another_tasks_trip_waits_for_it() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env, **TINY) as db:
            await filled(db)
            await db.flush()
            async with db.iterator(chunk=10, include_value=False, fill_cache=False) as iterator:
                await iterator.seek(b"0050")
                assert (await iterator.next(), await iterator.prev()) == (b"0050", b"0050")
                env.reads.shut()
                prev = asyncio.create_task(iterator.prev())
                await env.reads.somebody()
                following = asyncio.create_task(iterator.next())
                await turns()
                assert not following.done()
                env.reads.open()
                assert await prev == b"0049"
                assert await following == b"0049"

    asyncio.run(main())


def test_wrong_chunks_are_refused() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            with pytest.raises(ValueError, match="chunk"):
                db.iterator(chunk=0)

    asyncio.run(main())


def test_a_closed_iterator_raises_closed_error() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            await filled(db)
            async with db.iterator(chunk=10) as iterator:
                assert await iterator.next() == (b"0000", b"v0")
                assert not iterator.closed
            await iterator.close()
            assert iterator.closed
            still_open = db.iterator(chunk=10)
            await still_open.next()
        for closed in (iterator, still_open):
            assert closed.closed
            with pytest.raises(lsmkv.ClosedError):
                await closed.next()
            with pytest.raises(lsmkv.ClosedError):
                await closed.prev()
            with pytest.raises(lsmkv.ClosedError):
                await closed.seek(b"x")
        await still_open.close()

    asyncio.run(main())


# Opening and closing


def test_errors_of_opening_are_those_of_the_plain_store(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        with pytest.raises(lsmkv.NotFoundError):
            await aio.open_db(tmp_path / "none")
        with pytest.raises(TypeError, match="block_size"):
            await aio.open_db(":memory:", block_size="4k")  # type: ignore[arg-type]
        db = aio.DB(":memory:")
        assert db.closed
        with pytest.raises(lsmkv.ClosedError, match="not open"):
            await db.get(b"k")
        await db.close()
        async with db:
            with pytest.raises(ValueError, match="already"):
                await db.open()
            for call in (db.get("k"), db.put(b"k", None), db.write(b"k")):  # type: ignore
                with pytest.raises(TypeError):
                    await call
        await db.close()
        for closed in (db.get(b"k"), db.put(b"k", b"v"), db.compact_range(), db.stats()):
            with pytest.raises(lsmkv.ClosedError):
                await closed

    asyncio.run(main())


def test_threads_are_few_and_named() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            await asyncio.gather(*(db.put(b"%d" % i, b"") for i in range(50)))
            await db.compact_range()
            names = [t.name for t in threading.enumerate() if t.name.startswith("lsmkv-aio")]
            assert 1 <= len(names) <= aio.threads.CALL_THREADS + 1

    asyncio.run(main())


def test_one_store_serves_several_loops_in_turn() -> None:
    db = aio.DB(":memory:")

    async def use(value: bytes) -> bytes | None:
        if db.closed:
            await db.open()
        before = await db.get(b"k")
        await db.put(b"k", value)
        return before

    assert asyncio.run(use(b"1")) is None
    assert asyncio.run(use(b"2")) == b"1"
    asyncio.run(db.close())


# The event loop goes on


def test_a_slow_disk_does_not_block_the_loop() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            env.log.shut()
            slow = asyncio.create_task(db.put(b"k", b"v", sync=True))
            await env.log.somebody()
            await turns()
            assert not slow.done()
            assert await db.get(b"none") is None  # and other calls are served
            env.log.open()
            await slow
            assert await db.get(b"k") == b"v"

    asyncio.run(main())


def test_long_calls_do_not_delay_other_calls() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env, **TINY) as db:
            await filled(db)
            env.table.shut()
            work = [
                asyncio.create_task(db.compact_range()) for _ in range(aio.threads.CALL_THREADS + 2)
            ]
            await env.table.somebody()
            assert await db.get(b"0007") == b"v7"
            assert not any(task.done() for task in work)
            env.table.open()
            await asyncio.gather(*work)

    asyncio.run(main())


def test_write_takes_the_batch_as_of_the_call() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            env.log.shut()
            busy = [
                asyncio.create_task(db.put(b"busy", b"", sync=True))
                for _ in range(aio.threads.CALL_THREADS)
            ]
            await env.log.somebody()
            batch = db.write_batch()
            batch.put(b"a", b"1")
            writing = asyncio.create_task(batch.write())
            await turns()
            batch.clear()
            batch.put(b"b", b"2")
            env.log.open()
            await asyncio.gather(writing, *busy)
            assert await db.multi_get([b"a", b"b"]) == [b"1", None]

    asyncio.run(main())


# Cancellation


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


def test_a_cancelled_put_has_happened_when_it_ends() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            await cancel_midway(env.log, db.put(b"k", b"v", sync=True))
            assert await db.get(b"k") == b"v"
            await db.put(b"k", b"w", sync=True)
        with reopened(env) as sync_db:
            assert sync_db.get(b"k") == b"w"

    asyncio.run(main())


def test_a_timeout_does_not_reorder_writes() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            env.log.shut()
            late = asyncio.create_task(asyncio.wait_for(db.put(b"k", b"1", sync=True), 0.01))
            await env.log.somebody()
            await asyncio.sleep(0.05)
            env.log.open()
            with pytest.raises(TimeoutError):
                await late
            await db.put(b"k", b"2")
            assert await db.get(b"k") == b"2"

    asyncio.run(main())


def test_a_cancelled_call_that_no_thread_has_begun_never_happens() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            env.log.shut()
            busy = [
                asyncio.create_task(db.put(b"%d" % i, b"", sync=True))
                for i in range(aio.threads.CALL_THREADS)
            ]
            await env.log.somebody()
            await turns()
            waiting = asyncio.create_task(db.put(b"waiting", b""))
            await turns()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting  # at once: the gate is still shut
            env.log.open()
            await asyncio.gather(*busy)
            assert not await db.contains(b"waiting")

    asyncio.run(main())


def test_an_error_in_a_cancelled_write_is_not_lost_on_the_store() -> None:
    async def main() -> None:
        env = FaultyEnv()
        db = await aio.open_db("db", env=env, create_if_missing=True)
        await db.put(b"j", b"v")  # so that closing has something to sync
        env.fail_at(1, calls={"sync"}, sticky=True)
        task = asyncio.create_task(db.put(b"k", b"v", sync=True))
        await turns(1)
        task.cancel()
        with pytest.raises((asyncio.CancelledError, lsmkv.IOError)):
            await task
        with pytest.raises(lsmkv.IOError):
            await db.close()  # the write ends first, if it was begun

    asyncio.run(main())


def test_a_cancelled_iteration_may_go_on() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            content = await filled(db)
            await db.flush()
            seen: list[bytes] = []
            iterator = db.iterator(chunk=10, include_value=False, fill_cache=False)

            async def iterate() -> None:
                async for key in iterator:
                    seen.append(key)

            await cancel_midway(env.reads, iterate())
            assert seen == []
            await iterate()
            assert seen == list(content)
            await iterator.seek_to_stop()
            await cancel_midway(env.reads, iterator.prev())
            assert await iterator.prev() == max(content)
            assert await iterator.next() == max(content)

    asyncio.run(main())


def test_a_cancelled_iteration_in_a_with_block_closes() -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            await filled(db)
            await db.flush()
            held: list[aio.Iterator] = []

            async def iterate() -> None:
                async with db.iterator(fill_cache=False) as iterator:
                    held.append(iterator)
                    async for _ in iterator:
                        pass

            await cancel_midway(env.reads, iterate())
            assert held[0].closed
            assert held[0]._iterator is None
            await db.put(b"k", b"v")

    asyncio.run(main())


@pytest.mark.parametrize("patient", [True, False])
def test_closing_an_iterator_waits_for_its_trip(patient: bool) -> None:
    async def main() -> None:
        env = GatedEnv()
        async with gated(env) as db:
            await filled(db)
            await db.flush()
            iterator = db.iterator(fill_cache=False)
            env.reads.shut()
            trip = asyncio.create_task(iterator.next())
            waiting = asyncio.create_task(iterator.next())
            await env.reads.somebody()
            closing = asyncio.create_task(iterator.close()) if patient else None
            hasty = asyncio.create_task(iterator.close())
            await turns()
            hasty.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hasty
            assert closing is None or not closing.done()
            env.reads.open()
            if closing is not None:
                await closing
            for task in (trip, waiting):
                with pytest.raises(lsmkv.ClosedError):
                    await task
            assert iterator._iterator is None

    asyncio.run(main())


def test_a_cancelled_batch_writes_nothing() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            for make in (db.write_batch, db.transaction):
                inside = asyncio.Event()

                async def fill(make: Any = make, inside: asyncio.Event = inside) -> None:
                    async with make() as group:
                        group.put(b"k", b"v")
                        inside.set()
                        await asyncio.Event().wait()

                task = asyncio.create_task(fill())
                await inside.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await db.get(b"k") is None

    asyncio.run(main())


def test_a_cancelled_open_closes_again() -> None:
    async def main() -> None:
        env = GatedEnv()
        env.table.shut()
        db = gated(env)
        await cancel_midway(env.table, db.open())
        assert db.closed
        with reopened(env):  # the lock was given up
            pass

    asyncio.run(main())


def test_a_cancelled_close_closes_whole() -> None:
    async def main() -> None:
        env = GatedEnv()
        db = await gated(env)
        await db.put(b"k", b"v")

        async def refused() -> None:
            with pytest.raises(lsmkv.ClosedError):
                await db.get(b"k")
            assert db.closed

        await cancel_midway(env.log, db.close(), refused())
        assert db.closed
        await db.close()
        with reopened(env) as sync_db:
            assert sync_db.get(b"k") == b"v"

    asyncio.run(main())


@pytest.mark.parametrize("moment", range(4))
def test_a_close_cancelled_early_still_closes(moment: int) -> None:
    async def main() -> None:
        for _ in range(20):
            db = await aio.open_db(":memory:")
            closing = asyncio.create_task(db.close())
            await turns(moment)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            if moment > 0:
                assert db.closed
            await db.close()
            assert db.closed

    asyncio.run(main())


def test_closing_waits_for_calls_under_way() -> None:
    async def main() -> None:
        env = GatedEnv()
        db = await gated(env)
        env.log.shut()
        puts = [
            asyncio.create_task(db.put(b"%d" % i, b"", sync=True))
            for i in range(2 * aio.threads.CALL_THREADS)  # some of them are not begun
        ]
        await env.log.somebody()
        closing = [asyncio.create_task(db.close()) for _ in range(2)]
        await turns()
        assert not any(task.done() for task in [*puts, *closing])
        with pytest.raises(lsmkv.ClosedError):
            await db.put(b"late", b"")
        env.log.open()
        await asyncio.gather(*puts, *closing)
        with reopened(env) as sync_db:
            assert list(sync_db.iterator(include_value=False)) == [
                b"%d" % i for i in range(2 * aio.threads.CALL_THREADS)
            ]

    asyncio.run(main())


def test_a_cancelled_compaction_is_left_to_its_thread_and_ended_by_close() -> None:
    async def main() -> None:
        env = GatedEnv()
        db = await gated(env, **TINY)
        for _ in range(3):
            content = await filled(db, 500)
            await db.flush()
        env.table.shut()
        task = asyncio.create_task(db.compact_range())
        left = asyncio.create_task(db.compact_range())
        await env.table.somebody()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task  # at once: the gate is still shut
        closing = asyncio.create_task(db.close())
        await turns()
        env.table.open()
        await closing
        with pytest.raises(lsmkv.ClosedError):
            await left
        with reopened(env) as sync_db:
            sync_db.check()
            assert dict(sync_db) == content

    asyncio.run(main())


def test_tasks_cancelled_by_asyncio_run_leave_a_closed_store() -> None:
    """What ``asyncio.run`` does to the tasks that are left when it ends."""
    env = GatedEnv()

    async def worker() -> None:
        async with gated(env) as db:
            for i in range(10**9):
                await db.put(b"%09d" % i, b"", sync=True)

    async def main() -> None:
        task = asyncio.create_task(worker())
        env.log.shut()
        await env.log.somebody()
        env.log.open()
        assert not task.done()

    asyncio.run(main())
    with reopened(env) as sync_db:
        keys = list(sync_db.iterator(include_value=False))
    assert keys == [b"%09d" % i for i in range(len(keys))]
    assert keys


def test_many_tasks_cancelled_at_random_leave_whole_batches() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:", **TINY) as db:

            async def write(i: int) -> None:
                async with db.write_batch() as batch:
                    for part in b"abc":
                        batch.put(b"%03d%c" % (i, part), b"x" * 20)
                async for _ in db.iterator(chunk=5):
                    pass

            tasks = [asyncio.create_task(write(i)) for i in range(100)]
            for i, task in enumerate(tasks):
                await turns(i % 5)
                if i % 3:
                    task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(e is None or isinstance(e, asyncio.CancelledError) for e in ended)
            keys = [key async for key in db.iterator(include_value=False)]
            groups = {key[:3] for key in keys}
            assert len(keys) == 3 * len(groups)
            assert {b"%03d" % i for i in range(0, 100, 3)} <= groups
            await db.check()

    asyncio.run(main())


# Small manners


def test_wrong_arguments_of_an_iterator_raise_at_once() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            for wrong in ({"start": "text"}, {"prefix": 3}, {"begin": b"a"}, {"limit": "5"}):
                with pytest.raises(TypeError):
                    db.iterator(**wrong)  # type: ignore[call-overload]
            with pytest.raises(ValueError, match="negative"):
                db.iterator(limit=-1)

    asyncio.run(main())


def test_an_iterator_has_the_bounds_of_its_call() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            await db.put(b"a", b"1")
            start = bytearray(b"a")
            iterator = db.iterator(start=start)
            start[:] = b"b"
            assert [pair async for pair in iterator] == [(b"a", b"1")]

    asyncio.run(main())


@pytest.mark.parametrize("chunk", [1, 2, 256])
def test_an_iterator_has_a_limit(chunk: int) -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            for n in range(9):
                await db.put(b"%d" % n, b"")
            keys = db.iterator(limit=3, chunk=chunk, include_value=False)
            assert [key async for key in keys] == [b"0", b"1", b"2"]
            assert await keys.prev() == b"2"
            assert [key async for key in keys] == [b"2"]
            await keys.seek(b"5")
            assert [key async for key in keys] == [b"5", b"6", b"7"]

    asyncio.run(main())


def test_an_awaited_store_may_be_entered(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        db = await aio.open_db(tmp_path / "db", create_if_missing=True)
        async with db as same:
            assert same is db
            await db.put(b"k", b"v")
        assert db.closed
        with pytest.raises(ValueError, match="opened already"):
            async with db:
                pass
        snapshots = await aio.open_db(tmp_path / "db")
        async with snapshots, await snapshots.snapshot() as snapshot:
            assert await snapshot.get(b"k") == b"v"

    asyncio.run(main())


def test_a_part_does_what_the_plain_part_does() -> None:
    async def main() -> None:
        async with aio.open_db(":memory:") as db:
            part = db.prefixed_db(bytearray(b"p:"))
            await part.put(bytearray(b"k"), b"1", sync=True)
            await db.put(b"q", b"outside")
            assert await part.get(b"k") == await db.get(b"p:k") == b"1"
            assert await part.get(b"x", 5) == 5
            assert await part.contains(b"k")
            assert not await part.contains(b"q")
            async with part.snapshot() as before, part.write_batch() as batch:
                batch.put(b"l", b"2")
                batch.delete(b"k")
                inner = lsmkv.WriteBatch()
                inner.put(b"raw", b"3")
                batch.append(inner)
                await batch.write()
                batch.clear()
                assert await before.get(b"k") == b"1"
                assert [pair async for pair in before.iterator()] == [(b"k", b"1")]
            assert [pair async for pair in part] == [(b"l", b"2")]
            assert await db.get(b"raw") == b"3"
            assert [key async for key in part.iterator(prefix=b"l", include_value=False)] == [b"l"]
            nested = part.prefixed_db(b"n")
            await nested.put(b"k", b"v")
            assert (nested.db, nested.prefix) == (db, b"p:n")
            assert await db.get(b"p:nk") == b"v"
            await nested.delete(b"k")
            assert repr(part) == f"<lsmkv.aio.PrefixedDB b'p:' of {db!r}>"
            for wrong in (part.prefixed_db, db.prefixed_db):
                with pytest.raises(TypeError):
                    wrong("text")  # type: ignore[arg-type]
        with pytest.raises(lsmkv.ClosedError):
            await part.get(b"k")

    asyncio.run(main())


def test_opening_waits_for_the_lock_and_the_loop_goes_on(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db"

    async def main() -> None:
        first = await aio.open_db(path, create_if_missing=True)
        opening = asyncio.ensure_future(aio.open_db(path, lock_timeout=PATIENCE).open())
        for _ in range(20):  # the loop goes on
            await asyncio.sleep(0.01)
        assert not opening.done()
        await first.close()
        async with await opening as second:
            with pytest.raises(lsmkv.LockedError):
                await aio.open_db(path)
            cancelled = asyncio.ensure_future(aio.open_db(path, lock_timeout=PATIENCE).open())
            await asyncio.sleep(0.1)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await second.put(b"k", b"v")

    asyncio.run(main())
