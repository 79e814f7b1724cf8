"""Storms of interrupts: signals whose handler raises, at any moment of a call that acquires or
releases descriptors, locks, leases, maps or threads.

An interrupted call has happened, or has not, or is finished by the next of its kind.  So once its
handle is closed, or dropped, the process holds what it held before.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import linecache
import logging
import os
import random
import re
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import small_sets
from others import Other

import lsmkv
import lsmkv.aio
import lsmkv.shards
import lsmkv.testing
from lsmkv.server.server import Server

_PACKAGE = os.path.dirname(lsmkv.__file__) + os.sep
_PATIENCE = 3.0
"""Seconds in which a thread that was let go ends; only a lost one takes them."""


class Interrupted(KeyboardInterrupt):
    """What the handler raises: asyncio swallows other exceptions that a callback raises."""


class World:
    """The directory of one storm, and the handle that its call has got."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / "store"
        self.handle: Any = None
        self.base: Any = None
        """What is open throughout."""
        self.owner: Other | None = None
        """Another process, which owns the store."""
        self.turn = 0

    def fill(self) -> None:
        """A store with tables and a log."""
        with lsmkv.DB(self.store, create_if_missing=True) as db:
            for number in range(300):
                db.put(b"%06d" % number, bytes(100))
            db.flush()
            for number in range(300):
                db.put(b"%06d" % number, bytes(50))

    def settle(self) -> None:
        """Close the handle after an interrupted call, or drop it."""
        handle, self.handle = self.handle, None
        if handle is not None:
            handle.close()
        if self.base is not None:
            self.reopen()  # so that it has no more tables and logs open than before

    def reopen(self) -> None:
        """Open the base, or close it and open it again."""
        if self.base is not None:
            self.base.close()
        if self.owner is None:
            self.base = lsmkv.DB(self.store)
            self.base.put(b"r", b"")
            self.base.compact_range()  # so that MANIFEST is open, and there is one table
        else:
            self.base = lsmkv.SharedDB(self.store, may_own=False)
        self.base.get(b"000001")


def _nothing(_world: World) -> None:
    pass


class Storm(NamedTuple):
    """A call that is interrupted again and again, and what comes before and after."""

    name: str
    begin: Callable[[World], None]
    call: Callable[[World], None]
    end: Callable[[World], None] = _nothing
    prepare: Callable[[World], None] = _nothing
    """Before each call."""
    in_loop: bool = False
    """True if ``asyncio`` runs the call."""


def held() -> Counter[str]:
    """Count what this process holds: descriptors and their locks, maps of stores, and threads."""
    found: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
            with open(f"/proc/self/fdinfo/{name}", encoding="ascii") as file:
                locks = [line.split() for line in file if line.startswith("lock:")]
        except OSError:
            continue  # that of the listing
        kind = target.partition(":[")[0].rpartition("/")[2]
        found[f"descriptor {re.sub('[0-9]+', 'N', kind)}"] += 1
        for lock in locks:
            place = "lease" if int(lock[-2]) > 1 << 59 else "lock"
            found[f"{place} of {os.path.basename(target)}"] += 1
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            if "lsmkv page" in line or line.rstrip().endswith((".log", ".ldb")):
                found["map"] += 1
    found["thread"] = len(os.listdir("/proc/self/task"))
    return found


def lost_since(before: Counter[str]) -> Counter[str]:
    """Count what is held beyond that, once threads that are ending have ended."""
    until = time.monotonic() + _PATIENCE
    while True:
        gc.collect()
        lost = held() - before
        if not lost or time.monotonic() > until:
            return lost
        time.sleep(0.001)


