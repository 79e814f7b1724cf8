"""Keys and values of classes derived from bytes, at every entry point, and other buffers.

``CALLS`` has a call for each public function that takes a key or a value; a test reads the source
and fails for one that is missing.
"""

from __future__ import annotations

import array
import ast
import asyncio
import ctypes
import importlib
import inspect
import mmap
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest
from parsed import parsed

import lsmkv
import lsmkv.aio
import lsmkv.bulk
import lsmkv.mapping
import lsmkv.plyvel
import lsmkv.shards
from lsmkv.engine.util.arguments import as_bytes

PACKAGE = Path(lsmkv.__file__).parent


def _refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a method of the caller's class runs in the engine")


class Hostile(bytes):
    """Bytes none of whose methods may be called."""

    def __reduce__(self) -> tuple[type[Hostile], tuple[bytes]]:
        return Hostile, (bytes.__getitem__(self, slice(None)),)


for name in dir(bytes):
    kept = ("__new__", "__init__", "__class__", "__getattribute__", "__repr__", "__doc__")
    if callable(getattr(bytes, name)) and not name.startswith(("__reduce", *kept)):
        setattr(Hostile, name, _refuse)

KEY, OTHER, VALUE = Hostile(b"key"), Hostile(b"other"), Hostile(b"value")
ABSENT = Hostile(b"absent")


