"""Uses the public names of lsmkv; checked by mypy and by pyright, never run.

A line with ``type: ignore`` is a wrong use that both must notice: an ignore without an error is an
error itself.
"""

from __future__ import annotations

import array
import mmap
import pathlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Unpack, assert_type

import lsmkv
import lsmkv.aio
import lsmkv.mapping
from lsmkv import DB, bulk, files, filter_lab, owner, plyvel, repair, shards
from lsmkv.cache.codecs import Codec, DefaultCodec
from lsmkv.engine.db.read.iterator import IteratorArguments

# What users supply: only an env needs a base class.


class LastByte:
    """A filter policy."""

    name = "example.LastByte"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return bytes(key[-1] for key in keys if key)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return not key or key[-1] in filter


class HashedLastByte(LastByte):
    """A filter policy that can be asked by hash."""

    def key_hash(self, key: bytes) -> int:
        return key[-1] if key else 0

    def hash_may_match(self, key_hash: int, filter: bytes) -> bool:
        return key_hash in filter


class NoFilter:
    """Lacks a member."""

    name = "example.NoFilter"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b""


class ByLength:
    """A comparator."""

    @property
    def name(self) -> str:
        return "example.ByLength"

    def compare(self, a: bytes, b: bytes) -> int:
        return len(a) - len(b) or (a > b) - (a < b)

    def find_shortest_separator(self, start: bytes, limit: bytes) -> bytes:
        return start

    def find_short_successor(self, key: bytes) -> bytes:
        return key


class Watched(lsmkv.MemoryEnv):
    """An env, derived from one of lsmkv's."""

    def remove_directory(self, path: str) -> None:
        super().remove_directory(path)


policy: lsmkv.FilterPolicy = LastByte()
hashed: lsmkv.HashedFilterPolicy = HashedLastByte()
order: lsmkv.Comparator = ByLength()
env: lsmkv.Env = Watched()
no_policy: lsmkv.FilterPolicy = NoFilter()  # type: ignore[assignment]
no_order: lsmkv.Comparator = LastByte()  # type: ignore[assignment]


def report(done: int, total: int, phase: str) -> None:
    """A progress callback."""


def opening(path: pathlib.Path) -> None:
    with DB(path, create_if_missing=True, compression="zstd", filter_policy=policy) as db:
        assert_type(db, DB)
        assert_type(db.path, str)
        assert_type(db.name, str)
        assert_type(db.closed, bool)
        assert_type(db.options, lsmkv.Options)
        assert_type(db.options.block_size, int)
        assert_type(db.options.filter_policy, lsmkv.FilterPolicy | None)
        assert_type(db.options.comparator, lsmkv.Comparator)
        assert_type(db.options.prefix_extractor, lsmkv.PrefixExtractor | None)
    db.close()
    DB(str(path), read_only=True).refresh()
    lsmkv.open(path, "n").close()
    DB(path, compression="lzma")  # type: ignore[arg-type]
    DB(path, no_such_option=1)  # type: ignore[call-arg]
    DB(b"bytes")  # type: ignore[arg-type]
    DB(path, progress=report, env=path)  # type: ignore[call-arg, arg-type]
    DB(path, comparator=lambda a, b: len(a) - len(b), comparator_name="by length")
    DB(path, comparator=order, filter_policy=hashed, env=env)
    DB(path, comparator=lsmkv.ReverseBytewiseComparator(), bloom_filter_bits=16)
    DB(
        path,
        error_if_exists=True,
        paranoid_checks=True,
        write_buffer_size=1 << 20,
        max_open_files=100,
        lru_cache_size=0,
        block_size=4096,
        block_restart_interval=16,
        max_file_size=1 << 20,
        compression=None,
        zstd_compression_level=3,
        reuse_logs=True,
        flush_prefix="v",
        seek_compaction=False,
        background="thread",
        max_block_bytes=1 << 24,
        table_cache_bytes=16 << 20,
        map_tables=True,
        publish_stats=True,
        trace=path,
        trace_sample=10,
        lock_timeout=2.5,
    )
    trace = lsmkv.read_trace(path)
    assert_type(trace, lsmkv.TraceReader)
    assert_type((trace.started, trace.sample), tuple[float, int])
    for operation in trace:
        assert_type(operation, lsmkv.TraceRecord)
        assert_type((operation.key, operation.size), tuple[bytes, int | None])
        assert_type(operation.found, bool)
    cache = lsmkv.LRUCache[Any, Any](1 << 20)
    DB(path, block_cache=cache, env=lsmkv.MemoryEnv(), filter_layout="both")
    assert_type(len(cache), int)
    entry = cache.entry((1, 2))
    if entry is not None:
        assert_type(entry.used, bool)
        entry.take()
    added = cache.add("value", charge=5)
    assert_type(cache.is_full(5), bool)
    assert_type(cache.admits(5, before=0), bool)
    if added is not None:
        assert_type(added.charge, int)
        cache.refill(added, "another", charge=7)
        cache.replace(added, "a third", charge=9)
        cache.forget([added])
    cache.discard((1, 2))
    cache.clear()
    cache.check()
    small = lsmkv.BlockCache[str, int](2)
    small.put("k", 1, charge=1)
    assert_type(small.get("k"), int | None)


def passing_on(path: pathlib.Path, **options: Unpack[lsmkv.OptionArguments]) -> DB:
    settings: lsmkv.OptionArguments = {"block_size": 4096, "background": "thread"}
    wrong: lsmkv.OptionArguments = {"blok_size": 4096}  # type: ignore[typeddict-unknown-key]
    passing_on(path, **wrong)
    passing_on(path, blok_size=1)  # type: ignore[call-arg]
    lsmkv.TableWriter(path, blok_size=1)  # type: ignore[call-arg]
    lsmkv.TableWriter(path, read_only=True)  # type: ignore[call-arg]
    plyvel.DB("db", read_only=True)  # type: ignore[arg-type]
    passing_on(path, **settings)
    return DB(path, **options)