class Counts(logging.Handler):
    """The result of a storm.  As a handler, it notes reports of descriptors that were closed under
    the thread that uses them."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupts = 0
        """How often the handler ran in the middle of the call."""
        self.refused: Counter[str] = Counter()
        """Errors of the calls that follow an interrupted one, and closed descriptors in use."""
        self.unclean = 0
        """Interrupts after which something stayed held."""
        self.lost: Counter[str] = Counter()
        self.places: list[str] = []
        """Where the interrupts came that left something, and what."""

    def emit(self, record: logging.LogRecord) -> None:
        """A logged message of the engine."""
        if os.strerror(errno.EBADF) in record.getMessage():
            self.refused["EBADF"] += 1

    def note(self, lost: Counter[str], place: str = "") -> None:
        """Note what one interrupt has left."""
        if lost:
            self.unclean += 1
            self.lost += lost
            self.places.append(f"{place} {dict(lost)}")

    def __str__(self) -> str:
        lost = ", ".join(f"{count} x {what}" for what, count in sorted(self.lost.items()))
        refused = ", ".join(f"{count} x {what}" for what, count in sorted(self.refused.items()))
        return (
            f"{self.interrupts:,} interrupts, {self.unclean} left something"
            + (f": {lost}" if lost else "")
            + (f"; errors: {refused}" if refused else "")
        )


def _settle(world: World, counts: Counts) -> None:
    for _ in range(2):
        _note_error(counts, world.settle)
        gc.collect()


def _note_error(counts: Counts, call: Callable[[], None], place: str = "") -> None:
    """Make a call, and note its error.

    An interrupt ends a loop by ``CancelledError`` if it comes just before ``asyncio.run`` sets its
    count of interrupts to zero.
    """
    try:
        call()
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass
    except Exception as error:
        counts.refused[f"{type(error).__name__}{place}"] += 1


def run_at_random(storm: Storm, path: Path, interrupts: int, seed: int) -> Counts:
    """Interrupt the call at random moments, by a timer.

    A loop gets Ctrl-C while ``asyncio`` handles it, which cancels the task.  An exception in the
    middle of the loop's own code can lose the wakeup of a task, which then never ends.  So the
    handler of an ``asyncio.run`` that was interrupted at its very end, and stays, is taken away.
    """
    ctrl_c = signal.getsignal(signal.SIGINT)
    rng = random.Random(f"{storm.name} {seed}")
    armed = False

    def handler(_number: int, _frame: FrameType | None) -> None:
        nonlocal armed
        if not armed:
            return
        armed = False
        if not storm.in_loop:
            counts.interrupts += 1
            raise Interrupted
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            counts.interrupts += 1
            signal.raise_signal(signal.SIGINT)

    with _storming(storm, path, handler) as (world, counts):
        took = min(_seconds_of(storm, world) for _ in range(3))
        before = held()
        for _ in range(interrupts):
            _note_error(counts, lambda: storm.prepare(world))
            armed = True
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, rng.random() * took))
                _note_error(counts, lambda: storm.call(world))
            except KeyboardInterrupt:
                pass  # just before the call
            finally:
                armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGINT, ctrl_c)
            _settle(world, counts)
            lost = lost_since(before)
            counts.note(lost)
            before += lost
    return counts


def run_at_lines(storm: Storm, path: Path, interrupts: int, seed: int) -> Counts:
    """Interrupt the call before so many of the engine's lines, evenly spread over those that it
    runs in this thread.

    A signal comes where CPython looks for it: after calls, so neither at a ``with`` nor a ``try``.
    """

    def handler(_number: int, _frame: FrameType | None) -> None:
        counts.interrupts += 1
        raise Interrupted

    with _storming(storm, path, handler) as (world, counts):
        for _ in range(2):  # the first one imports, and starts what stays
            _seconds_of(storm, world)
        storm.prepare(world)
        lines = _interrupt_at(storm, world, 0, counts)[1]
        world.settle()
        gc.collect()
        before = held()
        step = max(1, lines // interrupts)
        place = "any"
        line = 1 + seed % step
        while place:
            _note_error(counts, lambda: storm.prepare(world))
            place, _ = _interrupt_at(storm, world, line, counts)
            _settle(world, counts)
            lost = lost_since(before)
            counts.note(lost, place)
            before += lost
            line += step
    return counts


@contextlib.contextmanager
def _storming(
    storm: Storm, path: Path, handler: Callable[[int, FrameType | None], None]
) -> Iterator[tuple[World, Counts]]:
    """The surroundings of one storm."""
    counts = Counts()
    world = World(path)
    storm.begin(world)
    before = signal.signal(signal.SIGALRM, handler)
    logging.getLogger("lsmkv").addHandler(counts)
    try:
        with _ignoring_unraisable():
            yield world, counts
    finally:
        logging.getLogger("lsmkv").removeHandler(counts)
        signal.signal(signal.SIGALRM, before)
    _note_error(counts, lambda: storm.end(world))


def _seconds_of(storm: Storm, world: World) -> float:
    storm.prepare(world)
    started = time.perf_counter()
    storm.call(world)
    took = time.perf_counter() - started
    world.settle()
    gc.collect()
    return took


def _interrupt_at(storm: Storm, world: World, line: int, counts: Counts) -> tuple[str, int]:
    """Make the call, with a signal before one of its lines: where that was, "" if nowhere, and how
    many lines were run before."""
    lines = 0
    place = ""

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines, place
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if event == "line":
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
            if not text.startswith(("with ", "try:")):
                lines += 1
                if lines == line:
                    place = f"{frame.f_code.co_filename[len(_PACKAGE) :]}:{frame.f_lineno}"
                    sys.settrace(None)
                    signal.raise_signal(signal.SIGALRM)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        _note_error(counts, lambda: storm.call(world))
    finally:
        sys.settrace(before)
    return place, lines


@contextlib.contextmanager
def _ignoring_unraisable() -> Iterator[None]:
    """Without the reports of finalizers that were interrupted, and of handles that were dropped."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda _report: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    finally:
        sys.unraisablehook = before


