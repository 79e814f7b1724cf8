"""What each public class is: a value, a handle, or an error; interpreted and compiled alike.

Values are equal if their content is, as their copies and pickles are; handles are copied and
pickled, or say why not.  ``SAME`` and ``REFUSED`` have one object of each public class at least; a
class that neither has fails the test, unless its objects are made by users, or it is a reader or a
tuple of ``lsmkv.files``.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import is_dataclass
from functools import cached_property
from importlib.util import find_spec
from multiprocessing import get_context
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_origin

import pytest
from faces import FACES

import lsmkv
import lsmkv.aio
import lsmkv.bulk
import lsmkv.indexeddb
import lsmkv.mapping
import lsmkv.owner
import lsmkv.plyvel
import lsmkv.repair
import lsmkv.shards
import lsmkv.testing
from lsmkv.cache import codecs, recipes
from lsmkv.engine.options import make_options
from lsmkv.errors import Error
from lsmkv.testing.scheduler import Scheduler
from lsmkv.testing.strategies import AsForced

MODULES = {
    *(face.removeprefix("lsmkv") for face in FACES),
    *(".cache.codecs", ".cache.recipes", ".django", ".server"),
}
NEEDED = {".django": "django", ".plot": "matplotlib", ".server": "hiredis"}
MADE_BY_USERS = {
    "Codec",
    *("Comparator", "Env", "FilterPolicy", "HashedFilterPolicy", "PrefixExtractor"),
    *("Directory", "FileLock", "Folder", "Order", "RandomAccessFile", "Readable", "WritableFile"),
    *("OptionArguments", "TableArguments"),
}
"""Protocols, base classes and typed dictionaries: their objects are the user's."""
READERS = {
    *("Batch", "Block", "Current", "Log", "Manifest", "StoreFiles", "Table", "VersionBuilder"),
}
"""Handles of ``lsmkv.files``: each reads bytes or a file that its user gives it."""
TUPLES_ALONE = {".files", ".filter_lab", ".owner", ".repair"}
"""Where a named tuple or a dataclass needs no object here: it only has fields that are values."""
COPIED_HANDLES = {
    *("Cache", "DB", "KeyValueMapping", "LsmkvCache", "PrefixedDB", "SharedDB", "Shards"),
    *("Averager", "BoundedSemaphore", "Deque", "Index", "Lock", "RLock", "WriteBatch"),
}
"""Handles of which a copy leads to the same, or begins with the same content."""
WITHOUT_HASH = {"CommittedBatch", "Histogram", "Moved", "Problem"}
"""Values that are changed, or that have a list or a dictionary among their fields."""