def sharing(path: pathlib.Path) -> None:
    with lsmkv.SharedDB(path, may_own=False, patience=2.5, create_if_missing=True) as db:
        assert_type(db, lsmkv.SharedDB)
        assert_type(db.role, str)
        assert_type(db.owner, int)
        assert_type(db.members, list[int])
        assert_type(db.sequence, int)
        assert_type(db.wait_for_change(db.sequence, timeout=1), int)
        with db.batches(db.sequence, timeout=None) as batches:
            assert_type(batches, lsmkv.Batches)
            assert_type(batches.sequence, int)
            assert_type(batches.closed, bool)
            for committed in batches:
                assert_type(committed, lsmkv.CommittedBatch)
                assert_type(committed.sequence, int)
                assert_type(committed.last_sequence, int)
                assert_type(committed.operations, list[tuple[bytes, bytes | None]])
                assert_type(committed.to_batch(), lsmkv.WriteBatch)
        db.batches("k")  # type: ignore[arg-type]
        assert_type(db.leases(), lsmkv.LeaseReport)
        assert_type(db.leases().bytes, int)
        for name in db.leases().names:
            assert_type(name, lsmkv.LeasedName)
            assert_type(name.holders, tuple[int | None, ...])
        for lease in db.leases().leases:
            assert_type(lease, lsmkv.Lease)
            assert_type(lease.pid, int | None)
            assert_type(lease.versions, tuple[int, ...])
            assert_type(lease.log, int | None)
            assert_type(lease.bytes, int)
        assert_type(db.get(b"k"), bytes | None)
        db.refresh()
        db.rewrite_tables(progress=report)


def sharing_by_a_process(path: pathlib.Path) -> None:
    lsmkv.SharedDB(path, owner="process", python=path, handover=True)
    lsmkv.SharedDB(path, owner="thread")  # type: ignore[arg-type]
    lsmkv.aio.SharedDB(path, owner="process", python="python3", handover=True)


async def sharing_in_a_loop(path: pathlib.Path) -> None:
    async with lsmkv.aio.SharedDB(path, may_own=False, patience=2.5) as db:
        assert_type(db, lsmkv.aio.SharedDB)
        assert_type(db.role, str)
        assert_type(await db.wait_for_change(7, timeout=1), int)
        assert_type(await db.leases(), lsmkv.LeaseReport)
        assert_type((db.owner, db.members), tuple[int, list[int]])
        async with db.batches(since=7) as batches:
            assert_type(batches, lsmkv.aio.Batches)
            assert_type(batches.sequence, int)
            assert_type(batches.closed, bool)
            async for committed in batches:
                assert_type(committed, lsmkv.CommittedBatch)


def caching(path: pathlib.Path) -> None:
    with lsmkv.Cache(path, size_limit=1 << 20, eviction="none", recency=5, block_size=512) as cache:
        assert_type(cache, lsmkv.Cache)
        assert_type(cache.set("k", [1], expire=5, tag="t"), bool)
        assert_type(cache.push(b"v"), int | str)
        assert_type(cache.stats(), tuple[int, int])
        assert_type(cache.volume(), int)
        assert_type(cache.check(), list[str])
        assert_type(cache.cull() + cache.evict("t") + cache.expire(), int)
        assert_type(list(cache.iterkeys()), list[Any])
        assert_type([cache.pull(), cache.peek(), cache.peekitem()], list[Any])
        assert_type([cache.incr("n"), cache.decr("n", 2), cache.pop("k")], list[Any])
        assert_type(cache.touch("k", expire=None), bool)
        assert_type((cache.size_limit, cache.cull_limit, cache.statistics), tuple[int, int, int])
        assert_type((cache.eviction_policy, cache.recency), tuple[str, float])
        assert_type((cache.codec, cache.reset("cull_limit", 5)), tuple[Codec, Any])
        with cache.transact(limit=5):
            pass

        @cache.memoize(typed=True, ignore={0})
        def half(number: int, *, by: str = "") -> float:
            return number / 2

        assert_type(half(3), float)
        assert_type(half.__cache_key__(3), tuple[Any, ...])
        half("3")  # type: ignore[arg-type]

        class Shop:
            @cache.memoize(ignore={"self"})
            def price(self, article: int) -> float:
                return article / 2

        assert_type(Shop().price(3), float)
        assert_type(Shop.price(Shop(), 3), float)
        assert_type(Shop.price.__cache_key__(Shop(), 3), tuple[Any, ...])
        Shop().price("3")  # type: ignore[arg-type]
        assert_type(DefaultCodec(types=[Shop]).types, tuple[type, ...])
    lsmkv.Cache(path, eviction="random")  # type: ignore[arg-type]
    lsmkv.Cache(path, blok_size=512)  # type: ignore[call-arg]


async def caching_in_a_loop(path: pathlib.Path) -> None:
    async with lsmkv.aio.Cache(path, on_error="skip") as cache:
        assert_type(cache, lsmkv.aio.Cache)
        assert_type(await cache.set("k", 1), bool)
        assert_type(await cache.count(), int)
        assert_type(await cache.read("k"), Any)
        assert_type(await cache.get("k", 1, tag=True), Any)
        assert_type(await cache.add("k", 1, expire=5, tag="t"), bool)
        assert_type(await cache.delete("k") or await cache.contains("k"), bool)
        assert_type(await cache.touch("k", expire=None), bool)
        assert_type([await cache.incr("n"), await cache.decr("n"), await cache.pop("k")], list[Any])
        assert_type(await cache.push("v", side="front"), int | str)
        assert_type([await cache.pull(), await cache.peek(), await cache.peekitem()], list[Any])
        assert_type(await cache.expire() + await cache.evict("t"), int)
        assert_type(await cache.cull() + await cache.clear(), int)
        assert_type(await cache.check(fix=True), list[str])
        assert_type((await cache.volume(), await cache.stats()), tuple[int, tuple[int, int]])
        assert_type([key async for key in cache.iterkeys()], list[Any])
        assert_type((cache.size_limit, cache.cull_limit, cache.statistics), tuple[int, int, int])
        assert_type((cache.eviction_policy, cache.recency), tuple[str, float])
        assert_type((cache.codec, await cache.reset("cull_limit", 5)), tuple[Codec, Any])
        assert_type((cache.directory, cache.closed), tuple[str, bool])
        await cache.push("v", side="middle")  # type: ignore[arg-type]
        async with cache.transact(limit=5):
            pass

        @cache.memoize(lock=True)
        async def half(number: int) -> float:
            return number / 2

        assert_type(await half(3), float)