# The storms


def _fill(world: World) -> None:
    world.fill()


def _open_base(world: World) -> None:
    world.fill()
    world.reopen()


def _join_base(world: World) -> None:
    _own_elsewhere(world)
    world.reopen()


def _own_elsewhere(world: World) -> None:
    world.fill()
    world.owner = Other(world.store)


def _end(world: World) -> None:
    if world.base is not None:
        world.base.close()
    if world.owner is not None:
        world.owner.kill()


def _can_be_opened(world: World) -> None:
    with lsmkv.DB(world.store) as db:
        db.check()


def _open(**options: Any) -> Callable[[World], None]:
    def call(world: World) -> None:
        world.handle = lsmkv.DB(world.store, **options)
        world.handle.close()

    return call


def _create(world: World) -> None:
    world.turn += 1
    world.handle = lsmkv.DB(world.path / f"new{world.turn}", create_if_missing=True)
    world.handle.close()


def _begin_work(world: World, opens: Callable[..., Any] = lsmkv.DB) -> None:
    """Let the background thread flush and compact."""
    world.handle = opens(
        world.store, write_buffer_size=64 << 10, max_file_size=32 << 10, block_size=512
    )
    for number in range(600):
        world.handle.put(b"%06d" % (number * 7919 % 9973), bytes(180))


def _begin_owning(world: World) -> None:
    _begin_work(world, lsmkv.SharedDB)


def _begin_joining(world: World) -> None:
    world.handle = lsmkv.SharedDB(world.store, may_own=False)
    world.handle.put(b"000001", b"")


def _close(world: World) -> None:
    world.handle.close()


def _open_mapping(world: World) -> None:
    world.handle = lsmkv.open(world.path / "mapping", "c")
    world.handle[b"a"] = b"1"
    world.handle.close()


def _share(world: World) -> None:
    world.handle = lsmkv.SharedDB(world.store)
    world.handle.close()


def _join(world: World) -> None:
    world.handle = lsmkv.SharedDB(world.store, may_own=False)
    world.handle.get(b"000001")
    world.handle.close()


def _start_owner(world: World) -> None:
    world.handle = lsmkv.SharedDB(world.store, owner="process")
    world.handle.close()


def _cache(world: World) -> None:
    world.handle = lsmkv.Cache(world.path / "cache")
    world.handle["a"] = 1
    world.handle.close()


def _read(world: World) -> None:
    """Each kind of handle that an open store gives out."""
    db = world.base
    with db.snapshot() as snapshot:
        snapshot.get(b"000001")
    with db.iterator() as iterator:
        next(iterator)
    raw = db.raw_iterator()
    raw.seek_to_first()
    raw.close()
    with db.transaction() as transaction:
        transaction.put(b"t", b"")
    with db.batches() as batches:
        next(iter(batches), None)