class Place(ExitStack):
    """A store with one pair in a table and one in the memtable."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.db = self.enter_context(lsmkv.plyvel.DB(":memory:"))
        self.plain = self.enter_context(lsmkv.DB(":memory:"))
        self.db.put(b"key", b"value")
        self.db.flush()
        self.db.put(b"other", b"value")
        self.mapping = lsmkv.mapping.KeyValueMapping(self.db)

    def shards(self) -> lsmkv.shards.Shards:
        pairs = [(KEY, VALUE), (OTHER, VALUE)]
        lsmkv.bulk.build(pairs, self.directory / "shards", shards=2)
        return self.enter_context(lsmkv.shards.open(self.directory / "shards"))

    def pairs(self) -> dict[bytes, bytes]:
        found = dict(lsmkv.DB.iterator(self.db))
        assert {*map(type, found), *map(type, found.values())} <= {bytes}
        return found


BOTH = {b"key": b"value", b"other": b"value"}
Found = object
Call = Callable[[Place], tuple[Found, Found]]
"""What a call returns, and what it has to return."""
CALLS: dict[str, Call] = {}


def call(*names: str) -> Callable[[Call], Call]:
    """The call covers these functions: ``module.Class.method``, without ``lsmkv``."""

    def note(function: Call) -> Call:
        CALLS.update(dict.fromkeys(names, function))
        return function

    return note


def writing(write: Callable[[Place], object]) -> Call:
    """A call after which the store holds the two pairs, and a third for ``ABSENT``."""

    def run(place: Place) -> tuple[Found, Found]:
        write(place)
        place.db.compact_range()
        return place.pairs(), {**BOTH, b"absent": b"value"}

    return run


def removing(remove: Callable[[Place], object]) -> Call:
    """A call after which ``KEY`` is gone, for a Get as for a scan."""

    def run(place: Place) -> tuple[Found, Found]:
        remove(place)
        found = place.db.get(b"key"), place.pairs()
        place.db.compact_range()
        return (*found, place.pairs()), (None, {b"other": b"value"}, {b"other": b"value"})

    return run


def readers(place: Place) -> Iterator[Any]:
    """All that has the reading methods, over the same pairs."""
    yield place.db
    yield place.db.snapshot()
    yield place.db.prefixed_db(b"")
    yield place.db.prefixed_db(Hostile(b"")).snapshot()
    place.plain.put(KEY, VALUE)
    place.plain.put(OTHER, VALUE)
    yield place.plain
    yield place.plain.snapshot()
    yield place.plain.prefixed_db(b"")
    yield place.shards()


def prefixed_parts(place: Place) -> Iterator[Any]:
    for db in (place.db, place.plain):
        part = db.prefixed_db(Hostile(b"p")).prefixed_db(Hostile(b":"))
        part.put(KEY, VALUE)
        part.put(OTHER, VALUE)
        part.delete(OTHER)
        yield part
        yield part.snapshot()


@call(
    *("engine.db.db.DB.get", "engine.db.handles.readable.Readable.get", "shards.shards.Shards.get"),
    *("engine.db.db.DB.__contains__", "engine.db.handles.readable.Readable.__contains__"),
    *("shards.shards.Shards.__contains__", "plyvel._Reading.get"),
)
def get(place: Place) -> tuple[Found, Found]:
    found = [
        (r.get(KEY), r.get(OTHER), r.get(ABSENT), KEY in r, ABSENT in r) for r in readers(place)
    ]
    return found, [(b"value", b"value", None, True, False)] * len(found)


@call(
    *("engine.db.handles.scannable.Scannable.iterator", "shards.shards.Shards.iterator"),
    *("plyvel._Reading.iterator", "shards.iterator.ShardIterator.seek"),
    *("engine.db.read.iterator.Iterator.seek", "engine.db.read.iterator.LimitedIterator.seek"),
)
def iterate(place: Place) -> tuple[Found, Found]:
    found = []
    for reader in readers(place):
        bounded = list(reader.iterator(start=KEY, stop=OTHER, include_stop=True))
        within = list(reader.iterator(prefix=Hostile(b"k"), reverse=True))
        moved = reader.iterator(include_value=False, limit=1)
        moved.seek(OTHER)
        found.append((bounded, within, moved.next()))
    return found, [(list(BOTH.items()), [(b"key", b"value")], b"other")] * len(found)


@call(
    *("engine.db.db.DB.raw_iterator", "engine.db.handles.readable.Readable.raw_iterator"),
    *("plyvel._Reading.raw_iterator", "engine.db.read.raw_iterator.RawIterator.seek"),
)
def raw(place: Place) -> tuple[Found, Found]:
    found = []
    for reader in list(readers(place))[:-1]:
        raw = reader.raw_iterator(prefix=Hostile(b"k"))
        raw.hide_prefix(Hostile(b"k"))
        raw.seek(Hostile(b"e"))
        found.append(raw.item())
    return found, [(b"ey", b"value")] * len(found)


@call(
    *(
        "engine.db.handles.prefixed.PrefixedDB.prefixed_db",
        "engine.db.handles.prefixed.PrefixedDB.put",
    ),
    *(
        "engine.db.handles.prefixed.PrefixedDB.delete",
        "engine.db.db.DB.prefixed_db",
        "plyvel.DB.prefixed_db",
    ),
)
def prefixes(place: Place) -> tuple[Found, Found]:
    found = [
        (part.get(KEY), part.get(OTHER), list(part), list(part.iterator(start=KEY, stop=OTHER)))
        for part in prefixed_parts(place)
    ]
    pair = (b"key", b"value")
    return found, [(b"value", None, [pair], [pair])] * len(found)


@call("engine.db.db.DB.multi_get", "shards.shards.Shards.multi_get")
def multi_get(place: Place) -> tuple[Found, Found]:
    keys = [OTHER, ABSENT, KEY, KEY]
    found = [place.db.multi_get(keys), place.shards().multi_get(keys)]
    return found, [[b"value", None, b"value", b"value"]] * 2


@call("engine.db.db.DB.may_contain", "shards.shards.Shards.may_contain")
def may_contain(place: Place) -> tuple[Found, Found]:
    found = [(db.may_contain(KEY), db.may_contain(ABSENT)) for db in (place.db, place.shards())]
    return found, [(True, False)] * 2


@call("engine.db.db.DB.explain", "shards.shards.Shards.explain")
def explain(place: Place) -> tuple[Found, Found]:
    explanations = [place.db.explain(KEY), place.db.explain(OTHER), place.shards().explain(KEY)]
    return [str(one).split(":")[0] for one in explanations], [
        "get 'key'",
        "get 'other'",
        "get 'key'",
    ]


call("engine.db.db.DB.put")(writing(lambda place: lsmkv.DB.put(place.db, ABSENT, VALUE)))
call("plyvel._Writing.put")(writing(lambda place: place.db.put(ABSENT, VALUE)))
call("mapping.KeyValueMapping.__setitem__")(
    writing(lambda place: place.mapping.__setitem__(ABSENT, VALUE))
)
call("mapping.KeyValueMapping.setdefault")(
    writing(lambda place: place.mapping.setdefault(ABSENT, VALUE))
)
call("mapping.KeyValueMapping.update")(
    writing(lambda place: place.mapping.update([(ABSENT, VALUE)]))
)
call("engine.db.db.DB.delete")(removing(lambda place: lsmkv.DB.delete(place.db, KEY)))
call("plyvel._Writing.delete")(removing(lambda place: place.db.delete(KEY)))
call("mapping.KeyValueMapping.__delitem__")(removing(lambda place: place.mapping.__delitem__(KEY)))
call("mapping.KeyValueMapping.pop")(removing(lambda place: place.mapping.pop(KEY)))


@call(
    *("engine.format.batch.WriteBatch.put", "engine.format.batch.WriteBatch.delete"),
    *(f"engine.db.handles.prefixed.PrefixedWriteBatch.{name}" for name in ("put", "delete")),
    *("plyvel.WriteBatch.put", "plyvel.WriteBatch.delete"),
)
def batches(place: Place) -> tuple[Found, Found]:
    plain, bound = lsmkv.WriteBatch(), place.db.write_batch()
    for batch in (plain, bound):
        batch.put(KEY, VALUE)
        batch.put(ABSENT, VALUE)
        batch.delete(KEY)
    bound.write()
    with place.db.prefixed_db(b"p").write_batch() as batch:
        batch.put(KEY, VALUE)
        batch.delete(KEY)
    kinds = {type(part) for operation in plain.operations for part in operation}
    kept = {b"other": b"value", b"absent": b"value"}
    return (place.pairs(), kinds), (kept, {bytes, type(None)})


@call(
    *("engine.db.db.DB.update", "engine.db.handles.prefixed.PrefixedDB.update"),
    *(
        "engine.db.handles.prefixed.PrefixedTransaction.get",
        "engine.db.handles.prefixed.PrefixedTransaction.put",
    ),
    *("engine.db.handles.prefixed.PrefixedTransaction.delete",),
)
def updates(place: Place) -> tuple[Found, Found]:
    def move(transaction: lsmkv.Transaction) -> bytes | None:
        value = transaction.get(KEY)
        entries = transaction.iterator(start=KEY, stop=Hostile(b"l"), include_value=False)
        entries.seek(KEY)
        assert list(entries) == [b"key"]
        transaction.put(OTHER, VALUE)
        transaction.delete(KEY)
        return value

    part = place.db.prefixed_db(Hostile(b"part:"))
    found = [
        place.db.update(ABSENT, lambda old: VALUE),
        place.db.get(ABSENT),
        part.update(KEY, lambda old: VALUE),
        part.run(move),
        list(part),
    ]
    return found, [b"value", b"value", b"value", b"value", [(b"other", b"value")]]


@call(
    *(
        "engine.db.handles.transaction.Transaction.get",
        "engine.db.handles.transaction.Transaction.put",
    ),
    *("engine.db.handles.transaction.Transaction.delete",),
)
def transactions(place: Place) -> tuple[Found, Found]:
    with place.db.transaction() as transaction:
        seen = transaction.get(KEY)
        transaction.put(ABSENT, VALUE)
        transaction.delete(KEY)
        after = transaction.get(ABSENT), transaction.get(KEY)
    return (seen, after, place.db.get(KEY)), (b"value", (b"value", None), None)


@call(
    *("engine.db.admin.maintenance.Maintenance.compact_range", "plyvel.DB.approximate_sizes"),
    *("engine.db.admin.maintenance.Maintenance.approximate_size",),
    *("engine.db.admin.maintenance.Maintenance.approximate_sizes",),
)
def ranges(place: Place) -> tuple[Found, Found]:
    place.db.compact_range(KEY, OTHER)
    size = place.db.approximate_size(KEY, OTHER)
    sizes = lsmkv.DB.approximate_sizes(place.db, (KEY, OTHER))
    plain = place.db.approximate_size(b"key", b"other")
    return (size, sizes, place.db.approximate_sizes([KEY, OTHER])), (plain, [plain], [plain])


@call("shared.shared_db.SharedDB.compact_range")
def shared_ranges(place: Place) -> tuple[Found, Found]:
    """Of a member: the keys are sent to the owner."""
    path = place.directory / "shared"
    with (
        lsmkv.SharedDB(path, create_if_missing=True) as owner,
        lsmkv.SharedDB(path) as member,
    ):
        member.put(KEY, VALUE)
        member.compact_range(KEY, OTHER)
        return dict(owner), {b"key": b"value"}


@call(
    *("engine.db.admin.maintenance.Maintenance.delete_range",),
    *("engine.db.handles.prefixed.PrefixedDB.delete_range", "aio.db.DB.delete_range"),
    *("shared.shared_db.SharedDB.delete_range", "aio.prefixed.PrefixedDB.delete_range"),
)
def deleted_ranges(place: Place) -> tuple[Found, Found]:
    lsmkv.DB.delete_range(place.db, KEY, OTHER)
    found = [place.pairs()]
    path = place.directory / "shared"
    with (
        lsmkv.SharedDB(path, create_if_missing=True) as owner,
        lsmkv.SharedDB(path) as member,
    ):
        for key in (b"key", b"other", b"pkey", b"pother"):
            member.put(key, b"value")
        member.delete_range(KEY, OTHER)
        member.prefixed_db(b"p").delete_range(KEY, None, prefix=KEY)
        found.append(dict(owner))

    async def main() -> dict[bytes, bytes]:
        async with lsmkv.aio.open_db(":memory:") as db:
            for key in (b"key", b"other", b"pkey", b"pother"):
                await db.put(key, b"value")
            await db.delete_range(KEY, OTHER)
            await db.prefixed_db(b"p").delete_range(KEY, None, prefix=KEY)
            return {key: value async for key, value in db}

    found.append(asyncio.run(main()))
    left = {b"other": b"value", b"pother": b"value"}
    return found, [{b"other": b"value"}, left, left]


@call("engine.db.admin.table_writer.TableWriter.add")
def tables(place: Place) -> tuple[Found, Found]:
    path = place.directory / "made.ldb"
    with lsmkv.TableWriter(path) as table:
        table.add(KEY, VALUE)
        table.add(OTHER, VALUE)
    with lsmkv.DB(place.directory / "db", create_if_missing=True) as db:
        db.ingest([path])
        return (db.get(KEY), dict(db)), (b"value", BOTH)


@call(
    *("mapping.KeyValueMapping.__getitem__", "mapping.KeyValueMapping.get"),
    *("mapping.KeyValueMapping.__contains__", "mapping.Keys.__contains__"),
    *("mapping.Values.__contains__", "mapping.Items.__contains__"),
)
def mappings(place: Place) -> tuple[Found, Found]:
    m = place.mapping
    keys = m.keys()
    inside = KEY in m, KEY in keys, VALUE in m.values(), (KEY, VALUE) in m.items()
    return (m[KEY], m.get(KEY), m.get(ABSENT), inside), (b"value", b"value", None, (True,) * 4)


@call(
    *("aio.db.DB.put", "aio.db.DB.delete", "aio.readable.Readable.contains"),
    *("aio.db.DB.may_contain", "aio.db.DB.multi_get", "aio.db.DB.explain"),
    *("aio.readable.Readable.get", "aio.updating.Updatable.update"),
    *("aio.readable.Scannable.iterator", "aio.iterator.Iterator.seek", "aio.db.DB.compact_range"),
    *("aio.db.DB.approximate_size", "aio.db.DB.approximate_sizes", "aio.batch.WriteBatch.put"),
    *("aio.batch.WriteBatch.delete", "aio.transaction.Transaction.get"),
    *("aio.transaction.Transaction.put", "aio.transaction.Transaction.delete"),
    *("aio.db.DB.prefixed_db", "aio.prefixed.PrefixedDB.prefixed_db"),
    *("aio.prefixed.PrefixedDB.put", "aio.prefixed.PrefixedDB.delete"),
)
def awaited(place: Place) -> tuple[Found, Found]:
    async def main() -> list[object]:
        async with lsmkv.aio.open_db(":memory:") as db:
            await db.put(KEY, VALUE)
            await db.put(OTHER, VALUE)
            async with db.write_batch() as batch:
                batch.put(ABSENT, VALUE)
                batch.delete(ABSENT)
            async with db.transaction() as transaction:
                seen = await transaction.get(KEY)
                transaction.put(ABSENT, VALUE)
                transaction.delete(OTHER)
            await db.compact_range(KEY, OTHER)
            keys = db.iterator(start=ABSENT, stop=OTHER, include_value=False)
            await keys.seek(KEY)
            found = [
                await db.get(KEY),
                await db.contains(OTHER),
                await db.may_contain(KEY),
                await db.multi_get([KEY, OTHER]),
                (await db.explain(KEY)).found,
                await db.approximate_size(KEY, OTHER) >= 0,
                await db.approximate_sizes((KEY, OTHER)) != [],
                [key async for key in keys],
                seen,
            ]
            await db.delete(KEY)
            part = db.prefixed_db(Hostile(b"p")).prefixed_db(Hostile(b":"))
            await part.put(KEY, VALUE)
            found.append((await part.contains(KEY), await part.get(KEY)))
            await part.delete(KEY)
            found.append(await db.update(KEY, lambda old: VALUE))
            await db.delete(KEY)
            return [*found, [pair async for pair in db]]

    pairs = [(b"absent", b"value")]
    found = asyncio.run(main())
    got = [b"value", False, True, [b"value", None], True, True, True, [b"key"], b"value"]
    got += [(True, b"value"), b"value", pairs]
    return found, got


@call(
    *("aio.shards.Shards.multi_get", "aio.shards.Shards.may_contain"),
    *("aio.shards.Shards.explain",),
)
def awaited_shards(place: Place) -> tuple[Found, Found]:
    place.shards().close()

    async def main() -> list[object]:
        async with lsmkv.aio.open_shards(place.directory / "shards") as s:
            return [
                await s.multi_get([KEY, ABSENT]),
                await s.contains(KEY),
                await s.may_contain(OTHER),
                (await s.explain(KEY)).key,
            ]

    return asyncio.run(main()), [[b"value", None], True, True, b"key"]


EVERY = {function: name for name, function in reversed(CALLS.items())}


@pytest.mark.parametrize("function", EVERY, ids=EVERY.values())
def test_no_method_of_a_class_derived_from_bytes_is_called(function: Call, tmp_path: Path) -> None:
    with Place(tmp_path) as place:
        found, expected = function(place)
        assert found == expected


def test_every_function_that_takes_keys_or_values_is_called() -> None:
    assert {*_takers()} == {*CALLS}


def _takers() -> Iterator[str]:
    """The public functions whose annotations name a key, a value, or an iterator's bounds."""
    internal = {
        "engine/db/read/reader.py",
        "engine/db/compact/obsolete.py",
        "engine/db/tree/listener.py",
        "shared/following.py",
        "files/manifests.py",  # contains levels and numbers of tables
        "engine/util/arguments.py",
    }
    protocols = ("Steps", "Iterable", "RawIterable", "PrefixableDB", "SupportsKeys")
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        # The keys of a cache are any objects; its codec makes bytes of them.
        if inside.parts[0] in ("tools", "server", "cache") or inside.as_posix() in internal:
            continue
        module = ".".join(inside.with_suffix("").parts)
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.ClassDef) or node.name in protocols:
                continue
            for function in node.body:
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    kind = f"{module}.{node.name}"
                    if _takes(function) or _forwards(function, kind):
                        yield f"{kind}.{function.name}"