def maintaining(db: DB, path: pathlib.Path) -> None:
    with lsmkv.TableWriter(path, env=env, compression=None, filter_layout="table") as table:
        assert_type(table, lsmkv.TableWriter)
        table.add(b"k", bytearray(b"v"))
        table.add("k", b"v")  # type: ignore[arg-type]
        assert_type(table.num_entries, int)
        assert_type(table.file_size, int)
        assert_type(table.closed, bool)
        table.finish()
        table.close()
    db.ingest([path, "other.ldb"], progress=report)
    db.delete_range(b"a", None, prefix=b"a")
    db.prefixed_db(b"a").delete_range(None, bytearray(b"b"))
    db.delete_range("a", None)  # type: ignore[arg-type]
    db.delete_range(b"a")  # type: ignore[call-arg]
    tables = db.tables()
    assert_type(tables[0].level, int)
    assert_type(tables[0].smallest, bytes)
    assert_type(db.written_keys(tables), list[bytes])
    plan = lsmkv.plan_repair(path, keep_stale=True, merge_all=True, progress=report)
    plan = lsmkv.plan_repair(path, comparator=order)
    assert_type(plan, lsmkv.RepairPlan)
    assert_type(plan.by_levels, bool)
    assert_type(plan.left_in_lost[0].name, str)
    assert_type(plan.needed, bool)
    assert_type((plan.stale, plan.kept, plan.kept_writes), tuple[int, int, int])
    assert_type((plan.most_out_of_date, plan.better_kept), tuple[int | None, bool])
    assert_type(plan.as_of, int | None)
    assert_type(plan.unaccounted, list[tuple[int, int]])
    assert_type(plan.lost_bytes, int)
    assert_type(plan.missing_bytes, int)
    assert_type(plan.last_sequence, int)
    assert_type(plan.highest_number, int)
    assert_type(plan.to_dict(), dict[str, Any])
    assert_type(lsmkv.repair_db(path, into=path / "sound", env=env), lsmkv.RepairPlan)
    local = lsmkv.LocalEnv(follow_symlinks=True)
    with local.open_directory(str(path), create=True) as directory:
        assert_type(directory.names(), list[str])
    local.rename_directory(str(path), "other")
    local.remove_directory("other")
    lsmkv.destroy_db(path, env=local)


def files_of_an_env(directory: lsmkv.Directory) -> None:
    assert_type(directory.is_shared("SHARED"), bool)
    with directory.create("a") as new, directory.append_to("a") as more:
        assert_type(new, lsmkv.WritableFile)
        new.append(b"content")
        assert_type(more.raw_write(b"more"), int)
        assert_type((new.mapped, new.size(), new.reserve(5)), tuple[bool, int, int])
        new.truncate(3)
        new.begin_sync()
        new.sync()
    with directory.open("a") as file:
        assert_type(file, lsmkv.RandomAccessFile)
        assert_type((file.path, file.size), tuple[str, int])
        assert_type((file.read(0, 2), file.raw_read(2, 0)), tuple[bytes, bytes])
        assert_type(directory.leads_to("a", file), bool)
        assert_type(directory.open_mapped("a"), lsmkv.RandomAccessFile)
    with directory.create_log("log", mapped=False), directory.continue_log("log", 0):
        pass
    with directory.lock("LOCK") as lock:
        assert_type(lock, lsmkv.FileLock)
        assert_type(directory.lock_holder("LOCK"), int | None)
    with directory.subdirectory("b", create=True) as other:
        assert_type(other, lsmkv.Directory)
        directory.link("a", other)
    assert_type((directory.exists("a"), directory.size("a")), tuple[bool, int])
    assert_type((directory.modified("a"), directory.free_bytes()), tuple[float, int | None])
    assert_type(directory.read_file("a", limit=5), bytes)
    assert_type(directory.change_mark(), object)
    assert_type((directory.replaced(), directory.immutable), tuple[bool, bool])
    assert_type((directory.is_entered, directory.maps_logs), tuple[bool, bool])
    directory.rename("a", "c")
    directory.remove("c")
    directory.sync()
    directory.close()


def table_arguments(arguments: lsmkv.TableArguments) -> lsmkv.TableWriter:
    return lsmkv.TableWriter("new.ldb", **arguments)


def looking_at_stores(db: DB, path: pathlib.Path) -> None:
    survey = repair.survey_db(path, progress=report)
    for piece in repair.find_blocks(path):
        assert_type(piece, files.Block | repair.Hole)
    assert_type(survey, repair.Survey)
    for table in survey.tables:
        assert_type((table.severity, table.problems), tuple[int, list[repair.Problem]])
        for hole in table.holes:
            assert_type(hole.user_range, tuple[bytes | None, bytes | None])
    assert_type(repair.acknowledge_lost(path), list[str])
    rescued = repair.rescue_db(path, path.with_suffix(".new"), way=repair.WAYS[1], progress=report)
    assert_type(rescued, repair.Rescue)
    assert_type((rescued.sound, rescued.comparator, rescued.made), tuple[bool, str, str | None])
    assert_type(rescued.way("by-level"), repair.Way | None)
    assert_type([way.entries for way in rescued.ways if way.works], list[int])
    live = owner.read_owner(path, env=lsmkv.LocalEnv()).published
    if live is not None:
        assert_type(live, owner.Published)
        assert_type(live.stats, lsmkv.Stats)
        assert_type(live.latencies["get"].percentile(99), int)
        for process in live.processes:
            assert_type(process, owner.ProcessFigures)
            assert_type((process.pid, process.role), tuple[int, str])
            assert_type(process.counters["gets"] + process.writes.count, int)
    settings = filter_lab.parse_settings("none block:10")
    found = filter_lab.replay(db, [b"k"], settings, report)
    assert_type(found.stored, filter_lab.SettingReads)
    assert_type(found.results[1].false_positive_rate, float | None)
    assert_type(settings[1].policy(0), lsmkv.FilterPolicy | None)