def _checkpoint(world: World) -> None:
    world.turn += 1
    world.base.checkpoint(world.path / f"copy{world.turn}")


def _ingest(world: World) -> None:
    world.turn += 1
    name = world.path / f"{world.turn}.ldb"
    with lsmkv.TableWriter(name) as table:
        table.add(b"i%06d" % world.turn, b"")
    world.base.ingest([name])


def _delete_range(world: World) -> None:
    world.base.put(b"r", b"")
    world.base.flush()
    world.base.delete_range(b"r", b"s")


def _maintain(world: World) -> None:
    db = world.base
    db.put(b"m", bytes(100))
    db.flush()
    db.compact_range()
    db.verify()


def _destroy(world: World) -> None:
    world.turn += 1
    place = world.path / f"destroyed{world.turn}"
    with lsmkv.DB(place, create_if_missing=True) as db:
        db.put(b"a", b"")
    lsmkv.plan_repair(place)
    lsmkv.repair_db(place)
    lsmkv.destroy_db(place)


def _serve(world: World) -> None:
    with lsmkv.testing.serving(world.store):
        pass


def _serve_in_loop(world: World) -> None:
    async def main() -> None:
        async with Server(world.store, port=0):
            pass

    asyncio.run(main())


def _build_set(world: World) -> None:
    small_sets.build(world.path / "set", {b"%04d" % n: bytes(100) for n in range(200)})


def _open_set(world: World) -> None:
    world.handle = lsmkv.shards.open(world.path / "set")
    world.handle.get(b"0001")
    list(world.handle.iterator())
    world.handle.close()


def _aio_open_set(world: World) -> None:
    async def main() -> None:
        async with lsmkv.aio.open_shards(world.path / "set") as shards:
            await shards.get(b"0001")

    asyncio.run(main())


def _aio(world: World) -> None:
    async def main() -> None:
        async with lsmkv.aio.DB(world.store) as db:
            async with db.snapshot() as snapshot:
                await snapshot.get(b"000001")
            async for _ in db.iterator():
                break

    asyncio.run(main())


def _aio_join(world: World) -> None:
    async def main() -> None:
        async with lsmkv.aio.SharedDB(world.store, may_own=False) as db:
            await db.get(b"000001")

    asyncio.run(main())


def _aio_cache(world: World) -> None:
    async def main() -> None:
        async with lsmkv.aio.Cache(world.path / "cache") as cache:
            await cache.set("a", 1)

    asyncio.run(main())


STORMS = [
    Storm("open", _fill, _open(), _can_be_opened),
    Storm("open inline", _fill, _open(background="inline"), _can_be_opened),
    Storm("open read-only", _fill, _open(read_only=True), _can_be_opened),
    Storm("create", _nothing, _create),
    Storm("close", _fill, _close, _can_be_opened, prepare=_begin_work),
    Storm("close an owner", _fill, _close, _can_be_opened, prepare=_begin_owning),
    Storm("close a member", _own_elsewhere, _close, _end, prepare=_begin_joining),
    Storm("mapping", _nothing, _open_mapping),
    Storm("own", _fill, _share, _can_be_opened),
    Storm("join", _own_elsewhere, _join, _end),
    Storm("start an owner", _fill, _start_owner),
    Storm("cache", _nothing, _cache),
    Storm("read", _open_base, _read, _end),
    Storm("read as a member", _join_base, _read, _end),
    Storm("checkpoint", _open_base, _checkpoint, _end),
    Storm("ingest", _open_base, _ingest, _end),
    Storm("delete a range", _open_base, _delete_range, _end),
    Storm("maintain", _open_base, _maintain, _end),
    Storm("destroy", _nothing, _destroy),
    Storm("serve", _nothing, _serve, _can_be_opened),
    Storm("serve in a loop", _nothing, _serve_in_loop, _can_be_opened, in_loop=True),
    Storm("open a shard set", _build_set, _open_set),
    Storm("aio open", _fill, _aio, _can_be_opened, in_loop=True),
    Storm("aio join", _own_elsewhere, _aio_join, _end, in_loop=True),
    Storm("aio cache", _nothing, _aio_cache, in_loop=True),
    Storm("aio open a shard set", _build_set, _aio_open_set, in_loop=True),
]