def _takes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if function.name == "__contains__":
        return True
    if function.name.startswith("_") and function.name not in (
        "__getitem__",
        "__setitem__",
        "__delitem__",
    ):
        return False
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return _names_bytes(ast.unparse(one.annotation) for one in every if one and one.annotation)


def _forwards(function: ast.FunctionDef | ast.AsyncFunctionDef, kind: str) -> bool:
    """Whether it has the arguments of another function, which takes some."""
    if not any("forwarded(" in ast.unparse(one) for one in function.decorator_list):
        return False
    module, _, name = f"lsmkv.{kind}".rpartition(".")
    method = getattr(getattr(importlib.import_module(module), name), function.name)
    every = inspect.signature(method).parameters.values()
    return _names_bytes(str(one.annotation) for one in every)


def _names_bytes(annotations: Iterable[str]) -> bool:
    return any(word in text for text in annotations for word in ("BytesLike", "Text", "Arguments]"))


# What a caller's objects return


class ByBytes:
    """The bytewise order, as a class that lsmkv does not know."""

    name = "example.ByBytes"

    def compare(self, a: bytes, b: bytes) -> int:
        assert type(a) is type(b) is bytes
        return (a > b) - (a < b)

    def find_shortest_separator(self, start: bytes, limit: bytes) -> bytes:
        return Hostile(lsmkv.BytewiseComparator().find_shortest_separator(start, limit))

    def find_short_successor(self, key: bytes) -> bytes:
        return Hostile(lsmkv.BytewiseComparator().find_short_successor(key))