def reading(db: DB) -> None:
    assert_type(db.get(b"k"), bytes | None)
    assert_type(db.get(bytearray(b"k"), None), bytes | None)
    assert_type(db.get(memoryview(b"k"), b""), bytes)
    assert_type(db.get(b"k", 3), bytes | int)
    assert_type(db.get(b"k", "", fill_cache=False), bytes | str)
    db.get("k")  # type: ignore[call-overload]
    assert_type(db.multi_get([b"a", b"b"]), list[bytes | None])
    assert_type(b"k" in db, bool)
    assert_type(db.may_contain(b"k"), bool)
    assert_type(db.get_property("leveldb.stats"), str | None)
    assert_type(db.get_property(b"leveldb.stats"), bytes | None)
    assert_type(db.approximate_size(b"a", b"b"), int)
    assert_type(db.approximate_sizes((b"a", b"b"), (b"c", b"d")), list[int])
    assert_type(db.verify(), list[lsmkv.CorruptionError])
    assert_type(db.tables(), list[lsmkv.TableInfo])
    db.check()
    assert_type(db.recovery, lsmkv.RecoveryReport)
    assert_type(db.recovery.dropped, tuple[lsmkv.DroppedLog, ...])
    assert_type(db.recovery.dropped[0].missing, int | None)
    assert_type(db.recovery.batches + db.recovery.operations, int)
    assert_type(db.acknowledge_recovery(), list[str])
    warnings.simplefilter("error", lsmkv.RecoveryWarning)


def iterating(db: DB) -> None:
    with db.iterator(start=b"a", stop=b"b", include_stop=True, reverse=True) as iterator:
        assert_type(iterator, lsmkv.Iterator[tuple[bytes, bytes]])
        assert_type(next(iterator), tuple[bytes, bytes])
        assert_type(iterator.next(), tuple[bytes, bytes])
        assert_type(iterator.prev(), tuple[bytes, bytes])
        assert_type(iterator.closed, bool)
        iterator.seek(b"k")
        iterator.seek_to_start()
        iterator.seek_to_stop()
        iterator.hide_prefix(b"p")
    iterator.close()
    db.iterator(begin=b"a")  # type: ignore[call-overload]
    db.iterator(prefix="a")  # type: ignore[call-overload]
    keys: list[bytes] = list(db.iterator(prefix=b"a", include_value=False, fill_cache=False))
    values: list[bytes] = list(db.iterator(include_key=False, include_start=False))
    pairs: dict[bytes, bytes] = dict(db)
    assert_type(iter(db), lsmkv.Iterator[tuple[bytes, bytes]])
    raw = db.raw_iterator(prefix=b"p")
    assert_type(raw, lsmkv.RawIterator)
    raw.seek_to_first()
    raw.seek_to_last()
    raw.seek(keys[0])
    raw.next()
    raw.prev()
    assert_type(raw.valid(), bool)
    assert_type(raw.item(), tuple[bytes, bytes])
    assert_type(raw.key(), bytes)
    assert_type(raw.value(), bytes)
    assert_type(raw.closed, bool)
    raw.close()
    db.put(values[0], pairs[b"k"])


def iterating_over_parts(db: DB, with_value: bool) -> None:
    assert_type(next(db.iterator(prefix=b"a", start=b"ab", limit=5)), tuple[bytes, bytes])
    assert_type(next(db.iterator(include_key=True, include_value=True)), tuple[bytes, bytes])
    assert_type(next(db.iterator(include_value=False, reverse=True)), bytes)
    assert_type(next(db.iterator(include_key=False)), bytes)
    assert_type(next(db.iterator(include_key=False, include_value=False)), None)
    assert_type(next(db.iterator(include_value=with_value)), Any)
    settings: IteratorArguments = {"include_value": False}
    assert_type(next(db.iterator(**settings)), Any)
    db.iterator(limit="5")  # type: ignore[call-overload]
    snapshot, part = db.snapshot(), db.prefixed_db(b"p")
    assert_type(next(snapshot.iterator()), tuple[bytes, bytes])
    assert_type(next(snapshot.iterator(include_value=False)), bytes)
    assert_type(next(part.iterator()), tuple[bytes, bytes])
    assert_type(next(part.iterator(include_key=False, limit=None)), bytes)
    assert_type(next(part.snapshot().iterator(include_value=False)), bytes)
    for key, value in part:
        assert_type((key, value), tuple[bytes, bytes])
    any_entries: lsmkv.Iterator = db.iterator(include_value=False)  # as programs wrote it before
    objects: lsmkv.Iterator[object] = db.iterator()
    assert any_entries is not objects


def viewing(db: DB) -> None:
    with db.snapshot() as snapshot:
        assert_type(snapshot, lsmkv.Snapshot)
        assert_type(snapshot.get(b"k"), bytes | None)
        assert_type(snapshot.get(b"k", 0), bytes | int)
        assert_type(b"k" in snapshot, bool)
        assert_type(snapshot.sequence, int)
        assert_type(snapshot.iterator(prefix=b"a"), lsmkv.Iterator[tuple[bytes, bytes]])
        assert_type(snapshot.raw_iterator(), lsmkv.RawIterator)
        assert_type(iter(snapshot), lsmkv.Iterator[tuple[bytes, bytes]])
        assert_type(snapshot.closed, bool)
    snapshot.close()
    snapshot.release()
    part = db.prefixed_db(b"p")
    assert_type(part, lsmkv.PrefixedDB[DB])
    assert_type(part.get(b"k"), bytes | None)
    assert_type(part.get(b"k", 0), bytes | int)
    assert_type(b"k" in part, bool)
    assert_type(part.db, DB)
    assert_type(part.prefixed_db(b"q"), lsmkv.PrefixedDB[DB])
    assert_type(part.prefixed_db(b"q").prefix, bytes)
    assert_type(part.snapshot(), lsmkv.Snapshot)
    assert_type(part.iterator(reverse=True), lsmkv.Iterator[tuple[bytes, bytes]])
    assert_type(part.raw_iterator(), lsmkv.RawIterator)
    assert_type(part.write_batch(), lsmkv.WriteBatch)
    part.put(b"k", b"v")
    part.delete(b"k", sync=True)


