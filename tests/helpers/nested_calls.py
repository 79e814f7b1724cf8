"""Calls of a store in the middle of another call of the same thread, at every line of it.

A signal handler and a finalizer that the garbage collector runs look alike from inside the engine:
code that runs between two steps of a call and returns, or, a handler alone, raises.  Here a trace
function does that, so only interpreted code is interrupted.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import sortedcontainers

import lsmkv
import lsmkv.plyvel
from lsmkv import ClosedError, MemoryEnv, NestedCallError
from lsmkv.engine.options import BackgroundWork
from lsmkv.engine.util import signals
from lsmkv.mapping import KeyValueMapping

_TRACED = tuple(
    os.path.dirname(module.__file__ or "") + os.sep for module in (lsmkv, sortedcontainers)
)
OPTIONS: dict[str, Any] = {
    "create_if_missing": True,
    "write_buffer_size": 3000,
    "max_file_size": 4000,
    "block_size": 300,
    "compression": None,
    "block_cache": None,
    "lru_cache_size": 2000,
}
VALUE = bytes(40)


class World:
    """An open store, what it must hold, and a count that makes keys new."""

    def __init__(self, background: BackgroundWork = "thread") -> None:
        self.env = MemoryEnv()
        self.background: BackgroundWork = background
        self.model: dict[bytes, bytes] = {}
        self.count = 0
        self.checkpoints = 0
        self.turns = 0
        self.open()
        for _ in range(60):
            self.put(b"old")
        self.put(b"fixed")
        self.db.flush()
        for _ in range(5):
            self.put(b"new")
        self.put(b"fixed")
        self.fixed = sorted(key for key in self.model if key.startswith(b"fixed"))

    def open(self) -> None:
        self.db = lsmkv.DB("db", env=self.env, background=self.background, **OPTIONS)
        self.mapping = KeyValueMapping(self.db)
        self.iterator = self.db.iterator()
        self.take_snapshot()

    def take_snapshot(self) -> None:
        self.snapshot = self.db.snapshot()
        self.seen = dict(self.model)

    def key(self, kind: bytes) -> bytes:
        self.count += 1
        return kind + b"%05d" % self.count

    def put(self, kind: bytes, **options: bool) -> None:
        key = self.key(kind)
        self.db.put(key, VALUE, **options)
        self.model[key] = VALUE

    def any_key(self) -> bytes:
        """A key that is in a table, or in memory; no call deletes it."""
        self.turns += 1
        return self.fixed[self.turns % 2]

    def kept(self) -> set[bytes]:
        """The keys that a call must see, whatever call is under way."""
        return {key for key in self.model if not key.startswith((b"old", b"nested"))}

    def reopen(self) -> None:
        """Close and open the store, and look whether it holds what it must."""
        self.db.close()
        self.open()
        self.check()

    def check(self) -> None:
        held = dict(self.db.iterator())
        assert held == self.model, (
            f"missing {sorted(self.model.keys() - held.keys())},"
            f" added {sorted(held.keys() - self.model.keys())}"
        )
        self.db.check()


class Call(NamedTuple):
    """A call of the store: what it does to the model is done when it has returned."""

    name: str
    run: Callable[[World, bytes], None]


def _get(world: World, _kind: bytes) -> None:
    key = world.any_key()
    assert world.db.get(key) == VALUE
    assert world.db.get(b"absent") is None
    assert key in world.db


def _multi_get(world: World, _kind: bytes) -> None:
    key = world.any_key()
    assert world.db.multi_get([b"absent", key]) == [None, VALUE]


def _scan(world: World, _kind: bytes) -> None:
    with world.db.snapshot() as snapshot:
        keys = list(snapshot.iterator(include_value=False))
        assert keys == sorted(set(keys))
        assert world.kept() <= set(keys)
        backward = list(snapshot.iterator(include_value=False, reverse=True))
        assert backward[::-1] == keys


def _raw(world: World, _kind: bytes) -> None:
    key = world.any_key()
    raw = world.db.raw_iterator()
    raw.seek(key)
    assert raw.key() == key
    raw.next()
    raw.close()


def _snapshot(world: World, _kind: bytes) -> None:
    with world.db.snapshot() as snapshot:
        held = dict(snapshot.iterator())
        assert world.kept() <= held.keys()
        assert snapshot.get(world.any_key()) == VALUE
    assert dict(world.snapshot.iterator()) == world.seen


def _explain(world: World, _kind: bytes) -> None:
    assert world.db.explain(world.any_key()).found
    assert world.db.may_contain(world.any_key())


def _figures(world: World, _kind: bytes) -> None:
    world.db.stats()
    world.db.get_property("leveldb.stats")
    world.db.approximate_size(b"a", b"z")
    world.db.tables()
    repr(world.db)


def _written_keys(world: World, _kind: bytes) -> None:
    assert set(world.db.written_keys(world.db.tables())) >= world.kept()


def _verify(world: World, _kind: bytes) -> None:
    assert world.db.verify() == []


def _put(world: World, kind: bytes) -> None:
    world.put(kind)


def _put_sync(world: World, kind: bytes) -> None:
    world.put(kind, sync=True)


def _overwrite(world: World, _kind: bytes) -> None:
    world.db.put(world.any_key(), VALUE)


def _delete(world: World, _kind: bytes) -> None:
    for key in sorted(world.model):
        if key.startswith(b"old"):
            world.db.delete(key)
            world.model.pop(key, None)
            return


def _batch(world: World, kind: bytes) -> None:
    keys = [world.key(kind) for _ in range(3)]
    with world.db.write_batch() as batch:
        for key in keys:
            batch.put(key, VALUE)
    world.model.update(dict.fromkeys(keys, VALUE))


def _transaction(world: World, kind: bytes) -> None:
    key = world.key(kind)
    with world.db.transaction() as transaction:
        assert transaction.get(key) is None
        transaction.put(key, VALUE)
        assert list(transaction.iterator(prefix=key)) == [(key, VALUE)]
    world.model[key] = VALUE


def _prefixed(world: World, kind: bytes) -> None:
    key = world.key(kind)
    part = world.db.prefixed_db(kind)
    part.put(key[len(kind) :], VALUE)
    world.model[key] = VALUE


def _map(world: World, kind: bytes) -> None:
    key = world.key(kind)
    world.mapping[key] = VALUE
    world.model[key] = VALUE
    assert world.mapping.get(world.any_key()) == VALUE


def _map_set_default(world: World, kind: bytes) -> None:
    key = world.key(kind)
    assert world.mapping.setdefault(key, VALUE) == VALUE
    world.model[key] = VALUE


def _sync(world: World, _kind: bytes) -> None:
    world.db.sync()


def _flush(world: World, _kind: bytes) -> None:
    world.db.flush()


def _compact(world: World, _kind: bytes) -> None:
    world.db.compact_range()


def _checkpoint(world: World, _kind: bytes) -> None:
    world.checkpoints += 1
    world.db.checkpoint(f"copy{world.checkpoints}")


def _ingest(world: World, kind: bytes) -> None:
    key = world.key(kind)
    name = f"{key.decode()}.ldb"
    with lsmkv.TableWriter(name, env=world.env) as table:
        table.add(key, VALUE)
    world.db.ingest([name])
    world.model[key] = VALUE


def _delete_range(world: World, kind: bytes) -> None:
    key = world.key(kind)
    world.db.put(key, VALUE)
    world.model[key] = VALUE
    world.db.flush()
    world.db.delete_range(key, key + b"\0")
    del world.model[key]


def _iterate(world: World, _kind: bytes) -> None:
    world.iterator.seek_to_start()
    next(world.iterator, None)


def _close(world: World, _kind: bytes) -> None:
    world.db.close()
    assert world.db.closed


READS = [
    Call("get", _get),
    Call("multi_get", _multi_get),
    Call("scan", _scan),
    Call("raw_iterator", _raw),
    Call("snapshot", _snapshot),
    Call("explain", _explain),
    Call("figures", _figures),
    Call("written_keys", _written_keys),
    Call("verify", _verify),
    Call("iterate", _iterate),
]
WRITES = [
    Call("put", _put),
    Call("put_sync", _put_sync),
    Call("overwrite", _overwrite),
    Call("delete", _delete),
    Call("batch", _batch),
    Call("transaction", _transaction),
    Call("prefixed", _prefixed),
    Call("map", _map),
    Call("map_set_default", _map_set_default),
]
OTHERS = [
    Call("sync", _sync),
    Call("flush", _flush),
    Call("compact_range", _compact),
    Call("checkpoint", _checkpoint),
    Call("ingest", _ingest),
    Call("delete_range", _delete_range),
    Call("close", _close),
]
CALLS = [*READS, *WRITES, *OTHERS]
ALWAYS_ANSWER = {call.name for call in READS} | {"put", "overwrite", "delete", "batch"}
"""They may not be refused, wherever they come."""


class Interrupted(BaseException):
    """What a handler raises."""


@contextlib.contextmanager
def at_line(line: int, nested: Callable[[], None], raises: bool) -> Iterator[list[str]]:
    """Call ``nested`` before the ``line``-th line that the block runs in the engine.

    Yields a list, in which the place is noted; at the end, how many lines there were, if it was not
    among them.  If ``nested`` raises, it comes where a
    signal's handler may: CPython looks for signals after calls, so not just behind a ``with``, nor
    at its end, nor at a ``try``, which calls nothing.
    """
    left = line
    place: list[str] = []

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_TRACED):
            return None
        if event == "line":
            if raises:
                if frame.f_code.co_filename == signals.__file__ or signals.deferred._depth > 0:
                    return trace  # no handler runs there
                here = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
                if here.startswith(("with ", "try:")):
                    return trace
            left -= 1
            if left == 0:
                place.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
                nested()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield place
    finally:
        sys.settrace(before)
    if not place:
        place.append(str(line - left))


def count_lines(world: World, outer: Call, raises: bool) -> int:
    """How many lines the call runs now; it is made."""
    most = 1 << 40
    with at_line(most, lambda: None, raises) as place:
        outer.run(world, b"outer")
    if world.db.closed:
        world.open()
    return int(place[0])


def interrupt(world: World, outer: Call, nested: Call, line: int, raises: bool) -> str:
    """Make the nested call at one line of the outer call; returns the place, "" if it has no such
    line.  Asserts that nothing is lost."""
    unexpected: list[BaseException] = []

    def intrude() -> None:
        try:
            nested.run(world, b"nested")
        except NestedCallError:
            assert nested.name not in ALWAYS_ANSWER
        except ClosedError:
            assert "close" in (outer.name, nested.name)
        except BaseException as error:
            unexpected.append(error)
        if raises:
            raise Interrupted

    before = dict(world.model)
    interrupted = False
    with at_line(line, intrude, raises) as place:
        try:
            outer.run(world, b"outer")
        except Interrupted:
            interrupted = True
        except ClosedError:
            assert "close" in (outer.name, nested.name)
            interrupted = True
        except lsmkv.ConflictError:
            assert outer.name == "transaction"
            interrupted = True
    where = place[0]
    reached = ":" in where
    if unexpected:
        raise AssertionError(f"{nested.name} in {outer.name} at {where}") from unexpected[0]
    try:
        if nested.name == "close" and reached:
            assert world.db.closed, "it is open"
        reopened = world.db.closed
        if reopened:
            world.db.close()
            world.open()
        if interrupted:
            settle(world, before)
            if reopened:
                world.take_snapshot()
        world.check()
    except Exception as error:
        error.add_note(f"{nested.name} in {outer.name} at {where}")
        raise
    return where if reached else ""


def settle(world: World, before: dict[bytes, bytes]) -> None:
    """Take over what an interrupted outer call has written, or not: all of it, or nothing."""
    held = dict(world.db.iterator())
    outer = {key for key in held.keys() - world.model.keys() if key.startswith(b"outer")}
    world.model.update(dict.fromkeys(outer, VALUE))
    for key in world.model.keys() - held.keys():
        assert key in before, f"{key!r} is lost"
        assert key.startswith(b"old"), f"{key!r} is lost"
        del world.model[key]