class EveryKey:
    name = "example.EveryKey"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        assert {*map(type, keys)} == {bytes}
        return Hostile(b"\0".join(keys))

    def key_may_match(self, key: bytes, filter_data: bytes) -> bool:
        assert type(key) is bytes
        assert type(filter_data) is bytes
        return key in filter_data.split(b"\0")


class FirstByte:
    name = "example.FirstByte"

    def extract(self, key: bytes) -> bytes | None:
        assert type(key) is bytes
        return Hostile(key[:1]) if key else None


@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_results_of_comparators_and_filter_policies_are_made_bytes(layout: Any) -> None:
    settings: lsmkv.OptionArguments = {"filter_policy": EveryKey(), "filter_layout": layout}
    with lsmkv.DB(":memory:", comparator=ByBytes(), block_size=64, **settings) as db:
        _fill_and_read(db)


def test_results_of_prefix_extractors_are_made_bytes() -> None:
    for extractor in (FirstByte(), FirstByte().extract, Hostile(b"e")):
        named = None if not callable(extractor) else "example.first_byte"
        with lsmkv.DB(
            ":memory:", prefix_extractor=extractor, prefix_extractor_name=named, block_size=64
        ) as db:
            _fill_and_read(db)
            assert list(db.iterator(prefix=b"no")) == []