def writing(db: DB, path: pathlib.Path) -> None:
    db.put(b"k", bytearray(b"v"), sync=True)
    db.put(array.array("B", b"k"), mmap.mmap(-1, 1))
    db.put(b"k", "v")  # type: ignore[arg-type]
    db.put(b"k", b"v", True)  # type: ignore[call-arg]
    db.delete(b"k")
    batch = lsmkv.WriteBatch()
    batch.put(b"k", b"v")
    batch.delete(b"k")
    assert_type(len(batch), int)
    assert_type(batch.operations, list[tuple[bytes, bytes | None]])
    assert_type(batch.approximate_size(), int)
    assert_type(batch.encode(1), bytes)
    assert_type(batch.encoded_operations(), bytes)
    db.write(batch, sync=True)
    with db.write_batch(transaction=False) as bound:
        assert_type(bound, lsmkv.WriteBatch)
        bound.append(batch)
        bound.clear()
        bound.write()
    with db.transaction(sync=True) as transaction:
        assert_type(transaction, lsmkv.Transaction)
        assert_type(transaction.get(b"k"), bytes | None)
        assert_type(transaction.get(b"k", 1), bytes | int)
        assert_type(transaction.iterator(start=b"k"), lsmkv.Iterator[tuple[bytes, bytes]])
        assert_type(next(transaction.iterator(include_value=False, limit=1)), bytes)
        for pair in transaction:
            assert_type(pair, tuple[bytes, bytes])
        transaction.put(b"k", b"v")
        transaction.delete(b"k")
        transaction.commit()
        transaction.rollback()
    assert_type(db.update(b"k", lambda old: old, sync=True), bytes | None)
    with db.transaction(isolation="snapshot") as weaker:
        assert_type(weaker.commit(), None)
    assert_type(db.run(lambda work: work.get(b"k", b""), sync=True), bytes)
    assert_type(db.run(lambda work: len(list(work)), isolation="snapshot"), int)
    part = db.prefixed_db(b"p")
    assert_type(part.update(b"k", lambda old: bytearray(b"1")), bytes | None)
    assert_type(part.run(lambda work: 1), int)
    db.flush()
    db.sync()
    db.compact_range(b"a", None, progress=report)
    db.checkpoint(path, progress=report)
    db.verify(progress=report)
    db.verify(progress=print_only)  # type: ignore[arg-type]


def print_only(phase: str) -> None:
    """No progress callback."""


def looking(db: DB) -> None:
    explanation = db.explain(b"k")
    assert_type(explanation.metadata_reads, int)
    assert_type(explanation.identity_check_reads, int)
    assert_type(explanation, lsmkv.Explanation)
    assert_type(explanation.found, bool)
    assert_type(explanation.to_dict(), dict[str, Any])
    assert_type(explanation.tables[0].filters[0].positions, tuple[int, ...])
    assert_type(explanation.tables[0].index_key, bytes | None)
    assert_type(explanation.memtables, tuple[str, ...])
    assert_type([line.text for line in explanation.outline()], list[str])
    if explanation.chosen is not None:
        assert_type(explanation.chosen.sequence, int)
    stats = db.stats()
    assert_type(stats, lsmkv.Stats)
    assert_type(stats - stats, lsmkv.Stats)
    assert_type(db.metrics_text(), str)
    assert_type(db.metrics_text(store="users"), str)
    assert_type(lsmkv.metrics_text([db, "path", pathlib.Path("path")]), str)
    assert_type(lsmkv.metrics_text({"users": db, "orders": "path"}), str)
    assert_type(stats.gets, int)
    assert_type(stats.blocks_read, int)
    assert_type(stats.bytes_read, int)
    assert_type(stats.block_cache_hits, int)
    assert_type(stats.filters_asked, int)
    assert_type(stats.filter_negatives, int)
    assert_type(stats.filter_false_positives, int)
    assert_type(stats.levels, tuple[lsmkv.LevelStats, ...])
    assert_type(stats.levels[0].files, int)
    assert_type(stats.write_amplification, float)
    assert_type(stats.expected_rate, float | None)
    assert_type(stats.measured_rate, float | None)
    assert_type(stats.levels[0].expected_rate, float | None)
    assert_type(stats.read_amplification, float)
    assert_type(stats.to_dict(), dict[str, Any])
    stats.compression = ""  # type: ignore[misc]
    assert_type(lsmkv.COMPILED, bool)
    assert_type(lsmkv.__version__, str)


def filtering() -> None:
    bloom = lsmkv.new_bloom_filter_policy(10)
    assert_type(bloom, lsmkv.BloomFilterPolicy)
    assert_type(bloom.name, str)
    assert_type(bloom.create_filter([b"k"]), bytes)
    assert_type(bloom.key_may_match(b"k", b""), bool)
    assert_type(bloom.hash_may_match(bloom.key_hash(b"k"), b""), bool)
    assert_type(bloom.probed_positions(1, b""), list[int])
    assert_type(lsmkv.BloomFilterPolicy.for_false_positive_rate(0.01), lsmkv.BloomFilterPolicy)
    bloom64 = lsmkv.Bloom64Policy(9.5)
    fuse = lsmkv.BinaryFusePolicy()
    for new in (bloom64, fuse):
        own: lsmkv.HashedFilterPolicy = new
        assert_type(own.hash_may_match(own.key_hash(b"k"), own.create_filter([b"k"])), bool)
        assert_type(new.create_filter_from_hashes([new.key_hash(b"k")]), bytes)
        assert_type(new.probed_positions(1, b""), list[int])
    assert_type(bloom.with_bits(9.5), lsmkv.BloomFilterPolicy)
    assert_type(bloom64.with_bits(9.5), lsmkv.Bloom64Policy)
    by_size: lsmkv.PrefixExtractor = lsmkv.FixedPrefix(8)
    by_delimiter: lsmkv.PrefixExtractor = lsmkv.DelimitedPrefix(b":")
    assert_type(by_size.extract(b"k"), bytes | None)
    DB(":memory:", bloom_filter_bits="auto:10", prefix_extractor=by_size)
    DB(":memory:", bloom_filter_bits=[16, 12.5, 10], prefix_extractor=by_delimiter)
    DB(":memory:", filter_policy=fuse, filter_layout="table", prefix_extractor=8)
    DB(":memory:", filter_policy=bloom64, prefix_extractor=b":", filter_last_level=False)
    DB(":memory:", prefix_extractor=lambda key: key[:2], prefix_extractor_name="example.Two")
    DB(":memory:", prefix_extractor=":")  # type: ignore[arg-type]
    asked_by_hash: lsmkv.HashedFilterPolicy = bloom
    assert_type(asked_by_hash.key_hash(b"k"), int)
    bytewise: lsmkv.Comparator = lsmkv.BytewiseComparator()
    assert_type(bytewise.compare(b"a", b"b"), int)
    assert_type(bytewise.find_shortest_separator(b"a", b"b"), bytes)
    assert_type(bytewise.find_short_successor(b"a"), bytes)