class Place(ExitStack):
    """A store open for writing, the same read-only, and shards."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.db = self.enter_context(lsmkv.DB(directory / "db", create_if_missing=True))
        for n in range(50):
            self.db.put(b"key%d" % n, b"old")
        self.db.flush()
        self.db.put(b"key7", b"new")
        self.reader = self.enter_context(
            lsmkv.DB(directory / "db", read_only=True, prefix_extractor=lsmkv.FixedPrefix(3))
        )

    @cached_property
    def shared(self) -> lsmkv.SharedDB:
        path = self.directory / "shared"
        db = self.enter_context(lsmkv.SharedDB(path, create_if_missing=True))
        db.put(b"key1", b"old")
        return db

    @cached_property
    def cache(self) -> lsmkv.Cache:
        cache = self.enter_context(lsmkv.Cache(self.directory / "cache"))
        cache["ant"] = 6
        return cache

    @cached_property
    def shards(self) -> lsmkv.shards.Shards:
        lsmkv.bulk.build([(b"ant", b"six")], self.directory / "shards")
        return self.enter_context(lsmkv.shards.open(self.directory / "shards"))

    def adopt(self, made: Any) -> None:
        """Close a store, or that of a part, at the end."""
        parts = lsmkv.PrefixedDB | lsmkv.mapping.KeyValueMapping
        store = made.db if isinstance(made, parts) else made
        if isinstance(getattr(made, "_cache", None), lsmkv.Cache):
            store = made._cache
        if isinstance(store, lsmkv.Cache | lsmkv.DB | lsmkv.shards.Shards):
            self.callback(store.close)

    @cached_property
    def index(self) -> recipes.Index:
        index = recipes.Index(self.directory / "index", b=1, a=2)
        self.callback(index.close)
        return index


Make = Callable[[Place], object]


def _identical(value: Any) -> object:
    return value


def _error(error: Any) -> object:
    return type(error), str(error), error.args, vars(error)


def _pairs(store: Any) -> object:
    return dict(store)


def _violation(place: Place) -> lsmkv.testing.Violation:
    def refuse(state: object) -> None:
        raise AssertionError("never content")

    return lsmkv.testing.explore(_make_directory, refuse, points=1).violations[0]


def _make_directory(env: lsmkv.Env) -> object:
    return env.open_directory("/d", create=True)


def _simulation(place: Place) -> lsmkv.testing.SimulationReport:
    return lsmkv.testing.simulate("def program(run):\n    raise KeyError", seed=0)


def _run(place: Place) -> lsmkv.testing.Run:
    return lsmkv.testing.Run(0, Scheduler(AsForced(), 1), lsmkv.testing.FaultyEnv())


def _report(place: Place) -> lsmkv.testing.Report:
    return lsmkv.testing.explore(_make_directory, lambda state: None, points=1)


def _trace(place: Place) -> lsmkv.TraceReader:
    trace = place.directory / "trace"
    with lsmkv.DB(place.directory / "traced", create_if_missing=True, trace=trace) as db:
        db.put(b"k", b"v")
    return lsmkv.read_trace(trace)


def _locked(place: Place) -> lsmkv.Error:
    with pytest.raises(lsmkv.LockedError) as raised:
        lsmkv.DB(place.directory / "db")
    return raised.value


def _batch(place: Place) -> lsmkv.WriteBatch:
    batch = lsmkv.WriteBatch()
    batch.put(b"k", b"v")
    return batch


def _moved(place: Place) -> object:
    if not find_spec("hiredis"):
        return place.db.tables()[0]
    return importlib.import_module("lsmkv.server").Moved(7, {"module": 1})


def _django(place: Place) -> object:
    if not find_spec("django"):
        return place.db.tables()[0]
    importlib.import_module("django_site").configure()
    backend = importlib.import_module("lsmkv.django").LsmkvCache
    made = backend(
        place.directory / "django", {"KEY_PREFIX": "p", "OPTIONS": {"codec": codecs.DefaultCodec()}}
    )
    made.set("ant", 6)
    return made


def _django_key(made: Any) -> object:
    return (made.directory, made.get("ant"), list(made.cache)) if find_spec("django") else made


def _diff(place: Place) -> object:
    assert place.shards.version == 1
    lsmkv.bulk.build([(b"bee", b"six")], place.directory / "shards")
    return next(iter(lsmkv.bulk.diff(place.directory / "shards", 1, 2)))


def _lock(made: Any) -> object:
    with made:
        parts = {name: part for name, part in vars(made).items() if name not in ("_cache", "_held")}
        return made._cache.directory, parts


def _averager(place: Place) -> recipes.Averager:
    averager = recipes.Averager(place.cache, "times", tag="t")
    averager.add(5)
    return averager


def _error_of(kind: type[Error], *arguments: object) -> tuple[Make, Callable[[Any], object]]:
    return lambda place: kind(*arguments), _error


SAME: list[tuple[Make, Callable[[Any], object]]] = [
    (lambda place: place.shared, lambda db: (db.name, db.get(b"key1"))),
    (lambda place: place.cache, lambda cache: (cache.directory, cache["ant"])),
    (lambda place: codecs.DefaultCodec(), _identical),
    (lambda place: codecs.PickleCodec(4, key=b"secret"), _identical),
    (
        lambda place: recipes.Deque("ab", place.directory / "deque", 5),
        lambda it: (list(it), it.maxlen),
    ),
    (lambda place: place.index, lambda index: list(index.items())),
    (lambda place: recipes.Lock(place.cache, "k", expire=5), _lock),
    (lambda place: recipes.RLock(place.cache, ("k", 1)), _lock),
    (lambda place: recipes.BoundedSemaphore(place.cache, "k", 3, expire=5), _lock),
    (_averager, lambda averager: averager.get()),
    (_django, _django_key),
    (lambda place: place.db.stats(), _identical),
    (lambda place: place.db.stats().levels[0], _identical),
    (lambda place: place.db.explain(b"key7"), _identical),
    (lambda place: place.db.explain(b"key8"), _identical),
    (lambda place: place.db.tables()[0], _identical),
    (lambda place: next(_trace(place)), _identical),
    (_batch, lambda batch: batch.operations),
    (lambda place: lsmkv.FixedPrefix(3), _identical),
    (lambda place: lsmkv.DelimitedPrefix(b":"), _identical),
    (lambda place: lsmkv.BloomFilterPolicy(16), _identical),
    (lambda place: lsmkv.BloomFilterPolicy(12.5), _identical),
    (lambda place: lsmkv.Bloom64Policy(16), _identical),
    (lambda place: lsmkv.BinaryFusePolicy(12), _identical),
    (lambda place: lsmkv.BytewiseComparator(), _identical),
    (lambda place: lsmkv.ReverseBytewiseComparator(), _identical),
    (lambda place: lsmkv.indexeddb.IndexedDBComparator(), _identical),
    (lambda place: lsmkv.indexeddb.Date(5.0), _identical),
    (lambda place: lsmkv.indexeddb.decode_key(bytes(5)), _identical),
    (lambda place: lsmkv.LocalEnv(follow_symlinks=True), _identical),
    (lambda place: make_options(lru_cache_size=0), _identical),
    (lambda place: place.reader, _pairs),
    (lambda place: place.reader.prefixed_db(b"key"), _pairs),
    (lambda place: lsmkv.open(place.directory / "db"), _pairs),
    (lambda place: place.shards, _pairs),
    (lambda place: place.shards.explain(b"ant"), _identical),
    (lambda place: place.shards.stats(), _identical),
    (lambda place: place.shards.document, _identical),
    (lambda place: place.shards.document.shards[0], _identical),
    (lambda place: place.shards.document.shards[0].meta, _identical),
    (lambda place: lsmkv.shards.Limits(attempts=2), _identical),
    (lambda place: lsmkv.bulk.prune(place.shards.url, keep=1), _identical),
    (lambda place: lsmkv.bulk.repair(place.shards.url), _identical),
    (lambda place: lsmkv.bulk.ShardRepair(0, 7, 0, None), _identical),
    (_diff, _identical),
    (_moved, _identical),
    (lambda place: lsmkv.bulk.Change.ADDED, _identical),
    (lambda place: next(iter(lsmkv.testing.NameModel)), _identical),
    (lambda place: next(iter(lsmkv.testing.Tails)), _identical),
    (_violation, _identical),
    (_simulation, _identical),
    (lambda place: _simulation(place).failure, _identical),
    (_locked, _error),
    _error_of(lsmkv.ClosedError, "closed"),
    _error_of(lsmkv.ComparatorMismatchError, "path", "stored", "given"),
    _error_of(lsmkv.ConflictError, "conflict"),
    _error_of(lsmkv.CorruptionError, "reason", "path", 7),
    _error_of(lsmkv.DeadlockError, [(7, "Lock 'a'"), (8, "Lock 'b'")]),
    _error_of(lsmkv.Error, "error"),
    _error_of(lsmkv.ForeignFormatError, "foreign"),
    _error_of(lsmkv.ForkedError, "forked"),
    _error_of(lsmkv.IOError, 5, "reason", "path"),
    _error_of(lsmkv.IOError, 13, "reason", "path"),
    (lambda place: lsmkv.owner.Histogram.from_buckets([(64, 3)], 200), _identical),
    (lambda place: lsmkv.repair.Problem(7, 3, "bad checksum"), _identical),
    _error_of(lsmkv.IteratorInvalidError, "invalid"),
    _error_of(lsmkv.NestedCallError, "nested"),
    _error_of(lsmkv.OutcomeUnknownError, "unknown"),
    _error_of(lsmkv.StaleViewError, "path"),
    _error_of(lsmkv.SequenceTooOldError, "path", 7),
    (lambda place: next(place.db.batches(50)), _identical),
    _error_of(lsmkv.DirectoryReplacedError, "path"),
    _error_of(lsmkv.RecoveryWarning, "warning"),
    (lambda place: lsmkv.DroppedLog("000003.log", 7, "bad", 1, 2, None, None), _identical),
    (lambda place: place.reader.recovery, _identical),
    _error_of(lsmkv.NotFoundError, 2, "reason", "path"),
    _error_of(lsmkv.ReadOnlyError, "read only"),
    _error_of(lsmkv.PermissionDeniedError, 13, "reason", "path"),
    (lambda place: lsmkv.LeaseReport(7, (lsmkv.Lease(1, (2, 3), None, 7),)), _identical),
    (lambda place: lsmkv.Lease(1, (2, 3), None, 7), _identical),
    (lambda place: lsmkv.LeasedName("Lock 'a'", (1, None), (2,)), _identical),
    _error_of(lsmkv.UnsupportedCompressionError, "compression"),
    _error_of(lsmkv.UnsupportedValueError, "set", "value", "takes"),
]
"""What is copied and pickled, and what two equal ones have in common."""


def _ray(place: Place) -> object:
    def remote(**options: object) -> Callable[[object], object]:
        return lambda function: function

    return lsmkv.bulk.RayExecutor(SimpleNamespace(remote=remote, cancel=None))


def _server(place: Place) -> object:
    if not find_spec("hiredis"):
        return lsmkv.testing.FaultyEnv()
    return importlib.import_module("lsmkv.server").Server(place.directory / "served")


def _plyvel(place: Place) -> lsmkv.plyvel.DB:
    return place.enter_context(closing(lsmkv.plyvel.DB(":memory:")))


def _mapping(place: Place) -> lsmkv.mapping.KeyValueMapping:
    return place.enter_context(lsmkv.open(":memory:", "c"))


def _manifest_survey(place: Place) -> object:
    manifest = lsmkv.repair.survey_db("/db2", env=_store()).manifest
    assert manifest is not None
    return manifest


WRITABLE = "open for writing"
REFUSED: list[tuple[Make, str]] = [
    (lambda place: place.db, WRITABLE),
    (lambda place: place.db.iterator(), "an iterator"),
    (lambda place: place.db.raw_iterator(), "an iterator"),
    (lambda place: place.reader.iterator(), "an iterator"),
    (lambda place: place.db.batches(50), "an iterator over batches"),
    (lambda place: place.db.snapshot(), "a snapshot"),
    (lambda place: place.reader.snapshot(), "a snapshot"),
    (lambda place: place.db.transaction(), "a transaction"),
    (lambda place: place.db.write_batch(), "a batch of a store"),
    (lambda place: place.db.prefixed_db(b"p").write_batch(), "a batch of a store"),
    (
        lambda place: place.enter_context(lsmkv.TableWriter(place.directory / "made.ldb")),
        "a table that is being written",
    ),
    (_trace, "a TraceReader"),
    (lambda place: lsmkv.repair.FileSurvey("CURRENT", 1, True), "the survey of a file"),
    (lambda place: lsmkv.repair.TableSurvey("000005.ldb", 5, 9, 0), "the survey of a file"),
    (lambda place: lsmkv.repair.LogSurvey("000003.log", 3, 9, True), "the survey of a file"),
    (lambda place: lsmkv.repair.LostLogSurvey("000003.log", 3, 9, 0), "the survey of a file"),
    (_manifest_survey, "the survey of a file"),
    (lambda place: lsmkv.repair.Survey("store"), "the survey of a store"),
    (lambda place: lsmkv.repair.Hole(7, 3, "bad", None, bytes(9), []), "a hole in a table"),
    (lambda place: lsmkv.BlockCache(10), "a block cache"),
    (lambda place: lsmkv.MemoryEnv(), "a file system in memory"),
    (lambda place: lsmkv.plan_repair("/db2", env=_store()), "a plan of a repair"),
    (_plyvel, WRITABLE),
    (lambda place: _plyvel(place).snapshot(), "a snapshot"),
    (lambda place: _plyvel(place).write_batch(), "a batch of a store"),
    (_mapping, "a mapping of a store that is open for writing"),
    (lambda place: place.shards.iterator(), "an iterator"),
    (lambda place: place.enter_context(lsmkv.bulk.Workers(1)), "an executor"),
    (_ray, "an executor"),
    (_server, "a server" if find_spec("hiredis") else "a file system"),
    (lambda place: lsmkv.testing.FaultyEnv(), "a file system in memory"),
    (lambda place: lsmkv.testing.RecordingEnv(), "a file system in memory"),
    (lambda place: lsmkv.aio.open_db(":memory:"), "an lsmkv.aio.DB"),
    (lambda place: lsmkv.aio.open_shards("url"), "lsmkv.aio.Shards"),
]
"""What is neither copied nor pickled, and what the error calls it."""
PARTS_REFUSED: list[tuple[Make, str]] = [
    (lambda place: place.db.options, "a block cache"),
    (lambda place: place.db.prefixed_db(b"p"), WRITABLE),
    (lambda place: _plyvel(place).prefixed_db(b"p"), WRITABLE),
    (lambda place: _mapping(place).keys(), "a mapping of a store"),
    (lambda place: _mapping(place).values(), "a mapping of a store"),
    (lambda place: _mapping(place).items(), "a mapping of a store"),
    (lambda place: place.shards.verify(), "the survey of a file"),
    (lambda place: place.shards.verify().shards[0], "the survey of a file"),
    (_report, "a file system in memory"),
    (_run, "a file system in memory"),
    (lambda place: next(_report(place).recording.crash_states()), "a file system in memory"),
]
"""What refers to such an object: a shallow copy shares it, others are refused in its name."""


def _store() -> lsmkv.MemoryEnv:
    env = lsmkv.MemoryEnv()
    lsmkv.DB("/db2", create_if_missing=True, env=env).close()
    return env


def _pickled(protocol: int) -> Callable[[object], object]:
    return lambda made: pickle.loads(pickle.dumps(made, protocol))


DEEP = [copy.deepcopy, *map(_pickled, range(2, pickle.HIGHEST_PROTOCOL + 1))]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as made:
        yield made


@pytest.mark.parametrize(("make", "essence"), SAME)
def test_copies_and_pickled_objects_are_the_same(
    place: Place, make: Make, essence: Callable[[Any], object]
) -> None:
    made = make(place)
    copies = [one(made) for one in (copy.copy, *DEEP)]
    for one in (made, *copies):
        place.adopt(one)
    expected = essence(made)
    assert [(type(one), essence(one)) for one in copies] == [(type(made), expected)] * len(copies)


@pytest.mark.parametrize(("make", "named"), REFUSED)
def test_what_is_one_of_a_kind_says_why(place: Place, make: Make, named: str) -> None:
    made = make(place)
    for one in (copy.copy, *DEEP):
        with pytest.raises(TypeError, match=rf"{named} .*(copied|pickled): \S+ \S+"):
            one(made)


@pytest.mark.parametrize(("make", "named"), PARTS_REFUSED)
def test_what_refers_to_one_of_a_kind_is_refused_in_its_name(
    place: Place, make: Make, named: str
) -> None:
    made = make(place)
    assert type(copy.copy(made)) is type(made)
    for one in DEEP:
        with pytest.raises(TypeError, match=rf"{named} .*(copied|pickled): \S+ \S+"):
            one(made)


VALUES = [make for make, essence in SAME if essence is _identical]


@pytest.mark.parametrize("make", VALUES)
def test_values_are_equal_and_hash_alike_if_their_content_is_the_same(
    place: Place, make: Make
) -> None:
    made = make(place)
    same = copy.deepcopy(made)
    assert made == same
    assert not (made != same)  # noqa: SIM202 - what __ne__ says
    assert made != object()
    if type(made).__name__ in WITHOUT_HASH:
        with pytest.raises(TypeError, match="unhashable"):
            hash(made)
    else:
        assert hash(made) == hash(same)
        assert len({made, same}) == 1
    assert repr(made) == repr(same)
    assert " object at 0x" not in repr(made)


@pytest.mark.parametrize("make", [make for make, essence in SAME if essence is not _identical])
def test_what_is_copied_and_no_value_is_a_handle_or_an_error(place: Place, make: Make) -> None:
    made = make(place)
    place.adopt(made)
    assert isinstance(made, BaseException) or type(made).__name__ in COPIED_HANDLES


DIFFERENT: list[tuple[object, object]] = [
    (lsmkv.FixedPrefix(3), lsmkv.FixedPrefix(4)),
    (lsmkv.DelimitedPrefix(b":"), lsmkv.DelimitedPrefix(b"::")),
    (lsmkv.BloomFilterPolicy(16), lsmkv.BloomFilterPolicy(16.5)),
    (lsmkv.Bloom64Policy(16), lsmkv.Bloom64Policy(17)),
    (lsmkv.BloomFilterPolicy(16), lsmkv.Bloom64Policy(16)),
    (lsmkv.BinaryFusePolicy(), lsmkv.BinaryFusePolicy(12)),
    (lsmkv.BytewiseComparator(), lsmkv.ReverseBytewiseComparator()),
    (lsmkv.BytewiseComparator(), lsmkv.indexeddb.IndexedDBComparator()),
    (lsmkv.LocalEnv(), lsmkv.LocalEnv(follow_symlinks=True)),
    (lsmkv.LocalEnv(), lsmkv.LocalEnv(ofd_locks=False)),
    (codecs.PickleCodec(4), codecs.PickleCodec(5)),
    (codecs.PickleCodec(4), codecs.DefaultCodec()),
    (make_options(lru_cache_size=0), make_options(lru_cache_size=0, block_size=1 << 14)),
    (
        make_options(lru_cache_size=0, prefix_extractor=lsmkv.FixedPrefix(3)),
        make_options(lru_cache_size=0, prefix_extractor=lsmkv.FixedPrefix(4)),
    ),
    (
        make_options(lru_cache_size=0, comparator=max, comparator_name="a"),
        make_options(lru_cache_size=0, comparator=max, comparator_name="b"),
    ),
    (lsmkv.repair.Problem(7, 3, "bad"), lsmkv.repair.Problem(7, 4, "bad")),
    (lsmkv.repair.Problem(7, 3, "bad"), lsmkv.repair.Hole(7, 3, "bad", None, None, [])),
    (lsmkv.owner.Histogram.from_buckets([(64, 3)], 200), lsmkv.owner.Histogram()),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_of_other_arguments_differ_and_show_it(one: object, other: object) -> None:
    assert one != other
    assert repr(one) != repr(other)


def test_options_that_were_made_alike_are_equal() -> None:
    arguments = {"lru_cache_size": 0, "comparator": max, "comparator_name": "max"}
    assert make_options(**arguments) == make_options(**arguments)
    assert hash(make_options(**arguments)) == hash(make_options(**arguments))


def test_what_a_subclass_adds_is_compared() -> None:
    class Counted(lsmkv.LocalEnv):
        def __init__(self, calls: int) -> None:
            super().__init__()
            self.calls = calls

    assert Counted(1) == Counted(1)
    assert Counted(1) != Counted(2)
    assert Counted(1) != lsmkv.LocalEnv()


def test_what_belongs_to_an_event_loop_says_why() -> None:
    async def main() -> None:
        async with lsmkv.aio.open_db(":memory:") as db:
            parts = [db, db.iterator(), db.snapshot(), db.transaction(), db.write_batch()]
            parts += [db.prefixed_db(b"p"), lsmkv.aio.SharedDB("never opened"), db.batches(0)]
            parts += [lsmkv.aio.Cache("never opened")]
            seen.update(map(type, parts))
            for part in parts:
                for one in (copy.copy, *DEEP):
                    with pytest.raises(TypeError, match=r"neither copied nor pickled: it belongs"):
                        one(part)

    seen: set[type] = set()
    asyncio.run(main())
    assert len(seen) == 9


def test_every_public_class_is_copied_and_pickled_or_refused(place: Place) -> None:
    aio = lsmkv.aio
    tried: set[type] = {aio.Iterator, aio.Snapshot, aio.Transaction, aio.WriteBatch}
    tried |= {aio.PrefixedDB, aio.SharedDB, aio.Batches, aio.Cache}
    for make, _ in [*SAME, *REFUSED, *PARTS_REFUSED]:
        made = make(place)
        place.adopt(made)
        tried.add(type(made))
    missing = [
        f"lsmkv{module}.{name}"
        for module in sorted(MODULES)
        if find_spec(NEEDED.get(module, "lsmkv"))
        for name, value in _public_classes(f"lsmkv{module}")
        if value not in tried
        and name not in MADE_BY_USERS | READERS
        and not (module in TUPLES_ALONE and (is_dataclass(value) or issubclass(value, tuple)))
    ]
    assert missing == []


def _public_classes(module: str) -> Iterator[tuple[str, type]]:
    face = importlib.import_module(module)
    for name in face.__all__:
        value = getattr(face, name)
        if inspect.isclass(value) and get_origin(value) is None:
            yield name, value


def test_a_store_open_for_writing_says_copied_where_it_is_copied(place: Place) -> None:
    for one in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a store that is open for writing cannot be copied"):
            one(place.db)
    with pytest.raises(TypeError, match="a store that is open for writing cannot be pickled"):
        pickle.dumps(place.db)


def test_a_copy_of_a_batch_has_operations_of_its_own(place: Place) -> None:
    batch = _batch(place)
    made = copy.copy(batch)
    made.put(b"more", b"v")
    assert (len(batch), len(made)) == (1, 2)


def test_a_process_pool_returns_statistics_and_explanations(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
    reader = lsmkv.DB(tmp_path / "db", read_only=True, prefix_extractor=lsmkv.FixedPrefix(1))
    with reader, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        stats = pool.submit(methodcaller("stats"), reader).result()
        explanation = pool.submit(methodcaller("explain", b"k"), reader).result()
    assert (type(stats), stats.gets, explanation.found) == (lsmkv.Stats, 0, True)