def _fill_and_read(db: lsmkv.DB) -> None:
    for n in range(100):
        db.put(Hostile(b"key of some length %d" % n), Hostile(b"%d" % n))
    db.compact_range()
    assert [db.get(b"key of some length %d" % n) for n in range(100)] == [
        b"%d" % n for n in range(100)
    ]
    assert len(list(db.iterator(prefix=Hostile(b"k")))) == 100
    db.check()


def test_pairs_of_a_bulk_build_are_made_bytes(tmp_path: Path) -> None:
    sources: list[Any] = [
        [(KEY, VALUE), (OTHER, VALUE)],
        {b"key": VALUE, b"other": VALUE},
        [OwnPart()],
        [lambda: [(KEY, VALUE), (OTHER, VALUE)]],
    ]
    for at, source in enumerate(sources):
        lsmkv.bulk.build(source, tmp_path / str(at))
        with lsmkv.shards.open(tmp_path / str(at)) as s:
            assert dict(s) == BOTH


def test_merged_values_of_a_bulk_build_are_made_bytes(tmp_path: Path) -> None:
    def last(key: bytes, values: list[bytes]) -> bytes:
        assert {type(key), *map(type, values)} == {bytes}
        return Hostile(values[-1])

    lsmkv.bulk.build([(KEY, KEY), (KEY, VALUE)], tmp_path, merge=last)
    with lsmkv.shards.open(tmp_path) as s:
        assert dict(s) == {b"key": b"value"}