def failing(db: DB) -> None:
    try:
        db.get(b"k")
    except lsmkv.LockedError as error:
        assert_type(error.pid, int | None)
    except lsmkv.CorruptionError as error:
        assert_type(error.path, str | None)
        assert_type(error.offset, int | None)
        assert_type(error.reason, str)
        assert_type(error.located("path"), lsmkv.CorruptionError)
    except lsmkv.ComparatorMismatchError as error:
        assert_type(error.stored, str)
        assert_type(error.given, str)
    except (lsmkv.ForkedError, lsmkv.ClosedError) as error:
        assert_type(error, lsmkv.ForkedError | lsmkv.ClosedError)
        runtime: RuntimeError = error
        raise runtime from None
    except (lsmkv.NotFoundError, lsmkv.IOError) as error:
        assert_type(error.errno, int | None)
        from_the_system: OSError = error
        raise from_the_system from None
    except lsmkv.Error as error:
        assert_type(error, lsmkv.Error)
    kinds: list[type[lsmkv.Error]] = [
        lsmkv.ConflictError,
        lsmkv.DeadlockError,
        lsmkv.ForeignFormatError,
        lsmkv.DirectoryReplacedError,
        lsmkv.IteratorInvalidError,
        lsmkv.NestedCallError,
        lsmkv.OutcomeUnknownError,
        lsmkv.PermissionDeniedError,
        lsmkv.SequenceTooOldError,
        lsmkv.StaleViewError,
        lsmkv.ReadOnlyError,
        lsmkv.UnsupportedCompressionError,
        lsmkv.UnsupportedValueError,
    ]
    assert kinds


def mapping(path: pathlib.Path) -> None:
    with lsmkv.open(path, "c", 0o640, compression="snappy") as m:
        assert_type(m, lsmkv.mapping.KeyValueMapping)
        m["text"] = b"bytes"
        m[b"bytes"] = "text"
        m[1] = b""  # type: ignore[index]
        m["k"] = 1  # type: ignore[assignment]
        assert_type(m["k"], bytes)
        assert_type(m.get("k"), bytes | None)
        assert_type(m.get("k", 0), bytes | int)
        assert_type(m.pop("k"), bytes)
        assert_type(m.pop("k", None), bytes | None)
        assert_type(m.popitem(last=False), tuple[bytes, bytes])
        assert_type(m.setdefault("k", "v"), bytes)
        m.update({"k": "v"}, other=b"")
        m.update([(b"k", "v")])
        m.clear()
        del m["k"]
        assert_type(b"k" in m, bool)  # "k" too, but mypy --strict-equality takes it for a slip
        assert_type(len(m), int)
        assert_type(bool(m), bool)
        assert_type(iter(m), Iterator[bytes])
        assert_type(m.keys(), lsmkv.mapping.Keys)
        assert_type(m.values(), lsmkv.mapping.Values)
        assert_type(m.items(), lsmkv.mapping.Items)
        assert_type(list(m.items()), list[tuple[bytes, bytes]])
        assert_type(list(reversed(m.keys())), list[bytes])
        assert_type(m.keys() & {b"k"}, set[bytes])
        assert_type(m.db, DB)
        assert_type(m.read_only, bool)
        assert_type(m.closed, bool)
        m.sync()
        m.reorganize()
        m.close()
    lsmkv.open(path, "x")  # type: ignore[arg-type]


async def awaiting(path: pathlib.Path) -> None:
    async with lsmkv.aio.open_db(path, create_if_missing=True) as db:
        assert_type(db, lsmkv.aio.DB)
        assert_type(db.path, str)
        assert_type(db.name, str)
        assert_type(db.closed, bool)
        assert_type(db.options, lsmkv.Options)
        assert_type(await db.get(b"k"), bytes | None)
        assert_type(await db.get(b"k", 0), bytes | int)
        assert_type(await db.multi_get([b"k"]), list[bytes | None])
        assert_type(await db.contains(b"k"), bool)
        assert_type(await db.may_contain(b"k"), bool)
        assert_type(await db.explain(b"k"), lsmkv.Explanation)
        assert_type(await db.stats(), lsmkv.Stats)
        assert_type(await db.metrics_text(store="users"), str)
        assert_type(await db.get_property("leveldb.stats"), str | None)
        assert_type(await db.get_property(b"leveldb.stats"), bytes | None)
        assert_type(await db.approximate_size(b"a", b"b"), int)
        assert_type(await db.approximate_sizes((b"a", b"b")), list[int])
        assert_type(await db.verify(progress=report), list[lsmkv.CorruptionError])
        await db.put(b"k", b"v", sync=True)
        await db.put(b"k", 1)  # type: ignore[arg-type]
        await db.put(b"k", b"v", True)  # type: ignore[call-arg]
        await db.delete(key=b"k")
        await db.write(lsmkv.WriteBatch())
        await db.sync()
        await db.flush()
        await db.compact_range(progress=report)
        await db.checkpoint(path)
        await db.ingest([path], progress=report)
        await db.delete_range(b"a", None, prefix=b"a")
        await db.prefixed_db(b"a").delete_range(None, b"b")
        await db.check()
        await db.rewrite_tables(progress=report)
        assert_type(await db.tables(), list[lsmkv.TableInfo])
        assert_type(await db.written_keys([]), list[bytes])
        assert_type(await db.sequence(), int)
        assert_type(db.recovery, lsmkv.RecoveryReport)
        assert_type(await db.acknowledge_recovery(), list[str])
        await db.refresh()
        await awaiting_more(db)
    other = await lsmkv.aio.DB(path)
    assert_type(other, lsmkv.aio.DB)
    await other.close()
    assert_type(await lsmkv.aio.DB(path).open(), lsmkv.aio.DB)


