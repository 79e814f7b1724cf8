"""Parts shared by workloads and studies: one engine, its stores, and the timed loops."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from lsmkv.tools.bench import loops
from lsmkv.tools.bench.data import Data
from lsmkv.tools.bench.measuring import Histogram
from lsmkv.tools.bench.settings import MIB, Settings, Shape
from lsmkv.tools.bench.store import Engine, Store

SAMPLE = 1000

Seen = dict[str, int]
T = TypeVar("T")


@dataclass
class Outcome:
    """One workload, run once."""

    ops: int
    seconds: float
    seen: Seen
    """The results: hits, entries, bytes of values."""
    expected: Seen
    """The right results."""
    latencies: array[int] | None = None
    """Nanoseconds of each operation, with ``--histogram``."""
    counters: dict[str, int] = field(default_factory=dict)
    """The changes of the engine's counters, if it has any."""
    more: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        plain: dict[str, Any] = {"ops": self.ops, "seconds": self.seconds, "seen": self.seen}
        if self.latencies is not None and len(self.latencies) > 0:
            plain["histogram"] = Histogram.of(self.latencies).to_dict()
        return plain | {"counters": self.counters} | self.more


class Clocked(NamedTuple):
    """Measurements of some loops."""

    seconds: float
    found: int
    """The sum of what the loops counted."""
    counters: dict[str, int]
    latencies: array[int] | None = None

    def outcome(self, ops: int, seen: Seen, expected: Seen, **more: Any) -> Outcome:
        """The outcome of the workload of these loops."""
        return Outcome(ops, self.seconds, seen, expected, self.latencies, self.counters, more)