class OwnPart:
    label = "a part"
    size = None

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        return iter([(KEY, VALUE), (OTHER, VALUE)])


# Other buffers


def test_every_buffer_is_a_key_and_a_value() -> None:
    mapped = mmap.mmap(-1, 3)
    mapped[:] = b"abc"
    buffers: list[Any] = [
        *(bytearray(b"abc"), memoryview(b"abc"), array.array("B", b"abc"), mapped),
        *((ctypes.c_char * 3)(*b"abc"), pickle.PickleBuffer(b"abc"), Hostile(b"abc")),
    ]
    for buffer in buffers:
        with lsmkv.DB(":memory:") as db:
            db.put(buffer, buffer)
            assert db.get(buffer) == b"abc"
            assert list(db.iterator(start=buffer)) == [(b"abc", b"abc")]


def test_an_array_gives_its_bytes_in_c_order() -> None:
    numpy = pytest.importorskip("numpy")
    square = numpy.arange(4, dtype="u1").reshape(2, 2)
    assert as_bytes(square, "value") == bytes([0, 1, 2, 3])
    assert as_bytes(square.T, "value") == bytes([0, 2, 1, 3])
    assert as_bytes(numpy.arange(6, dtype="<u2")[::3], "value") == bytes([0, 0, 3, 0])
    assert as_bytes(memoryview(b"abcd")[::2], "key") == b"ac"
    assert as_bytes(numpy.bytes_(b"a\0"), "key") == b"a\0"
    with pytest.raises(TypeError, match="references to Python objects"):
        as_bytes(numpy.array([object()]), "value")


def test_what_is_no_buffer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a key must be bytes, not str: .*str\.encode"):
        as_bytes("text", "key")
    for value in (3, None, [b"a"], object()):
        with pytest.raises(TypeError, match="a value must be bytes, not"):
            as_bytes(value, "value")