async def awaiting_more(db: lsmkv.aio.DB) -> None:
    async with db.iterator(prefix=b"p", chunk=10) as iterator:
        assert_type(iterator, lsmkv.aio.Iterator[tuple[bytes, bytes]])
        assert_type([entry async for entry in iterator], list[tuple[bytes, bytes]])
        assert_type(await iterator.next(), tuple[bytes, bytes])
        assert_type(await iterator.prev(), tuple[bytes, bytes])
        await iterator.seek(b"k")
        await iterator.seek_to_start()
        await iterator.seek_to_stop()
        assert_type(iterator.closed, bool)
    await iterator.close()
    async for entry in db:
        assert_type(entry, tuple[bytes, bytes])
    assert_type(await db.iterator(include_value=False, limit=3).next(), bytes)
    assert_type(await db.iterator(include_key=False, chunk=5).next(), bytes)
    part = db.prefixed_db(b"p")
    assert_type(part, lsmkv.aio.PrefixedDB[lsmkv.aio.DB])
    assert_type(part.db, lsmkv.aio.DB)
    assert_type(part.prefixed_db(b"q").prefix, bytes)
    assert_type(await part.get(b"k"), bytes | None)
    assert_type(await part.contains(b"k"), bool)
    assert_type(await part.iterator(include_value=False).next(), bytes)
    assert_type(part.write_batch(), lsmkv.aio.WriteBatch)
    assert_type(part.snapshot(), lsmkv.aio.Snapshot)
    await part.put(b"k", b"v", sync=True)
    await part.delete(b"k")
    assert_type(await part.update(b"k", lambda old: old), bytes | None)
    assert_type(await part.run(lambda work: 1), int)
    async with db.snapshot() as snapshot:
        assert_type(snapshot, lsmkv.aio.Snapshot)
        assert_type(await snapshot.get(b"k"), bytes | None)
        assert_type(await snapshot.get(b"k", 0), bytes | int)
        assert_type(snapshot.iterator(), lsmkv.aio.Iterator[tuple[bytes, bytes]])
        assert_type((snapshot.closed, snapshot.sequence), tuple[bool, int])
        assert_type(await snapshot.contains(b"k"), bool)
    assert_type(await db.snapshot(), lsmkv.aio.Snapshot)
    await (await db.snapshot().open()).close()
    async with db.write_batch(transaction=False) as batch:
        assert_type(batch, lsmkv.aio.WriteBatch)
        batch.put(b"k", b"v")
        batch.delete(b"k")
        batch.append(lsmkv.WriteBatch())
        batch.append(batch)
        assert_type(len(batch), int)
        assert_type(batch.approximate_size(), int)
        await batch.write()
        batch.clear()
    async with db.transaction() as transaction:
        assert_type(transaction, lsmkv.aio.Transaction)
        assert_type(await transaction.get(b"k"), bytes | None)
        assert_type(await transaction.get(b"k", 0), bytes | int)
        assert_type(transaction.iterator(), lsmkv.aio.Iterator[tuple[bytes, bytes]])
        assert_type(await transaction.iterator(include_value=False, chunk=1).next(), bytes)
        transaction.put(b"k", b"v")
        transaction.delete(b"k")
        await transaction.commit()
        transaction.rollback()

    async def move(work: lsmkv.aio.Transaction) -> int:
        work.put(b"k", await work.get(b"old", b""))
        return 1

    async def change(old: bytes | None) -> bytes | None:
        return old

    assert_type(await db.run(move, sync=True), int)
    assert_type(await db.run(lambda work: 1, isolation="serializable"), int)
    assert_type(await db.update(b"k", change), bytes | None)
    assert_type(await db.update(b"k", lambda old: old, sync=True), bytes | None)


def as_plyvel(path: str) -> None:
    db = plyvel.DB(path, create_if_missing=True, bloom_filter_bits=10, comparator=None)
    part: plyvel.PrefixedDB[plyvel.DB] = db.prefixed_db(b"p")
    assert_type(db.get(b"k"), bytes | None)
    assert_type(db.get(b"k", b"", verify_checksums=None), bytes)
    assert_type(db.get_property(b"leveldb.stats"), bytes | None)
    db.get_property("leveldb.stats")  # type: ignore[arg-type]
    assert_type(db.approximate_sizes((b"a", b"b"), [b"c", b"d"]), list[int])
    db.put(b"k", b"v", sync=None)
    db.delete(b"k")
    with db.write_batch(transaction=True, sync=None) as batch:
        assert_type(batch, plyvel.WriteBatch)
        batch.append(part.write_batch())
        assert_type(batch.approximate_size(), int)
        batch.clear()
    assert_type(db.iterator(reverse=None), plyvel.Iterator[tuple[bytes, bytes]])
    assert_type(next(db.iterator(include_value=False)), bytes)
    assert_type(next(part.iterator(include_key=None)), bytes)
    assert_type(next(db.iterator(include_key=False, include_value=None)), None)
    assert_type(db.raw_iterator(fill_cache=None), plyvel.RawIterator)
    with db.snapshot() as snapshot:
        assert_type(snapshot, plyvel.Snapshot)
        assert_type(snapshot.get(b"k"), bytes | None)
        assert_type(snapshot.get(b"k", 0), bytes | int)
        assert_type(snapshot.iterator(prefix=b"a"), plyvel.Iterator[tuple[bytes, bytes]])
        assert_type(snapshot.raw_iterator(), plyvel.RawIterator)
    assert_type(part.get(b"k"), bytes | None)
    part.put(b"k", b"v")
    part.delete(b"k")
    assert_type(part.iterator(), plyvel.Iterator[tuple[bytes, bytes]])
    assert_type(part.raw_iterator(), plyvel.RawIterator)
    assert_type(part.snapshot(), plyvel.Snapshot)
    assert_type(part.write_batch(), plyvel.WriteBatch)
    assert_type(part.db, plyvel.DB)
    assert_type(db.name, Any)  # str, bytes or a path, as it was given
    db.close()
    repair: Callable[[str], None] = plyvel.repair_db
    repair(path)
    destroy: Callable[[str], None] = plyvel.destroy_db
    destroy(path)
    assert_type(plyvel.__version__, str)
    assert_type(plyvel.__leveldb_version__, str)
    errors: list[type[Exception]] = [
        plyvel.Error,
        plyvel.IOError,
        plyvel.CorruptionError,
        plyvel.IteratorInvalidError,
    ]
    assert errors