class Bench:
    """One engine, one directory, the settings and the data."""

    def __init__(self, engine: Engine, directory: str, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.data = Data(settings)
        self.directory = directory
        self._loaded: str | None = None
        self._shaped: str | None = None
        self._stores = 0

    # Stores

    @contextlib.contextmanager
    def fresh(self, settings: Settings | None = None, sync: bool = False) -> Iterator[Store]:
        """An empty store, removed in the end."""
        path = self.new_path()
        with self.opened(path, settings, sync) as store:
            yield store
        shutil.rmtree(path)

    @contextlib.contextmanager
    def opened(
        self, path: str, settings: Settings | None = None, sync: bool = False
    ) -> Iterator[Store]:
        """The store in ``path``."""
        store = self.engine.open(path, settings or self.settings, sync)
        try:
            yield store
        finally:
            store.close()

    @contextlib.contextmanager
    def loaded(self) -> Iterator[Store]:
        """A store of all entries, for reading, in the shape that the settings name.

        All but one are made of flushes and of ``compact_range``, not left to the background: where
        that stops is a matter of time, and twice as many tables to merge take twice the time.
        """
        settled = self.settings.shape == Shape.SETTLED
        path = self._require_loaded() if settled else self._require_shaped()
        if self.settings.shape != Shape.WRITTEN:
            with self.opened(path) as store:
                yield store
            return
        with self.copy(path) as copied, self.opened(copied, self._by_hand()) as store:
            self.put_all(store, self._parts()[2])
            yield store

    def _require_shaped(self) -> str:
        """The path of the store in this shape, without what its memtable will have."""
        if self._shaped is None:
            path = self.new_path()
            below, *newer = self._parts()
            with self.opened(path, self._by_hand()) as store:
                has_levels = bool(store.levels())
                self.put_all(store, below)
                if has_levels:
                    store.flush()
                    store.compact()
                for part in newer[:1] if self.settings.shape == Shape.WRITTEN else newer:
                    self.put_all(store, part)
                    store.flush()
                if has_levels and self.settings.shape == Shape.COMPACTED:
                    store.compact()
            self._shaped = path
        return self._shaped

    def _parts(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """Half of all entries, a quarter, and the last quarter."""
        order = self.data.shuffled("fillrandom")
        half, quarter = len(order) // 2, len(order) // 4
        return order[:half], order[half : half + quarter], order[half + quarter :]

    def _by_hand(self) -> Settings:
        """The settings, with memtables so large that they are flushed by hand alone."""
        return replace(self.settings, write_buffer_size=1024 * MIB)

    @contextlib.contextmanager
    def copied(self) -> Iterator[Store]:
        """A copy of the store of ``fillrandom``, for writing."""
        with self.copy() as path, self.opened(path) as store:
            yield store

    @contextlib.contextmanager
    def copy(self, path: str | None = None) -> Iterator[str]:
        """The path of a copy of a closed store: of that in ``path``, or of that of
        ``fillrandom``."""
        copied = self.new_path()
        shutil.copytree(self._require_loaded() if path is None else path, copied)
        yield copied
        shutil.rmtree(copied)

    def fill_loaded(self) -> Outcome:
        """Make the store of ``fillrandom``: all entries in random order."""
        path = self.new_path()
        with self.opened(path) as store:
            outcome = self.fill(store, self.data.shuffled("fillrandom"), settle=True)
        self._loaded = path
        return outcome

    def _require_loaded(self) -> str:
        if self._loaded is None:
            self.fill_loaded()
        assert self._loaded is not None
        return self._loaded

    def new_path(self) -> str:
        """The path of a store that is still to be made."""
        self._stores += 1
        return os.path.join(self.directory, f"store-{self._stores}")

    # Loops

    def clock(self, store: Store, ready: loops.Ready) -> Clocked:
        """Run one loop, in this thread."""
        return _clock(store, [ready])

    def clock_shares(
        self,
        store: Store,
        items: Sequence[T],
        make: Callable[[Sequence[T], loops.Record | None], loops.Loop],
        beside: AbstractContextManager[object] | None = None,
    ) -> Clocked:
        """Run loops over shares of these items, in as many threads as the settings say.

        What ``beside`` does from its entrance to its exit is part of the counters' changes.
        ``make`` is called in the thread, before the clock starts.  With ``--histogram`` it gets
        what records the nanoseconds of an operation: an append, which holds the interpreter's lock.
        """
        threads = min(self.settings.threads, len(items))
        latencies = array("q") if self.settings.histogram else None
        record = None if latencies is None else latencies.append

        def ready(share: Sequence[T]) -> loops.Ready:
            return lambda: make(share, record)

        return _clock(
            store, [ready(items[at::threads]) for at in range(threads)], latencies, beside
        )

    def put_all(self, store: Store, indices: Sequence[int], generation: int = 0) -> None:
        """Put these entries, unclocked."""
        put = store.putter()
        for index in indices:
            put(self.data.key(index), self.data.value(index, generation))

    def fill(
        self, store: Store, order: Sequence[int], generation: int = 0, settle: bool = False
    ) -> Outcome:
        """Put these entries, in as many threads as the settings say, and check that they are there.

        The clock stops at the last put.  With ``settle`` it waits for the background work, and also
        records its time.
        """

        def make(share: Sequence[int], record: loops.Record | None) -> loops.Loop:
            keys, values = self.data.keys(share), self.data.values_of(share, generation)
            return loops.puts(store.putter(), keys, values, record)

        clocked = self.clock_shares(store, order, make)
        more: dict[str, Any] = {}
        if settle:
            started = time.perf_counter()
            store.settle()
            settling = time.perf_counter() - started
            more = {"settle_seconds": settling, "levels": store.levels()}
        return clocked.outcome(len(order), *self.sample(store, order, generation), **more)

    def sample(self, store: Store, order: Sequence[int], generation: int) -> tuple[Seen, Seen]:
        """Look up some of the entries: how many are right, and how many should be."""
        get = store.getter(False)
        some = order[:: max(1, len(order) // SAMPLE)]
        right = sum(
            get(self.data.key(index)) == self.data.value(index, generation) for index in some
        )
        return {"right": right}, {"right": len(some)}

    def look_up(self, store: Store, keys: list[bytes], hits: int) -> Outcome:
        """Get these keys; ``hits`` of them are there.  The first pass checks, the second counts."""
        get = store.getter(False)
        found = [value for key in keys if (value := get(key)) is not None]
        seen = {"hits": len(found), "bytes": sum(map(len, found))}
        del found
        clocked = self.clock_shares(
            store, keys, lambda share, record: loops.lookups(store.getter(False), share, record)
        )
        seen["hits_again"] = clocked.found
        expected = {"hits": hits, "bytes": hits * self.settings.value_size, "hits_again": hits}
        return clocked.outcome(len(keys), seen, expected, levels=store.levels())


def _clock(
    store: Store,
    readies: Sequence[loops.Ready],
    latencies: array[int] | None = None,
    beside: AbstractContextManager[object] | None = None,
) -> Clocked:
    before = store.counters()
    with beside or contextlib.nullcontext():
        seconds, found = loops.run(readies)
    changes = {name: value - before[name] for name, value in store.counters().items()}
    return Clocked(seconds, found, changes, latencies)
