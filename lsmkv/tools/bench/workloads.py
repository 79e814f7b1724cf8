"""db_bench's workloads, by its names.

A workload does not depend on the order in which they run: ``fill*`` and ``compact`` make a store,
the others use the one of ``fillrandom`` (or make it, untimed), and those that change it work on a
copy.  For reads the store is reopened, background work has ended, and all their keys were read once
before the clock starts; or they have their own store, in the shape that the settings name.
"""

from __future__ import annotations

import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from lsmkv.tools.bench import loops
from lsmkv.tools.bench.data import Data
from lsmkv.tools.bench.store import Store
from lsmkv.tools.bench.workbench import SAMPLE, Bench, Outcome

BATCH = 1000
OPENINGS = 11
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

        clocked = bench.clock(store, lambda: loop)
        return clocked.outcome(num, *bench.sample(store, range(num), 0))


def readrandom(bench: Bench) -> Outcome:
    """Get all keys in random order."""
    keys = bench.data.keys(bench.data.shuffled("readrandom"))
    with bench.loaded() as store:
        return bench.look_up(store, keys, len(keys))


def readmissing(bench: Bench) -> Outcome:
    """Get keys that are not there, between those that are."""
    keys = bench.data.absent_keys(bench.data.shuffled("readmissing"))
    with bench.loaded() as store:
        return bench.look_up(store, keys, 0)