def merged(key: bytes, values: list[bytes]) -> bytes:
    return b"".join(values)


def building_shards(url: str) -> None:
    pairs: list[tuple[bytes, bytes]] = [(b"a", b"1")]
    version = bulk.build(
        pairs,
        pathlib.Path(url),
        shards=2,
        merge=merged,
        after=None,
        block_size=4096,
        compression="zstd",
        filter_policy=lsmkv.BinaryFusePolicy(),
        progress=lambda done, total, phase: None,
    )
    assert_type(version.number, int)
    with bulk.Workers(2) as workers:
        assert_type(workers.submit(len, b"k").result(), int)
        assert_type(bulk.build(pairs, url, executor=workers).pairs, int)
    executor: Executor = bulk.RayExecutor(object())
    executor.shutdown()
    for part in bulk.parts_of(pairs, key="k", value="v"):
        assert_type(part.label, str)
    repaired: bulk.SetRepair = bulk.repair(url, "new", progress=report)
    assert_type(repaired.made, shards.VersionDocument | None)
    shard: bulk.ShardRepair = repaired.shards[0]
    assert_type((shard.kept, shard.stated), tuple[int, int])
    assert_type(shard.plan, lsmkv.RepairPlan | None)
    pruned: bulk.Pruned = bulk.prune(url, keep=1, grace=0.0, dry_run=True)
    assert_type(pruned.versions, tuple[int, ...])
    assert_type([found.pairs for found in bulk.versions(url)], list[int])
    for change in bulk.diff(url, 1, 2):
        assert_type(change, bulk.PairChange)
        assert_type(change.kind, bulk.Change)


def reading_shards(url: str) -> None:
    limits = shards.Limits(attempts=2, timeout=1.5)
    with shards.open(url, cache_dir=pathlib.Path("c"), limits=limits, options={"a": 1}) as s:
        assert_type(s, shards.Shards)
        assert_type(s.get(b"k"), bytes | None)
        assert_type(s.get(b"k", 0), bytes | int)
        assert_type(s.multi_get([b"k", bytearray(b"l")]), list[bytes | None])
        assert_type(
            s.iterator(prefix=b"k", reverse=True), shards.ShardIterator[tuple[bytes, bytes]]
        )
        assert_type(next(s.iterator(include_value=False)), bytes)
        assert_type(s.explain(b"k"), shards.ShardExplanation)
        assert_type(s.stats(), shards.ShardsStats)
        survey: shards.VersionSurvey = s.verify()
        found: tuple[shards.ShardSurvey, ...] = survey.shards
        document: shards.VersionDocument = s.document
        entries: tuple[shards.ShardEntry, ...] = document.shards
        files: list[shards.StoredFile] = [entry.meta for entry in entries]
        assert_type(s.refresh(), bool)
        assert_type(s.versions(), list[int])
        assert_type(len(found) + len(files), int)
        s.warm()
        assert_type((s.version, s.closed, s.may_contain(b"k")), tuple[int, bool, bool])
        reading_shard_records(s, entries[0])
        s.close()


def reading_shard_records(s: shards.Shards, entry: shards.ShardEntry) -> None:
    with s.iterator() as iterator:
        assert_type(iterator.prev(), tuple[bytes, bytes])
        iterator.seek(b"k")
        iterator.seek_to_start()
        iterator.seek_to_stop()
        iterator.close()
        assert_type(iterator.closed, bool)
    explained = s.explain(b"k")
    assert_type((explained.requests, explained.requests_saved), tuple[int, int])
    assert_type(explained.requests_without_filters, int)
    assert_type([line.text for line in explained.outline()], list[str])
    assert_type((explained.to_dict(), s.stats().to_dict()), tuple[dict[str, Any], dict[str, Any]])
    survey = s.verify()
    assert_type((survey.severity, survey.shards[0].severity), tuple[int, int])
    assert_type(survey.shards[0].tables[0].name, str)
    document = s.document
    assert_type((document.pairs, document.shard_for(b"k")), tuple[int, int])
    assert_type(document.decode(document.encode(), "source"), shards.VersionDocument)
    document.check()
    for name, file in (*document.objects(), *entry.objects()):
        assert_type((name, file), tuple[str, shards.StoredFile])


async def awaiting_shards(url: str) -> None:
    async with lsmkv.aio.open_shards(url, cache_bytes=5) as s:
        assert_type(s, lsmkv.aio.Shards)
        assert_type(await s.get(b"k"), bytes | None)
        assert_type(await s.multi_get([b"k"]), list[bytes | None])
        assert_type(await s.contains(b"k"), bool)
        assert_type(s.iterator(prefix=b"k"), lsmkv.aio.Iterator[tuple[bytes, bytes]])
        assert_type((s.version, s.url, s.closed), tuple[int, str, bool])
        assert_type(s.document, shards.VersionDocument)
        assert_type(await s.versions(), list[int])
        assert_type(await s.verify(progress=report), shards.VersionSurvey)
        assert_type(await s.explain(b"k"), shards.ShardExplanation)
        assert_type(await s.refresh(version=3), bool)
        assert_type(await s.may_contain(b"k"), bool)
        assert_type(await s.stats(), shards.ShardsStats)
        await s.warm()
