"""db_bench's workloads, by its names.

A workload does not depend on the order in which they run: ``fill*`` and ``compact`` make a store,
the others use the one of ``fillrandom`` (or make it, untimed), and those that change it work on a
copy.  For reads the store is reopened, background work has ended, and all their keys were read once
before the clock starts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lsmkv.tools.bench import loops
from lsmkv.tools.bench.data import Data
from lsmkv.tools.bench.engines.base import Engine, Store
from lsmkv.tools.bench.measuring import Histogram
from lsmkv.tools.bench.settings import Settings

BATCH = 1000
OPENINGS = 11
_SAMPLE = 1000
_HOT_PART = 100
_SYNC_PART = 100
_SEEK_PART = 10
_OVERWRITES = 3
_LEFT_PART = 100
_QUEUE_PART = 20
_LONGEST_QUEUE = 10_000
_LOGGED = 1000
_KILLED_LOG = 4 * 1024**2
_GIB = 1024**3

Seen = dict[str, int]


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


class Bench:
    """One engine, one directory, the settings and the data."""

    def __init__(self, engine: Engine, directory: str, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.data = Data(settings)
        self.directory = directory
        self._loaded: str | None = None
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
        """The store of ``fillrandom``, for reading."""
        with self.opened(self._require_loaded()) as store:
            yield store

    @contextlib.contextmanager
    def copied(self) -> Iterator[Store]:
        """A copy of the store of ``fillrandom``, for writing."""
        with self.copy() as path, self.opened(path) as store:
            yield store

    @contextlib.contextmanager
    def copy(self) -> Iterator[str]:
        """The path of a closed copy of the store of ``fillrandom``."""
        path = self.new_path()
        shutil.copytree(self._require_loaded(), path)
        yield path
        shutil.rmtree(path)

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

    def split(self, items: Sequence[int]) -> list[Sequence[int]]:
        """A share for each thread; fewer if there are not enough."""
        threads = min(self.settings.threads, len(items))
        return [items[at::threads] for at in range(threads)]

    def recorder(self) -> array[int] | None:
        """An array for latencies; its append holds the interpreter's lock."""
        return array("q") if self.settings.histogram else None

    def fill(
        self, store: Store, order: Sequence[int], generation: int = 0, settle: bool = False
    ) -> Outcome:
        """Put these entries, in as many threads as the settings say, and check that they are there.

        The clock stops at the last put.  With ``settle`` it waits for the background work, whose
        time is recorded too.
        """
        record = self.recorder()

        def ready(share: Sequence[int]) -> loops.Ready:
            keys = self.data.keys(list(share))
            values = self.data.values_of(list(share), generation)
            return lambda: loops.puts(store.putter(), keys, values, _append(record))

        before = store.counters()
        seconds, _ = loops.run([ready(share) for share in self.split(order)])
        outcome = Outcome(len(order), seconds, {}, {}, record, _changes(store, before))
        if settle:
            started = time.perf_counter()
            store.settle()
            settling = time.perf_counter() - started
            outcome.more = {"settle_seconds": settling, "levels": store.levels()}
        outcome.seen, outcome.expected = self.sample(store, order, generation)
        return outcome

    def sample(self, store: Store, order: Sequence[int], generation: int) -> tuple[Seen, Seen]:
        """Look up some of the entries: how many are right, and how many should be."""
        get = store.getter(False)
        some = order[:: max(1, len(order) // _SAMPLE)]
        right = sum(
            get(self.data.key(index)) == self.data.value(index, generation) for index in some
        )
        return {"right": right}, {"right": len(some)}

    def look_up(self, store: Store, indices: list[int], keys: list[bytes], hits: int) -> Outcome:
        """Get these keys; ``hits`` of them are there.  The first pass checks, the second counts."""
        get = store.getter(False)
        found = [value for key in keys if (value := get(key)) is not None]
        size = self.settings.value_size
        expected = {"hits": hits, "bytes": hits * size}
        seen = {"hits": len(found), "bytes": sum(map(len, found))}
        del found
        record = self.recorder()

        def ready(share: Sequence[int]) -> loops.Ready:
            mine = [keys[at] for at in share]
            return lambda: loops.lookups(store.getter(False), mine, _append(record))

        before = store.counters()
        seconds, again = loops.run([ready(share) for share in self.split(range(len(keys)))])
        expected["hits_again"], seen["hits_again"] = hits, again
        return Outcome(len(keys), seconds, seen, expected, record, _changes(store, before))


def fillseq(bench: Bench) -> Outcome:
    """Put all entries in the order of their keys."""
    with bench.fresh() as store:
        return bench.fill(store, range(bench.settings.num))


def fillrandom(bench: Bench) -> Outcome:
    """Put all entries in random order."""
    return bench.fill_loaded()


def overwrite(bench: Bench) -> Outcome:
    """Put new values for all keys, in another random order."""
    with bench.copied() as store:
        return bench.fill(store, bench.data.shuffled("overwrite"), generation=1)


def fillsync(bench: Bench) -> Outcome:
    """Put a hundredth of the entries, in random order, each durable before the next."""
    order = bench.data.shuffled("fillsync")
    with bench.fresh(sync=True) as store:
        return bench.fill(store, order[: max(1, len(order) // _SYNC_PART)])


def fillbatch(bench: Bench) -> Outcome:
    """Put all entries in the order of their keys, 1,000 a batch."""
    num, data = bench.settings.num, bench.data
    pieces = [range(at, min(num, at + BATCH)) for at in range(0, num, BATCH)]
    batches = [list(zip(data.keys(piece), data.values_of(piece), strict=True)) for piece in pieces]
    with bench.fresh() as store:

        def loop() -> int:
            write = store.batch_writer()
            for batch in batches:
                write(batch)
            return num

        before = store.counters()
        seconds, _ = loops.run([lambda: loop])
        seen, expected = bench.sample(store, range(num), 0)
        return Outcome(num, seconds, seen, expected, None, _changes(store, before))


def readrandom(bench: Bench) -> Outcome:
    """Get all keys in random order."""
    indices = bench.data.shuffled("readrandom")
    with bench.loaded() as store:
        return bench.look_up(store, indices, bench.data.keys(indices), len(indices))


def readmissing(bench: Bench) -> Outcome:
    """Get keys that are not there, between those that are."""
    indices = bench.data.shuffled("readmissing")
    with bench.loaded() as store:
        return bench.look_up(store, indices, bench.data.absent_keys(indices), 0)


def readhot(bench: Bench) -> Outcome:
    """Get keys of the first hundredth, at random."""
    num = bench.settings.num
    indices = bench.data.drawn("readhot", num, -(-num // _HOT_PART))
    with bench.loaded() as store:
        return bench.look_up(store, indices, bench.data.keys(indices), num)


def readseq(bench: Bench) -> Outcome:
    """Go over all entries in the order of their keys."""
    return _scan(bench, reverse=False)


def readreverse(bench: Bench) -> Outcome:
    """Go over all entries against the order of their keys."""
    return _scan(bench, reverse=True)


def _scan(bench: Bench, reverse: bool) -> Outcome:
    num, size = bench.settings.num, bench.settings.value_size
    with bench.loaded() as store:
        before = store.counters()
        seconds, _ = loops.run([lambda: loops.scan(store.scan(reverse))])
        changes = _changes(store, before)
        entries, length, in_order, last = 0, 0, 0, None
        for key, value in store.scan(reverse):
            entries += 1
            length += len(value)
            in_order += last is None or (key < last) is reverse
            last = key
    seen = {"entries": entries, "bytes": length, "in_order": in_order}
    expected = {"entries": num, "bytes": num * size, "in_order": num}
    return Outcome(num, seconds, seen, expected, None, changes)


def seekrandom(bench: Bench) -> Outcome:
    """Position an iterator at a random key: a tenth as many as there are entries."""

    def ready(store: Store, keys: list[bytes], record: loops.Record | None) -> loops.Loop:
        return loops.lookups(store.seeker(), keys, record)

    return _seek(bench, "seekrandom", ready, lambda index: 1)


def seek10(bench: Bench) -> Outcome:
    """Read ten entries from a random key on: a tenth as often as there are entries."""
    num = bench.settings.num

    def ready(store: Store, keys: list[bytes], record: loops.Record | None) -> loops.Loop:
        return loops.ranges(store.range_reader(10), keys, record)

    return _seek(bench, "seek10", ready, lambda index: min(10, num - index))


def _seek(
    bench: Bench,
    name: str,
    make: Callable[[Store, list[bytes], loops.Record | None], loops.Loop],
    expected_of: Callable[[int], int],
) -> Outcome:
    indices = bench.data.drawn(name, max(1, bench.settings.num // _SEEK_PART))
    expected = sum(map(expected_of, indices))
    record = bench.recorder()
    with bench.loaded() as store:

        def ready(share: Sequence[int]) -> loops.Ready:
            keys = bench.data.keys(list(share))
            return lambda: make(store, keys, _append(record))

        warm = make(store, bench.data.keys(indices), None)()
        before = store.counters()
        seconds, found = loops.run([ready(share) for share in bench.split(indices)])
        changes = _changes(store, before)
    seen = {"found": warm, "found_again": found}
    wanted = {"found": expected, "found_again": expected}
    return Outcome(len(indices), seconds, seen, wanted, record, changes)


def deleterandom(bench: Bench) -> Outcome:
    """Delete all keys in random order."""
    order = bench.data.shuffled("deleterandom")
    record = bench.recorder()
    with bench.copied() as store:

        def ready(share: Sequence[int]) -> loops.Ready:
            keys = bench.data.keys(list(share))
            return lambda: loops.calls(store.deleter(), keys, _append(record))

        before = store.counters()
        seconds, _ = loops.run([ready(share) for share in bench.split(order)])
        changes = _changes(store, before)
        get = store.getter(False)
        left = sum(get(bench.data.key(index)) is not None for index in order[:_SAMPLE])
    return Outcome(len(order), seconds, {"left": left}, {"left": 0}, record, changes)


def scandeleted(bench: Bench) -> Outcome:
    """Go over what is left of all entries, a hundredth, after the others were deleted.

    Values and deletions are in two tables, one above the other; memtables are large, and flushed
    explicitly.  An operation is an entry, deleted or not.
    """
    num, data = bench.settings.num, bench.data
    with bench.fresh(replace(bench.settings, write_buffer_size=_GIB)) as store:
        put, delete = store.putter(), store.deleter()
        for index in bench.data.shuffled("scandeleted"):
            put(data.key(index), data.value(index, 0))
        store.flush()
        for index in range(num):
            if index % _LEFT_PART:
                delete(data.key(index))
        store.flush()
        levels = store.levels()
        before = store.counters()
        seconds, _ = loops.run([lambda: loops.scan(store.scan(False))])
        changes = _changes(store, before)
        found = [key for key, _ in store.scan(False)]
    left = data.keys(range(0, num, _LEFT_PART))
    outcome = Outcome(num, seconds, {"left": len(found)}, {"left": len(left)}, None, changes)
    outcome.seen["right"], outcome.expected["right"] = int(found == left), 1
    outcome.more = {"levels": levels}
    return outcome


def queue(bench: Bench) -> Outcome:
    """Take the first entry and delete it: a twentieth as often as there are entries, 10,000 times
    at most.

    Each step is a new iterator, which finds its entry after all those that were deleted before.
    They are in the memtable, as recent deletions are.
    """
    data = bench.data
    steps = max(1, min(bench.settings.num // _QUEUE_PART, _LONGEST_QUEUE))
    with bench.fresh(replace(bench.settings, write_buffer_size=_GIB)) as store:
        put = store.putter()
        for index in range(2 * steps):
            put(data.key(index), data.value(index, 0))
        before = store.counters()
        seconds, _ = loops.run([lambda: loops.takes(store.scan, store.deleter(), steps)])
        changes = _changes(store, before)
        found = [key for key, _ in store.scan(False)]
    seen = {"left": len(found), "right": int(found == data.keys(range(steps, 2 * steps)))}
    return Outcome(steps, seconds, seen, {"left": steps, "right": 1}, None, changes)


def readwhilewriting(bench: Bench) -> Outcome:
    """Get random keys while one more thread overwrites others: a tenth as many as entries."""
    data = bench.data
    count = max(1, bench.settings.num // _SEEK_PART)
    shares = bench.split(data.drawn("readwhilewriting", count))
    record = bench.recorder()
    with bench.copied() as store:
        writer = _Writer(store, data)

        def ready(share: Sequence[int]) -> loops.Ready:
            keys = data.keys(list(share))
            return lambda: loops.lookups(store.getter(True), keys, _append(record))

        before = store.counters()
        with writer:
            seconds, hits = loops.run([ready(share) for share in shares])
        changes = _changes(store, before)
    outcome = Outcome(count, seconds, {"hits": hits}, {"hits": count}, record, changes)
    outcome.more = {"writes": writer.written}
    return outcome


class _Writer:
    """A thread that overwrites random entries until the block ends."""

    def __init__(self, store: Store, data: Data) -> None:
        self._store = store
        self._data = data
        self._order = data.shuffled("writer")
        self._stop = threading.Event()
        self._started = threading.Event()
        self._worker = threading.Thread(target=self._write, name="writer")
        self._error: BaseException | None = None
        self.written = 0

    def __enter__(self) -> None:
        self._worker.start()
        self._started.wait()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._worker.join()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        try:
            put = self._store.putter()
            while not self._stop.is_set():
                for index in self._order:
                    put(self._data.key(index), self._data.value(index, 1))
                    self.written += 1
                    self._started.set()
                    if self._stop.is_set():
                        return
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()


def compact(bench: Bench) -> Outcome:
    """``compact_range`` of a store whose entries are all there twice; an operation is a version.

    The levels of a store depend on its background work, and a compacted store leaves nothing to do.
    So memtables are large and flushed explicitly: all entries in one table, then their new values
    in three, too few for a compaction to start by itself.  Every engine of LevelDB's kind then has
    the same tables on the same levels, which are recorded.
    """
    order = bench.data.shuffled("compact")
    with bench.fresh(replace(bench.settings, write_buffer_size=_GIB)) as store:
        put = store.putter()
        parts = [(order, 0), *((order[at::_OVERWRITES], 1) for at in range(_OVERWRITES))]
        for part, generation in parts:
            for index in part:
                put(bench.data.key(index), bench.data.value(index, generation))
            store.flush()
        levels = store.levels()
        before = store.counters()

        def loop() -> int:
            store.compact()
            return 0

        seconds, _ = loops.run([lambda: loop])
        changes = _changes(store, before)
        seen, expected = bench.sample(store, order, 1)
        after = store.levels()
    seen["levels_changed"], expected["levels_changed"] = int(after != levels), 1
    outcome = Outcome(2 * len(order), seconds, seen, expected, None, changes)
    outcome.more = {"levels": levels, "levels_after": after}
    return outcome


def open_(bench: Bench) -> Outcome:
    """Open a closed store whose log is empty: the median of eleven."""
    data = bench.data
    last = data.num - 1
    hits, times = 0, []
    with bench.copy() as path:
        with bench.opened(path) as store:
            store.flush()
        for _ in range(OPENINGS):
            started = time.perf_counter()
            store = bench.engine.open(path, bench.settings)
            times.append(time.perf_counter() - started)
            try:
                hits += store.getter(False)(data.key(last)) == data.value(last)
            finally:
                store.close()
    return Outcome(1, statistics.median(times), {"hits": hits}, {"hits": OPENINGS})


def openlog(bench: Bench) -> Outcome:
    """Open a closed store that has 1,000 new values in its log: the median of eleven."""
    data = bench.data
    written = range(min(data.num, _LOGGED))
    with bench.copy() as path:
        with bench.opened(path) as store:
            store.flush()
            _put_all(store, data, written, 1)
        return _open_copies(bench, path, written[-1], 1)


def openkilled(bench: Bench) -> Outcome:
    """Open a store whose process was killed with 4 MiB in its log, or all entries: the median of
    eleven.

    No process is killed: a copy of an open store's directory, made while nothing writes, holds
    what a kill leaves.
    """
    data, settings = bench.data, bench.settings
    written = range(min(data.num, _KILLED_LOG // (len(data.key(0)) + settings.value_size)))
    path, killed = bench.new_path(), bench.new_path()
    with bench.opened(path, replace(settings, write_buffer_size=_GIB)) as store:
        _put_all(store, data, written, 0)
        shutil.copytree(path, killed)
    outcome = _open_copies(bench, killed, written[-1], 0)
    shutil.rmtree(path)
    shutil.rmtree(killed)
    return outcome


def _put_all(store: Store, data: Data, written: range, generation: int) -> None:
    put = store.putter()
    for index in written:
        put(data.key(index), data.value(index, generation))


def _sync_all(directory: str) -> None:
    """Make a directory and its files durable, as far as the system can sync a directory."""
    paths = [os.path.join(directory, name) for name in os.listdir(directory)]
    for path in [*paths, directory, os.path.dirname(directory)]:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue  # a directory, on Windows
        try:
            os.fsync(fd)
        except OSError:
            pass  # of a descriptor for reading, on Windows
        finally:
            os.close(fd)


def _open_copies(bench: Bench, path: str, last: int, generation: int) -> Outcome:
    """Open eleven copies of a store, since opening one changes it; ``last`` is an entry's index.

    The copies are durable before the clock starts: no engine's first sync writes them out.
    """
    data = bench.data
    hits, times = 0, []
    for _ in range(OPENINGS):
        copied = bench.new_path()
        shutil.copytree(path, copied)
        _sync_all(copied)
        started = time.perf_counter()
        store = bench.engine.open(copied, bench.settings)
        times.append(time.perf_counter() - started)
        try:
            hits += store.getter(False)(data.key(last)) == data.value(last, generation)
        finally:
            store.close()
        shutil.rmtree(copied)
    return Outcome(1, statistics.median(times), {"hits": hits}, {"hits": OPENINGS})


WORKLOADS: dict[str, Callable[[Bench], Outcome]] = {
    "fillseq": fillseq,
    "fillbatch": fillbatch,
    "fillrandom": fillrandom,
    "overwrite": overwrite,
    "fillsync": fillsync,
    "readrandom": readrandom,
    "readmissing": readmissing,
    "readhot": readhot,
    "readseq": readseq,
    "readreverse": readreverse,
    "seekrandom": seekrandom,
    "seek10": seek10,
    "deleterandom": deleterandom,
    "scandeleted": scandeleted,
    "queue": queue,
    "readwhilewriting": readwhilewriting,
    "compact": compact,
    "open": open_,
    "openlog": openlog,
    "openkilled": openkilled,
}

THREADED = frozenset(
    {
        *("fillseq", "fillrandom", "overwrite", "fillsync", "readrandom", "readmissing"),
        *("readhot", "seekrandom", "seek10", "deleterandom", "readwhilewriting"),
    }
)
"""The workloads whose keys ``--threads`` divides among threads."""


def _append(record: array[int] | None) -> loops.Record | None:
    return None if record is None else record.append


def _changes(store: Store, before: dict[str, int]) -> dict[str, int]:
    return {name: value - before[name] for name, value in store.counters().items()}