def readhot(bench: Bench) -> Outcome:
    """Get keys of the first hundredth, at random."""
    num = bench.settings.num
    keys = bench.data.keys(bench.data.drawn("readhot", num, -(-num // _HOT_PART)))
    with bench.loaded() as store:
        return bench.look_up(store, keys, num)


def readseq(bench: Bench) -> Outcome:
    """Go over all entries in the order of their keys."""
    return _scan(bench, reverse=False)


def readreverse(bench: Bench) -> Outcome:
    """Go over all entries against the order of their keys."""
    return _scan(bench, reverse=True)


def _scan(bench: Bench, reverse: bool) -> Outcome:
    num, size = bench.settings.num, bench.settings.value_size
    with bench.loaded() as store:
        clocked = bench.clock(store, lambda: loops.scan(store.scan(reverse)))
        entries, length, in_order, last = 0, 0, 0, None
        for key, value in store.scan(reverse):
            entries += 1
            length += len(value)
            in_order += last is None or (key < last) is reverse
            last = key
        levels = store.levels()
    seen = {"entries": entries, "bytes": length, "in_order": in_order}
    expected = {"entries": num, "bytes": num * size, "in_order": num}
    return clocked.outcome(num, seen, expected, levels=levels)


def seekrandom(bench: Bench) -> Outcome:
    """Position an iterator at a random key: a tenth as many as there are entries."""

    def ready(store: Store, keys: Sequence[bytes], record: loops.Record | None) -> loops.Loop:
        return loops.lookups(store.seeker(), keys, record)

    return _seek(bench, "seekrandom", ready, lambda index: 1)


def seek10(bench: Bench) -> Outcome:
    """Read ten entries from a random key on: a tenth as often as there are entries."""
    num = bench.settings.num

    def ready(store: Store, keys: Sequence[bytes], record: loops.Record | None) -> loops.Loop:
        return loops.ranges(store.range_reader(10), keys, record)

    return _seek(bench, "seek10", ready, lambda index: min(10, num - index))


def _seek(
    bench: Bench,
    name: str,
    make: Callable[[Store, Sequence[bytes], loops.Record | None], loops.Loop],
    expected_of: Callable[[int], int],
) -> Outcome:
    indices = bench.data.drawn(name, max(1, bench.settings.num // _SEEK_PART))
    keys = bench.data.keys(indices)
    expected = sum(map(expected_of, indices))
    with bench.loaded() as store:
        warm = make(store, keys, None)()
        clocked = bench.clock_shares(store, keys, lambda share, record: make(store, share, record))
        levels = store.levels()
    seen = {"found": warm, "found_again": clocked.found}
    return clocked.outcome(len(keys), seen, dict.fromkeys(seen, expected), levels=levels)


def deleterandom(bench: Bench) -> Outcome:
    """Delete all keys in random order."""
    keys = bench.data.keys(bench.data.shuffled("deleterandom"))
    with bench.copied() as store:
        clocked = bench.clock_shares(
            store, keys, lambda share, record: loops.calls(store.deleter(), share, record)
        )
        get = store.getter(False)
        left = sum(get(key) is not None for key in keys[:SAMPLE])
    return clocked.outcome(len(keys), {"left": left}, {"left": 0})


def scandeleted(bench: Bench) -> Outcome:
    """Go over what is left of all entries, a hundredth, after the others were deleted.

    Values and deletions are in two tables, one above the other; memtables are large, and flushed
    explicitly.  An operation is an entry, deleted or not.
    """
    num, data = bench.settings.num, bench.data
    with bench.fresh(replace(bench.settings, write_buffer_size=_GIB)) as store:
        bench.put_all(store, data.shuffled("scandeleted"))
        store.flush()
        delete = store.deleter()
        for index in range(num):
            if index % _LEFT_PART:
                delete(data.key(index))
        store.flush()
        levels = store.levels()
        clocked = bench.clock(store, lambda: loops.scan(store.scan(False)))
        found = [key for key, _ in store.scan(False)]
    left = data.keys(range(0, num, _LEFT_PART))
    seen = {"left": len(found), "right": int(found == left)}
    return clocked.outcome(num, seen, {"left": len(left), "right": 1}, levels=levels)


def queue(bench: Bench) -> Outcome:
    """Take the first entry and delete it: a twentieth as often as there are entries, 10,000 times
    at most.

    Each step is a new iterator, which finds its entry after all those that were deleted before.
    They are in the memtable, as recent deletions are.
    """
    data = bench.data
    steps = max(1, min(bench.settings.num // _QUEUE_PART, _LONGEST_QUEUE))
    with bench.fresh(replace(bench.settings, write_buffer_size=_GIB)) as store:
        bench.put_all(store, range(2 * steps))
        clocked = bench.clock(store, lambda: loops.takes(store.scan, store.deleter(), steps))
        found = [key for key, _ in store.scan(False)]
    seen = {"left": len(found), "right": int(found == data.keys(range(steps, 2 * steps)))}
    return clocked.outcome(steps, seen, {"left": steps, "right": 1})


def readwhilewriting(bench: Bench) -> Outcome:
    """Get random keys while one more thread overwrites others: a tenth as many as entries."""
    data = bench.data
    count = max(1, bench.settings.num // _SEEK_PART)
    keys = data.keys(data.drawn("readwhilewriting", count))
    with bench.copied() as store:
        writer = _Writer(store, data)
        clocked = bench.clock_shares(
            store,
            keys,
            lambda share, record: loops.lookups(store.getter(True), share, record),
            beside=writer,
        )
    return clocked.outcome(count, {"hits": clocked.found}, {"hits": count}, writes=writer.written)


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
        parts = [(order, 0), *((order[at::_OVERWRITES], 1) for at in range(_OVERWRITES))]
        for part, generation in parts:
            bench.put_all(store, part, generation)
            store.flush()
        levels = store.levels()

        def loop() -> int:
            store.compact()
            return 0

        clocked = bench.clock(store, lambda: loop)
        seen, expected = bench.sample(store, order, 1)
        after = store.levels()
    seen["levels_changed"], expected["levels_changed"] = int(after != levels), 1
    return clocked.outcome(2 * len(order), seen, expected, levels=levels, levels_after=after)


def open_(bench: Bench) -> Outcome:
    """Open a closed store whose log is empty: the median of eleven."""
    with bench.copy() as path:
        with bench.opened(path) as store:
            store.flush()
        opened = [_open(bench, path, bench.data.num - 1, 0) for _ in range(OPENINGS)]
    return _median(opened)


def openlog(bench: Bench) -> Outcome:
    """Open a closed store that has 1,000 new values in its log: the median of eleven."""
    written = range(min(bench.data.num, _LOGGED))
    with bench.copy() as path:
        with bench.opened(path) as store:
            store.flush()
            bench.put_all(store, written, 1)
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
        bench.put_all(store, written)
        shutil.copytree(path, killed)
    outcome = _open_copies(bench, killed, written[-1], 0)
    shutil.rmtree(path)
    shutil.rmtree(killed)
    return outcome


def _open_copies(bench: Bench, path: str, last: int, generation: int) -> Outcome:
    """Open eleven copies of a store, since opening one changes it; ``last`` is an entry's index.

    The copies are durable before the clock starts: no engine's first sync writes them out.
    """
    opened = []
    for _ in range(OPENINGS):
        copied = bench.new_path()
        shutil.copytree(path, copied)
        _sync_all(copied)
        opened.append(_open(bench, copied, last, generation))
        shutil.rmtree(copied)
    return _median(opened)


def _open(bench: Bench, path: str, last: int, generation: int) -> tuple[float, bool]:
    """Open a store: the seconds, and whether it then has its last entry."""
    data = bench.data
    started = time.perf_counter()
    store = bench.engine.open(path, bench.settings)
    seconds = time.perf_counter() - started
    try:
        return seconds, store.getter(False)(data.key(last)) == data.value(last, generation)
    finally:
        store.close()


def _median(opened: list[tuple[float, bool]]) -> Outcome:
    hits = sum(hit for _, hit in opened)
    median = statistics.median([seconds for seconds, _ in opened])
    return Outcome(1, median, {"hits": hits}, {"hits": OPENINGS})


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


WORKLOADS: dict[str, Callable[[Bench], Outcome]] = {
    workload.__name__.removesuffix("_"): workload
    for workload in (
        *(fillseq, fillbatch, fillrandom, overwrite, fillsync, readrandom, readmissing, readhot),
        *(readseq, readreverse, seekrandom, seek10, deleterandom, scandeleted, queue),
        *(readwhilewriting, compact, open_, openlog, openkilled),
    )
}
"""The workloads by their names."""

THREADED = frozenset(
    {
        *("fillseq", "fillrandom", "overwrite", "fillsync", "readrandom", "readmissing"),
        *("readhot", "seekrandom", "seek10", "deleterandom", "readwhilewriting"),
    }
)
"""The workloads whose keys ``--threads`` divides among threads."""
