"""lsmkv.plyvel does what plyvel does: the same tests run on both, where plyvel is installed.

A test that takes ``module`` holds for both.  Where plyvel is wrong, a test says what lsmkv does and
what plyvel (of the release that was measured) does instead.  ``docs/reference/plyvel.md`` names a
test for every name of plyvel's reference, and is held to it here.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.metadata
import itertools
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from orders import fold
from processes import run_python

import lsmkv
import lsmkv.plyvel

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "plyvel.md"
REFERENCE = ROOT / "docs" / "reference" / "plyvel.md"
MEASURED = "1.5.1"

KEYS_ONLY = {"include_value": False}


@pytest.fixture(params=["lsmkv.plyvel", "plyvel"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return pytest.importorskip(request.param)


@pytest.fixture
def real() -> ModuleType:
    """plyvel itself, of the release whose faults are described."""
    plyvel = pytest.importorskip("plyvel")
    if plyvel.__version__ != MEASURED:
        pytest.skip(f"the faults of plyvel {MEASURED} are described, not of {plyvel.__version__}")
    return plyvel


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens stores, and closes them."""
    handles: list[Any] = []

    def open_store(module: ModuleType, keys: bytes = b"", **options: Any) -> Any:
        where = tmp_path / f"db{len(handles)}"
        handles.append(module.DB(str(where), **{"create_if_missing": True, **options}))
        for key in keys:
            handles[-1].put(bytes([key]), bytes([key]).upper())
        return handles[-1]

    yield open_store
    for handle in handles:
        handle.close()


@pytest.fixture
def db(module: ModuleType, opened: Callable[..., Any]) -> Any:
    return opened(module)


@pytest.fixture
def letters(module: ModuleType, opened: Callable[..., Any]) -> Any:
    return opened(module, b"abcde")


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind of exception that a program for plyvel would catch."""
    try:
        return call()
    except (StopIteration, TypeError, ValueError, RuntimeError) as error:
        for kind in (StopIteration, TypeError, ValueError, RuntimeError):
            if isinstance(error, kind):
                return kind.__name__
        raise


def write_and_raise(batch: Any) -> None:
    with batch:
        batch.put(b"k", b"v")
        raise KeyError("on purpose")


# The module


def test_versions(module: ModuleType) -> None:
    assert module.__leveldb_version__.startswith("1.")
    assert re.fullmatch(r"\d+\.\d+\.\d+", module.__version__)


def test_versions_are_those_of_what_is_spoken() -> None:
    assert lsmkv.plyvel.__leveldb_version__ == "1.23"
    assert lsmkv.plyvel.__version__ == MEASURED


def test_errors(module: ModuleType) -> None:
    assert issubclass(module.Error, Exception)
    for name in ("IOError", "CorruptionError", "IteratorInvalidError"):
        assert issubclass(getattr(module, name), module.Error)
    assert issubclass(module.IOError, OSError)
    assert not issubclass(module.CorruptionError, OSError)


def test_errors_are_those_of_lsmkv() -> None:
    for name in ("Error", "IOError", "CorruptionError", "IteratorInvalidError"):
        assert getattr(lsmkv.plyvel, name) is getattr(lsmkv, name)


def test_damage(module: ModuleType, opened: Callable[..., Any], tmp_path: Path) -> None:
    db = opened(module, b"abc")
    db.close()
    (tmp_path / "db0" / "CURRENT").write_bytes(b"nonsense")
    with pytest.raises(module.CorruptionError):
        module.DB(str(tmp_path / "db0"))


def test_repair_db(module: ModuleType, tmp_path: Path) -> None:
    name = tmp_path / "db"
    db = module.DB(str(name), create_if_missing=True, comparator=None)
    for number in range(300):
        db.put(b"key%03d" % number, b"v" * 50)
    db.compact_range(stop=b"z")
    db.put(b"last", b"in the log")
    expected = list(db)
    db.close()
    (name / "CURRENT").unlink()
    with pytest.raises(module.Error):
        module.DB(str(name))
    options = {"write_buffer_size": 65536, "bloom_filter_bits": 10, "compression": None}
    assert module.repair_db(os.fsencode(name), **options) is None
    db = module.DB(str(name))
    assert list(db) == expected
    db.close()


def test_repair_db_refuses(tmp_path: Path) -> None:
    with pytest.raises(lsmkv.plyvel.Error):
        lsmkv.plyvel.repair_db(str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()
    with (
        lsmkv.plyvel.DB(tmp_path / "db", create_if_missing=True),
        pytest.raises(lsmkv.plyvel.IOError),
    ):
        lsmkv.plyvel.repair_db(tmp_path / "db")
    for wrong in ({"comparator_name": "x"}, {"bloom_filter_bits": "x"}, {"foo": 1}):
        with pytest.raises(TypeError):
            lsmkv.plyvel.repair_db(tmp_path / "db", **wrong)  # type: ignore[arg-type]


def test_destroy_db(module: ModuleType, opened: Callable[..., Any]) -> None:
    db = opened(module, b"ab")
    with pytest.raises(module.IOError):
        module.destroy_db(db.name)
    assert db.get(b"a") == b"A"
    db.close()
    module.destroy_db(db.name)
    assert not os.path.lexists(db.name)
    module.destroy_db(db.name)
    module.destroy_db(os.fsencode(db.name))
    with pytest.raises(TypeError):
        module.destroy_db(1)
    with pytest.raises(TypeError):
        module.destroy_db(db.name, True)


# DB: opening and closing


def test_open(module: ModuleType, tmp_path: Path) -> None:
    name = str(tmp_path / "db")
    with pytest.raises(module.Error):
        module.DB(name)
    with pytest.raises(module.Error):
        module.DB(name + "-deep/er", create_if_missing=True)
    with module.DB(name, create_if_missing=True, error_if_exists=True) as db:
        db.put(b"k", b"v")
        with pytest.raises(module.IOError):
            module.DB(name)
    with pytest.raises(module.Error):
        module.DB(name, create_if_missing=True, error_if_exists=True)
    with module.DB(name) as db:
        assert db.get(b"k") == b"v"


def test_the_block_cache_has_the_size_that_plyvel_gives_it(tmp_path: Path) -> None:
    with lsmkv.plyvel.DB(str(tmp_path), create_if_missing=True) as db:
        assert db.options.block_cache is not None
        assert db.options.block_cache.capacity == 8 << 20


def test_open_takes_every_option(module: ModuleType, tmp_path: Path) -> None:
    sizes = {
        "write_buffer_size": 1 << 20,
        "max_open_files": 512,
        "lru_cache_size": 1 << 20,
        "block_size": 2048,
        "block_restart_interval": 8,
        "max_file_size": 1 << 21,
    }
    for number, options in enumerate(
        (
            {"create_if_missing": True, **sizes, "paranoid_checks": True, "bloom_filter_bits": 10},
            {"create_if_missing": True, **dict.fromkeys(sizes), "paranoid_checks": None},
            {"create_if_missing": True, "error_if_exists": None, "compression": None},
            {"create_if_missing": True, "compression": "snappy", "bloom_filter_bits": -1},
            {"create_if_missing": True, "compression": b"snappy", "comparator": None},
        )
    ):
        with module.DB(str(tmp_path / f"{number}"), **options) as db:
            db.put(b"k", b"v")
            assert db.get(b"k") == b"v"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"write_buffer_size": "1"}, TypeError),
        ({"lru_cache_size": "1"}, TypeError),
        ({"max_open_files": b"1"}, TypeError),
        ({"block_size": []}, TypeError),
        ({"block_restart_interval": "1"}, TypeError),
        ({"max_file_size": "1"}, TypeError),
        ({"bloom_filter_bits": None}, TypeError),
        ({"bloom_filter_bits": "10"}, TypeError),
        ({"create_if_missing": 1}, TypeError),
        ({"error_if_exists": "yes"}, TypeError),
        ({"compression": "invalid"}, ValueError),
        ({"compression": "zstd"}, ValueError),
        ({"compression": b"invalid"}, ValueError),
        ({"compression": 1}, TypeError),
        ({"comparator": min}, ValueError),
        ({"comparator_name": b"name"}, ValueError),
        ({"comparator": min, "comparator_name": "name"}, TypeError),
        ({"comparator": b"not callable", "comparator_name": b"name"}, TypeError),
        ({"unknown": 1}, TypeError),
    ],
)
def test_open_refuses(
    module: ModuleType, tmp_path: Path, options: dict[str, Any], kind: type[Exception]
) -> None:
    name = str(tmp_path / "db")
    with pytest.raises(kind):
        module.DB(name, **{"create_if_missing": True, **options})
    assert not os.path.lexists(name)
    with pytest.raises(TypeError):
        module.DB(123)
    with pytest.raises(TypeError):
        module.DB(name, True)


def test_open_with_a_comparator(module: ModuleType, tmp_path: Path) -> None:
    name = str(tmp_path / "db")
    options = {"comparator": fold, "comparator_name": b"FoldCase"}
    with module.DB(name, create_if_missing=True, **options) as db:
        for key in (b"ccc", b"BBB", b"aaa", b"DDD"):
            db.put(key, key)
        assert list(db.iterator(**KEYS_ONLY)) == [b"aaa", b"BBB", b"ccc", b"DDD"]
        assert list(db.iterator(start=b"bbb", stop=b"ddd", **KEYS_ONLY)) == [b"BBB", b"ccc"]
        assert db.get(b"bbb") == b"BBB"
    with pytest.raises(module.Error):
        module.DB(name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_write_protected_directory_is_io_error(module: ModuleType) -> None:
    """Even if there is no database in it."""
    with tempfile.TemporaryDirectory() as name:  # where another user gets at it, too
        os.chmod(name, 0o555)
        child = os.fork()
        if child == 0:
            try:
                if os.getuid() == 0:
                    os.setuid(65534)  # root may write anywhere
                module.DB(name)
            except module.IOError:
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        os.chmod(name, 0o755)
    assert os.waitstatus_to_exitcode(status) == 0


def test_filters_are_off_unless_asked_for(opened: Callable[..., Any]) -> None:
    for bits, asked in ((0, 0), (10, 1)):
        db = opened(lsmkv.plyvel, b"abc", bloom_filter_bits=bits)
        db.flush()
        assert db.get(b"bb") is None
        assert db.stats().filters_asked == asked


def test_name(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plain", "slash/", "döner", b"bytes", str(tmp_path / "whole")):
        with module.DB(name, create_if_missing=True) as db:
            assert db.name == name
            assert type(db.name) is type(name)
            with pytest.raises(AttributeError):
                db.name = "other"
        assert db.name == name
        assert os.path.isdir(name)


def test_lsmkv_has_the_name_too() -> None:
    with lsmkv.DB(":memory:") as db:
        assert db.name == db.path == ":memory:"
        with pytest.raises(AttributeError):
            db.name = "other"  # type: ignore[misc]


def test_close(letters: Any) -> None:
    assert letters.closed is False
    with letters as same:
        assert same is letters
    assert letters.closed is True
    letters.close()
    assert letters.closed is True
    assert "closed" in repr(letters)


def test_after_close_there_is_runtime_error(letters: Any) -> None:
    handles = {
        "iterator": letters.iterator(),
        "raw iterator": letters.raw_iterator(),
        "snapshot": letters.snapshot(),
        "batch": letters.write_batch(),
        "batch of a part": letters.prefixed_db(b"p").write_batch(),
        "other batch": letters.write_batch(),
        "part": letters.prefixed_db(b"p"),
    }
    letters.close()
    for use in (
        lambda: letters.get(b"a"),
        lambda: letters.put(b"a", b""),
        lambda: letters.delete(b"a"),
        lambda: b"a" in letters,
        lambda: iter(letters),
        letters.write_batch,
        letters.iterator,
        letters.raw_iterator,
        letters.snapshot,
        letters.compact_range,
        letters.approximate_sizes,
        lambda: letters.approximate_size(b"a", b"b"),
        lambda: letters.get_property(b"leveldb.stats"),
        lambda: next(handles["iterator"]),
        handles["iterator"].prev,
        lambda: handles["iterator"].seek(b"a"),
        handles["iterator"].seek_to_start,
        handles["iterator"].seek_to_stop,
        handles["raw iterator"].valid,
        handles["raw iterator"].seek_to_first,
        handles["raw iterator"].key,
        lambda: handles["snapshot"].get(b"a"),
        handles["snapshot"].iterator,
        handles["snapshot"].raw_iterator,
        lambda: handles["batch"].put(b"a", b""),
        lambda: handles["batch"].delete(b"a"),
        lambda: handles["batch"].append(handles["other batch"]),
        handles["batch"].clear,
        handles["batch"].approximate_size,
        handles["batch"].write,
        handles["batch"].__enter__,
        lambda: handles["batch of a part"].put(b"a", b""),
        lambda: handles["part"].get(b"a"),
        handles["part"].iterator,
        handles["part"].snapshot,
    ):
        with pytest.raises(RuntimeError):
            use()
    letters.prefixed_db(b"p")
    for handle in ("iterator", "raw iterator", "snapshot"):
        handles[handle].close()


def test_a_forgotten_store_is_closed(module: ModuleType, tmp_path: Path) -> None:
    """Without a word: warnings are errors in this suite."""
    name = str(tmp_path / "db")
    db = module.DB(name, create_if_missing=True)
    db.put(b"k", b"v")
    del db
    gc.collect()
    for handle in (  # each holds its store
        lambda: module.DB(name).iterator(),
        lambda: module.DB(name).snapshot().iterator(),
        lambda: module.DB(name).prefixed_db(b"").iterator(),
    ):
        assert list(handle()) == [(b"k", b"v")]
        gc.collect()
    batch = module.DB(name).write_batch()
    batch.put(b"l", b"w")
    batch.write()
    del batch
    gc.collect()
    assert list(module.DB(name)) == [(b"k", b"v"), (b"l", b"w")]
    gc.collect()
    module.destroy_db(name)


# DB: reading and writing


def test_get(letters: Any) -> None:
    assert letters.get(b"a") == b"A"
    assert letters.get(key=b"a", default=1) == b"A"
    assert letters.get(b"x") is None
    default = object()
    assert letters.get(b"x", default) is default
    for verify in (True, False, None):
        for fill in (True, False, None):
            assert letters.get(b"a", verify_checksums=verify, fill_cache=fill) == b"A"
    with pytest.raises(TypeError):
        letters.get(b"a", None, True)
    for name in ("verify_checksums", "fill_cache"):
        with pytest.raises(TypeError):
            letters.get(b"a", **{name: "yes"})


def test_put(db: Any) -> None:
    assert db.put(b"k", b"1") is None
    db.put(key=b"k", value=b"2", sync=True)
    db.put(b"\0\1", b"\0", sync=False)
    db.put(b"", b"", sync=None)
    db.put(b"bytes-like", bytearray(b"array"))
    db.put(b"view", memoryview(b"a view")[2:])
    assert dict(db) == {
        b"": b"",
        b"\0\1": b"\0",
        b"k": b"2",
        b"bytes-like": b"array",
        b"view": b"view",
    }
    with pytest.raises(TypeError):
        db.put(b"k", b"v", True)
    with pytest.raises(TypeError):
        db.put(b"k", b"v", sync="yes")


def test_delete(letters: Any) -> None:
    assert letters.delete(b"a") is None
    letters.delete(b"b", sync=True)
    letters.delete(key=b"c", sync=None)
    letters.delete(b"never there")
    assert list(letters.iterator(**KEYS_ONLY)) == [b"d", b"e"]
    with pytest.raises(TypeError):
        letters.delete(b"d", sync=1)


@pytest.mark.parametrize("wrong", ["text", 1, None, [b"a"]])
def test_wrong_types(letters: Any, wrong: Any) -> None:
    part, batch = letters.prefixed_db(b""), letters.write_batch()
    for use in (
        letters.get,
        letters.delete,
        letters.get_property,
        letters.prefixed_db,
        lambda key: letters.put(key, b""),
        lambda value: letters.put(b"k", value),
        lambda key: letters.approximate_size(key, b"z"),
        lambda key: letters.approximate_size(b"a", key),
        lambda key: letters.approximate_sizes((b"a", key)),
        lambda key: letters.iterator().seek(key),
        lambda key: letters.raw_iterator().seek(key),
        lambda key: letters.snapshot().get(key),
        batch.delete,
        lambda key: batch.put(key, b""),
        lambda value: batch.put(b"k", value),
        batch.append,
        part.get,
        part.delete,
        part.prefixed_db,
        lambda key: part.put(key, b""),
    ):
        with pytest.raises(TypeError):
            use(wrong)
    if wrong is not None:
        for name in ("start", "stop", "prefix"):
            for source in (letters, letters.snapshot(), part):
                with pytest.raises(TypeError):
                    source.iterator(**{name: wrong})
        with pytest.raises(TypeError):
            letters.compact_range(start=wrong)
    assert len(list(letters)) == 5


def test_get_property(letters: Any) -> None:
    for name in (b"leveldb.stats", b"leveldb.sstables", b"leveldb.approximate-memory-usage"):
        assert type(letters.get_property(name)) is bytes
    assert letters.get_property(b"leveldb.num-files-at-level0") == b"0"
    assert letters.get_property(name=b"leveldb.num-files-at-level7") is None
    assert letters.get_property(b"no such") is None
    with pytest.raises(TypeError):
        letters.get_property()
    with pytest.raises(TypeError):
        letters.get_property("leveldb.stats")


def test_lsmkv_answers_in_the_type_of_the_question() -> None:
    with lsmkv.DB(":memory:") as db:
        assert db.get_property("leveldb.num-files-at-level0") == "0"
        assert db.get_property(b"leveldb.num-files-at-level0") == b"0"
        assert db.get_property("no such") is db.get_property(b"no such") is None


def test_compact_range(module: ModuleType, opened: Callable[..., Any]) -> None:
    db = opened(module, write_buffer_size=1 << 16, compression=None)
    for number in range(6000):
        db.put(b"%05d" % (number * 7919 % 3000), b"v" * 60)
    assert db.compact_range(start=b"0", stop=b"1") is None
    db.compact_range(start=b"a", stop=b"b")
    levels = [int(db.get_property(b"leveldb.num-files-at-level%d" % n)) for n in range(7)]
    assert levels[0] == 0
    assert sum(1 for files in levels if files) == 1
    assert len(list(db)) == 3000


def test_compact_range_without_an_end(opened: Callable[..., Any], real: ModuleType) -> None:
    """plyvel hands LevelDB an empty key for a bound that is not given, and compacts nothing."""
    left = {}
    for module in (lsmkv.plyvel, real):
        db = opened(module, compression=None)
        for _ in range(2):
            for number in range(200):
                db.put(b"%05d" % number, b"v" * 1000)
            db.compact_range(start=b"x", stop=b"y")  # memtable -> table
        before = db.get_property(b"leveldb.sstables")
        db.compact_range()
        left[module] = (
            db.approximate_size(b"0", b"9"),
            before == db.get_property(b"leveldb.sstables"),
        )
    assert left[lsmkv.plyvel][0] < 250_000
    assert left[real][0] > 350_000
    assert left[real][1]


def test_approximate_sizes(module: ModuleType, opened: Callable[..., Any]) -> None:
    db = opened(module, compression=None)
    for number in range(1000):
        db.put(b"%04d" % number, b"v" * 1000)
    db.compact_range(start=b"", stop=b"9")
    assert db.approximate_sizes() == []
    whole, half, none = db.approximate_sizes((b"0", b"9"), [b"0000", b"0500"], (b"a", b"b"))
    assert whole == pytest.approx(1_000_000, rel=0.1)
    assert half == pytest.approx(500_000, rel=0.1)
    assert none == 0
    assert db.approximate_size(b"0", b"9") == whole
    assert db.approximate_size(start=b"0", stop=b"9") == whole
    for wrong in (None, 1, (1, 2)):
        with pytest.raises(TypeError):
            db.approximate_sizes(wrong)
    with pytest.raises(ValueError, match=r".*"):
        db.approximate_sizes((b"a", b"b", b"c"))


def test_the_same_writes_give_the_same_size(opened: Callable[..., Any], real: ModuleType) -> None:
    sizes = []
    for module in (lsmkv.plyvel, real):
        db = opened(module, compression=None, bloom_filter_bits=10)
        for number in range(2000):
            db.put(b"%04d" % number, b"v" * 100)
        db.compact_range(start=b"", stop=b"9")
        sizes.append(db.approximate_sizes((b"0", b"9"), (b"0200", b"1700"), (b"", b"1")))
    assert sizes[0] == sizes[1]


# WriteBatch


def test_write_batch(db: Any) -> None:
    db.put(b"gone", b"")
    batch = db.write_batch()
    assert batch.put(b"a", b"1") is None
    assert batch.put(key=b"b", value=bytearray(b"2")) is None
    batch.delete(b"gone")
    batch.delete(key=b"a")
    assert dict(db) == {b"gone": b""}
    assert batch.write() is None
    assert dict(db) == {b"b": b"2"}
    db.delete(b"b")
    batch.write()
    assert dict(db) == {b"b": b"2"}
    batch.clear()
    db.delete(b"b")
    batch.write()
    assert dict(db) == {}
    for flag in ("transaction", "sync"):
        for value in (True, False, None):
            db.write_batch(**{flag: value}).write()
        with pytest.raises(TypeError):
            db.write_batch(**{flag: 1})


def test_write_batch_in_a_with_block(db: Any) -> None:
    with db.write_batch(sync=True) as batch:
        batch.put(b"k", b"v")
        assert db.get(b"k") is None
    assert db.get(b"k") == b"v"
    assert batch.approximate_size() == 12  # it was cleared
    db.delete(b"k")
    batch.write()
    assert db.get(b"k") is None


def test_write_batch_is_written_even_on_an_exception(db: Any) -> None:
    with pytest.raises(KeyError):
        write_and_raise(db.write_batch())
    assert db.get(b"k") == b"v"


def test_write_batch_transaction(db: Any) -> None:
    batch = db.write_batch(transaction=True)
    with pytest.raises(KeyError):
        write_and_raise(batch)
    assert db.get(b"k") is None
    batch.write()
    assert db.get(b"k") is None


def test_write_batch_append(db: Any) -> None:
    one, two = db.write_batch(), db.write_batch()
    one.put(b"a", b"1")
    two.put(b"a", b"2")
    two.delete(b"b")
    one.append(two)
    one.append(source=two)
    two.clear()
    one.write()
    assert dict(db) == {b"a": b"2"}


def test_write_batch_approximate_size(opened: Callable[..., Any], module: ModuleType) -> None:
    db = opened(module)
    batch = db.write_batch()
    sizes = [batch.approximate_size()]
    for step in (
        lambda: batch.put(b"k", b"v"),
        lambda: batch.delete(b"key"),
        lambda: batch.put(b"k" * 128, b"v" * 20000),
        lambda: batch.append(batch),
        batch.clear,
    ):
        step()
        sizes.append(batch.approximate_size())
    assert sizes == [12, 17, 22, 20156, 40300, 12]


# Iterator


def test_iterator_returns(letters: Any) -> None:
    assert next(letters.iterator()) == (b"a", b"A")
    assert next(letters.iterator(include_value=False)) == b"a"
    assert next(letters.iterator(include_key=False)) == b"A"
    assert next(letters.iterator(include_key=False, include_value=False)) is None
    assert list(letters) == [(bytes([key]), bytes([key]).upper()) for key in b"abcde"]
    it = letters.iterator()
    assert iter(it) is it


def test_iterator_flags(letters: Any) -> None:
    everything = {
        "reverse": None,
        "start": None,
        "stop": None,
        "include_start": None,
        "include_stop": None,
        "prefix": None,
        "include_key": True,
        "include_value": None,
        "verify_checksums": None,
        "fill_cache": None,
    }
    for source in (letters, letters.snapshot(), letters.prefixed_db(b"")):
        assert b"".join(source.iterator(**everything)) == b"abcde"
        assert len(list(source.iterator(verify_checksums=True, fill_cache=False))) == 5
        for name in ("reverse", "include_start", "include_key", "fill_cache"):
            with pytest.raises(TypeError):
                source.iterator(**{name: "yes"})
        with pytest.raises(TypeError):
            source.iterator(True)
        with pytest.raises(TypeError):
            source.iterator(unknown=1)
        for end in ("start", "stop"):
            with pytest.raises(TypeError):
                source.iterator(**{"prefix": b"a", end: b"a"})


def test_an_unexpected_keyword_is_named(db: Any) -> None:
    for source in (db, db.snapshot(), db.prefixed_db(b"p")):
        with pytest.raises(
            TypeError, match=r"iterator\(\) got an unexpected keyword argument 'foo'"
        ):
            source.iterator(foo=1)


def test_iterator_ranges(opened: Callable[..., Any], module: ModuleType) -> None:
    """Every range over a few keys, forward; backward wherever plyvel has it right."""
    keys = [b"", b"\0", b"b", b"bb", b"b\xff", b"c", b"\xff", b"\xff\xff"]
    db = opened(module)
    for key in keys:
        db.put(key, key)
    ends: list[bytes | None] = [None, *keys, b"a", b"ba", b"\xff\0"]
    for start, stop in itertools.product(ends, ends):
        for include_start, include_stop in itertools.product((True, False), repeat=2):
            bounds = {
                "start": start,
                "stop": stop,
                "include_start": include_start,
                "include_stop": include_stop,
            }
            expected = [
                key
                for key in sorted(keys)
                if start is None or (key >= start if include_start else key > start)
                if stop is None or (key <= stop if include_stop else key < stop)
            ]
            assert list(db.iterator(**bounds, **KEYS_ONLY)) == expected, bounds
            if expected != [start] or module is lsmkv.plyvel:
                got = list(db.iterator(**bounds, **KEYS_ONLY, reverse=True))
                assert got == expected[::-1], bounds


def test_iterator_prefix(opened: Callable[..., Any], module: ModuleType) -> None:
    keys = [b"", b"b", b"ba", b"b\xff", b"b\xffx", b"c", b"\xff", b"\xff\xff", b"\xff\xffx"]
    db = opened(module)
    for key in keys:
        db.put(key, key)
    for prefix in (b"", b"a", b"b", b"b\xff", b"\xff", b"\xff\xff", b"\xff\xff\xff"):
        expected = [key for key in sorted(keys) if key.startswith(prefix)]
        assert list(db.iterator(prefix=prefix, **KEYS_ONLY)) == expected
        if expected != [prefix] or module is lsmkv.plyvel:
            got = list(db.iterator(prefix=prefix, reverse=True, **KEYS_ONLY))
            assert got == expected[::-1]


def test_iterator_next_and_prev(letters: Any) -> None:
    for reverse in (False, True):
        first, second, *_, last = sorted(b"abcde", reverse=reverse)
        it = letters.iterator(reverse=reverse, **KEYS_ONLY)
        for _ in range(2):
            assert next(it) == bytes([first])
            assert it.prev() == bytes([first])
        assert outcome(it.prev) == "StopIteration"
        assert next(it) == bytes([first])
        assert next(it) == bytes([second])
        assert len(list(it)) == 3
        for _ in range(2):
            assert outcome(lambda it=it: next(it)) == "StopIteration"
        assert it.prev() == bytes([last])


def test_iterator_seek(letters: Any) -> None:
    it = letters.iterator(**KEYS_ONLY)
    assert it.seek(b"c") is None
    assert (next(it), next(it)) == (b"c", b"d")
    it.seek(target=b"c")
    assert it.prev() == b"b"
    it.seek(b"bb")
    assert next(it) == b"c"
    it.seek(b"")
    assert outcome(it.prev) == "StopIteration"
    assert next(it) == b"a"
    it.seek(b"z")
    assert outcome(lambda: next(it)) == "StopIteration"
    it.seek(b"z")
    assert it.prev() == b"e"
    back = letters.iterator(reverse=True, **KEYS_ONLY)
    back.seek(b"c")
    assert (next(back), next(back)) == (b"b", b"a")
    back.seek(b"c")
    assert back.prev() == b"c"
    within = letters.iterator(start=b"b", stop=b"d", **KEYS_ONLY)
    within.seek(b"a")
    assert next(within) == b"b"
    within.seek(b"z")
    assert outcome(lambda: next(within)) == "StopIteration"
    within.seek(b"z")
    assert within.prev() == b"c"


def test_iterator_seek_to_start_and_stop(letters: Any) -> None:
    for bounds, first, last in (
        ({}, b"a", b"e"),
        ({"start": b"b", "stop": b"d"}, b"b", b"c"),
        ({"start": b"b", "stop": b"d", "include_start": False, "include_stop": True}, b"c", b"d"),
        ({"prefix": b""}, b"a", b"e"),
    ):
        it = letters.iterator(**bounds, **KEYS_ONLY)
        assert it.seek_to_stop() is None
        assert outcome(lambda it=it: next(it)) == "StopIteration"
        assert it.prev() == last
        assert it.seek_to_start() is None
        assert outcome(it.prev) == "StopIteration"
        assert next(it) == first
        back = letters.iterator(**bounds, **KEYS_ONLY, reverse=True)
        back.seek_to_start()
        assert outcome(lambda back=back: next(back)) == "StopIteration"
        back.seek_to_stop()
        assert next(back) == last


def test_iterator_close(letters: Any) -> None:
    with letters.iterator() as it:
        next(it)
    it.close()
    for use in (lambda: next(it), it.prev, it.seek_to_start, it.seek_to_stop):
        with pytest.raises(RuntimeError):
            use()
    with pytest.raises(RuntimeError):
        it.seek(b"a")
    with pytest.raises(KeyError), letters.iterator():
        raise KeyError


def test_iterator_does_not_see_later_writes(letters: Any) -> None:
    it = letters.iterator(**KEYS_ONLY)
    letters.delete(b"b")
    letters.put(b"aa", b"")
    letters.compact_range(start=b"a", stop=b"z")
    assert list(it) == [b"a", b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize("seed", range(12))
def test_iterator_walks_as_plyvel_does(opened: Callable[..., Any], seed: int) -> None:
    """The same steps on both, where plyvel's known faults do not reach: see the tests of these."""
    plyvel = pytest.importorskip("plyvel")
    rng = random.Random(seed)
    ours, theirs = (opened(m, write_buffer_size=1 << 16) for m in (lsmkv.plyvel, plyvel))
    for number in range(3000):
        key = b"%04d" % rng.randrange(1500)
        for db in (ours, theirs):
            if number % 4 == 0:
                db.delete(key)
            else:
                db.put(key, b"%d" % number * 20)
    reverse = seed % 2 == 0
    bounds: dict[str, Any] = {}
    if seed % 3 > 0:
        bounds = {"stop": b"1200"}
    if seed % 3 == 2:
        bounds |= {"start": b"0300", "include_start": rng.random() < 0.5}
    its = [db.iterator(reverse=reverse, **bounds) for db in (ours, theirs)]
    for _ in range(1500):
        action = rng.random()
        if action < 0.03:
            steps = [it.seek_to_start for it in its]
        elif action < 0.06:
            steps = [it.seek_to_stop for it in its]
        elif action < 0.15 and "start" not in bounds:
            target = b"%04d" % rng.randrange(1600)
            steps = [lambda it=it, target=target: it.seek(target) for it in its]
        elif action < 0.6:
            steps = [lambda it=it: next(it) for it in its]
        else:
            steps = [it.prev for it in its]
        for _ in range(rng.choice((1, 1, 1, 5, 60))):
            answers = [outcome(step) for step in steps]
            assert answers[0] == answers[1]


# RawIterator


def test_raw_iterator(letters: Any) -> None:
    it = letters.raw_iterator()
    assert it.valid() is False
    assert it.seek_to_first() is None
    assert it.valid() is True
    assert (it.key(), it.value(), it.item()) == (b"a", b"A", (b"a", b"A"))
    assert it.next() is None
    assert it.key() == b"b"
    assert it.prev() is None
    assert it.key() == b"a"
    assert it.seek_to_last() is None
    assert it.key() == b"e"
    assert it.seek(b"bb") is None
    assert it.key() == b"c"
    it.seek(target=b"z")
    assert it.valid() is False
    for verify in (True, False, None):
        letters.raw_iterator(verify_checksums=verify, fill_cache=verify)
        letters.snapshot().raw_iterator(verify_checksums=verify, fill_cache=verify)
    with pytest.raises(TypeError):
        letters.raw_iterator(fill_cache=1)
    with pytest.raises(TypeError):
        iter(it)


def test_raw_iterator_nowhere(module: ModuleType, letters: Any) -> None:
    def placed(*steps: str) -> Any:
        it = letters.raw_iterator()
        for step in steps:
            getattr(it, step)()
        return it

    for it in (placed(), placed("seek_to_first", "prev"), placed("seek_to_last", "next")):
        assert it.valid() is False
        for name in ("key", "value", "item", "next", "prev"):
            with pytest.raises(module.IteratorInvalidError):
                getattr(it, name)()
            with pytest.raises(module.Error):
                getattr(it, name)()


def test_raw_iterator_close(letters: Any) -> None:
    with letters.raw_iterator() as it:
        it.seek_to_first()
    it.close()
    for name in (
        "valid",
        "key",
        "value",
        "item",
        "next",
        "prev",
        "seek_to_first",
        "seek_to_last",
    ):
        with pytest.raises(RuntimeError):
            getattr(it, name)()
    with pytest.raises(RuntimeError):
        it.seek(b"a")


@pytest.mark.parametrize("seed", range(4))
def test_raw_iterator_walks_as_plyvel_does(opened: Callable[..., Any], seed: int) -> None:
    plyvel = pytest.importorskip("plyvel")
    rng = random.Random(seed)
    ours, theirs = (opened(m, write_buffer_size=1 << 16) for m in (lsmkv.plyvel, plyvel))
    for number in range(2500):
        key = b"%04d" % rng.randrange(1200)
        for db in (ours, theirs):
            if number % 4 == 0:
                db.delete(key)
            else:
                db.put(key, b"%d" % number * 20)
    its = [db.raw_iterator() for db in (ours, theirs)]
    for _ in range(1500):
        action = rng.random()
        count = rng.choice((1, 1, 5, 100))
        if action < 0.04:
            name, count = rng.choice(("seek_to_first", "seek_to_last")), 1
        else:
            name = rng.choice(("next", "prev"))
        for _ in range(count):
            assert its[0].valid() == its[1].valid()
            if not its[0].valid():
                target = b"%04d" % rng.randrange(1300)
                for it in its:
                    it.seek(target)
                continue
            assert its[0].item() == its[1].item()
            for it in its:
                getattr(it, name)()


# Snapshot


def test_snapshot(letters: Any) -> None:
    snapshot = letters.snapshot()
    letters.delete(b"a")
    letters.put(b"f", b"F")
    assert snapshot.get(b"a") == b"A"
    assert snapshot.get(b"f") is None
    assert snapshot.get(b"f", b"default", verify_checksums=None, fill_cache=None) == b"default"
    assert b"".join(key for key, _ in snapshot) == b"abcde"
    assert list(snapshot.iterator(start=b"b", stop=b"d", reverse=True, **KEYS_ONLY)) == [b"c", b"b"]
    raw = snapshot.raw_iterator()
    raw.seek_to_last()
    assert raw.key() == b"e"
    with pytest.raises(TypeError):
        snapshot.get(b"a", fill_cache=1)


@pytest.mark.parametrize("name", ["close", "release"])
def test_snapshot_close(letters: Any, name: str) -> None:
    with letters.snapshot() as snapshot:
        it = snapshot.iterator(**KEYS_ONLY)
        assert getattr(snapshot, name)() is None
    getattr(snapshot, name)()
    for use in (lambda: snapshot.get(b"a"), lambda: iter(snapshot), snapshot.raw_iterator):
        with pytest.raises(RuntimeError):
            use()
    assert b"".join(it) == b"abcde"


# PrefixedDB


def test_prefixed_db(letters: Any) -> None:
    part = letters.prefixed_db(b"b")
    assert part.db is letters
    assert part.prefix == b"b"
    for name in ("db", "prefix"):
        with pytest.raises(AttributeError):
            setattr(part, name, None)
    assert list(part) == [(b"", b"B")]
    part.put(b"x", b"1", sync=None)
    part.put(key=b"y", value=bytearray(b"2"), sync=False)
    assert part.get(b"x", verify_checksums=None, fill_cache=None) == b"1"
    assert part.get(b"bx", b"default") == b"default"
    assert letters.get(b"bx") == b"1"
    part.delete(b"x", sync=None)
    assert list(part) == [(b"", b"B"), (b"y", b"2")]
    within = letters.prefixed_db(prefix=b"p").prefixed_db(b"q")
    assert (within.db, within.prefix) == (letters, b"pq")
    assert list(letters.prefixed_db(b"")) == list(letters)


def test_prefixed_db_iterator(opened: Callable[..., Any], module: ModuleType) -> None:
    db = opened(module)
    for prefix in (b"a", b"b", b"b\xff", b"c", b"\xff\xff"):
        for key in (b"", b"1", b"2", b"3", b"\xff"):
            db.put(prefix + key, b"")
    for prefix in (b"b", b"b\xff", b"\xff\xff", b"\xff", b""):
        part = db.prefixed_db(prefix)
        cut = len(prefix)
        inside = [key[cut:] for key, _ in db.iterator(prefix=prefix)]
        for source in (part, part.snapshot()):
            it = source.iterator(**KEYS_ONLY)
            assert list(it) == inside
            it.seek(b"2")
            assert next(it) == min(key for key in inside if key >= b"2")
            assert list(source.iterator(**KEYS_ONLY, reverse=True)) == inside[::-1]
            assert list(source.iterator(start=b"1", stop=b"3", **KEYS_ONLY)) == [
                key for key in inside if b"1" <= key < b"3"
            ]
            assert list(source.iterator(prefix=b"\xff", **KEYS_ONLY)) == [
                key for key in inside if key.startswith(b"\xff")
            ]


def test_prefixed_db_write_batch(db: Any) -> None:
    part = db.prefixed_db(b"p")
    with part.write_batch(sync=None) as batch:
        batch.put(b"a", b"1")
        batch.put(b"b", b"2")
        batch.delete(b"a")
        assert batch.approximate_size() == 12 + 6 + 6 + 4
    assert list(db) == [(b"pb", b"2")]
    with pytest.raises(KeyError):
        write_and_raise(part.write_batch())
    assert db.get(b"pk") == b"v"
    part.delete(b"k")
    with pytest.raises(KeyError):
        write_and_raise(part.write_batch(transaction=True))
    assert db.get(b"pk") is None
    one = part.write_batch()
    one.put(b"c", b"3")
    two = db.prefixed_db(b"q").write_batch()
    two.append(one)
    two.write()
    assert db.get(b"pc") == b"3"


def test_prefixed_db_snapshot(db: Any) -> None:
    part = db.prefixed_db(b"p")
    part.put(b"k", b"old")
    snapshot = part.snapshot()
    part.put(b"k", b"new")
    assert type(snapshot) is type(db.snapshot())
    assert snapshot.get(b"k") == b"old"
    assert list(snapshot) == [(b"k", b"old")]
    snapshot.close()
    with pytest.raises(RuntimeError):
        snapshot.get(b"k")


def test_classes_are_those_of_the_handles(opened: Callable[..., Any]) -> None:
    db = opened(lsmkv.plyvel)
    part = db.prefixed_db(b"p")
    for name, handles in {
        "DB": [db],
        "PrefixedDB": [part, part.prefixed_db(b"q")],
        "WriteBatch": [db.write_batch(), part.write_batch()],
        "Snapshot": [db.snapshot(), part.snapshot()],
        "Iterator": [iter(db), iter(part), iter(db.snapshot()), iter(part.snapshot())],
        "RawIterator": [db.raw_iterator(), db.snapshot().raw_iterator()],
    }.items():
        for handle in handles:
            assert isinstance(handle, getattr(lsmkv.plyvel, name))
            assert isinstance(handle, getattr(lsmkv, name))


# Where plyvel is wrong


def test_membership(opened: Callable[..., Any], real: ModuleType) -> None:
    for module, right in ((lsmkv.plyvel, True), (real, False)):
        db = opened(module, b"a")
        for source in (db, db.snapshot(), db.prefixed_db(b"")):
            assert (b"a" in source) is right
            assert b"b" not in source


def test_a_reverse_range_of_its_start_alone(opened: Callable[..., Any], real: ModuleType) -> None:
    for module, right in ((lsmkv.plyvel, True), (real, False)):
        db = opened(module, b"abc")
        for bounds in (
            {"start": b"c"},
            {"start": b"b", "stop": b"c"},
            {"start": b"b", "stop": b"b", "include_stop": True},
            {"prefix": b"b"},
        ):
            forward = list(db.iterator(**bounds))
            assert len(forward) == 1
            assert list(db.iterator(**bounds, reverse=True)) == (forward if right else [])


def test_seek_then_prev_at_the_start_of_a_range(
    opened: Callable[..., Any], real: ModuleType
) -> None:
    for module, right in ((lsmkv.plyvel, "StopIteration"), (real, b"a")):
        it = opened(module, b"abc").iterator(start=b"b", **KEYS_ONLY)
        it.seek(b"b")
        assert outcome(it.prev) == right


def test_seek_to_a_start_that_is_left_out(opened: Callable[..., Any], real: ModuleType) -> None:
    for module, right in ((lsmkv.plyvel, b"c"), (real, b"b")):
        it = opened(module, b"abc").iterator(start=b"b", include_start=False, **KEYS_ONLY)
        it.seek(b"a")
        assert next(it) == right


def test_seek_beyond_a_stop_that_is_included(opened: Callable[..., Any], real: ModuleType) -> None:
    for module, right in (
        (lsmkv.plyvel, ("StopIteration", b"b")),
        (real, (b"b", b"a")),
    ):
        it = opened(module, b"abc").iterator(stop=b"b", include_stop=True, **KEYS_ONLY)
        it.seek(b"c")
        ahead = outcome(lambda it=it: next(it))
        it.seek(b"c")
        assert (ahead, it.prev()) == right


def test_a_raw_iterator_of_a_prefixed_snapshot(
    opened: Callable[..., Any], real: ModuleType
) -> None:
    for module, right in ((lsmkv.plyvel, b""), (real, b"a")):
        it = opened(module, b"abc").prefixed_db(b"b").snapshot().raw_iterator()
        it.seek_to_first()
        assert it.key() == right


def test_an_open_that_is_refused_leaves_nothing(tmp_path: Path, real: ModuleType) -> None:
    for module, left in ((lsmkv.plyvel, []), (real, ["LOCK", "LOG"])):
        name = tmp_path / module.__name__
        with pytest.raises(module.Error):
            module.DB(str(name))
        assert sorted(path.name for path in name.glob("*")) == left
        assert name.exists() is bool(left)


# What is said of it


def names_of_the_page() -> dict[str, list[str]]:
    """The names in the first column of the last table, with the tests in its last column."""
    table = REFERENCE.read_text(encoding="utf-8").partition("## Name by name")[2]
    rows = re.findall(r"(?m)^\| `([^`]+)`.*\| (`test_[^|]+`) \|$", table)
    return {name: re.findall(r"`(test_\w+)`", tests) for name, tests in rows}


def functions_of_the_suite() -> set[str]:
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_the_page_names_tests_that_are_there() -> None:
    names = names_of_the_page()
    assert len(names) > 60
    assert all(names.values())
    for page in (PAGE, REFERENCE):
        named = set(re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")))
        assert named
        assert named - functions_of_the_suite() == set()


def test_the_page_names_what_is_there() -> None:
    for name in names_of_the_page():
        found: Any = lsmkv.plyvel
        for part in name.split("."):
            found = getattr(found, part)
        if name.partition(".")[0] in ("DB", "Iterator", "RawIterator", "Snapshot", "WriteBatch"):
            owner, _, member = name.partition(".")
            assert hasattr(getattr(lsmkv, owner), member or "__init__"), name


def test_the_page_names_all_of_plyvel(real: ModuleType) -> None:
    names = set(names_of_the_page())
    engine = importlib.import_module("plyvel._plyvel")
    public = {name for name in vars(real) if not name.startswith("_")}
    public |= {"__version__", "__leveldb_version__"}
    for owner in ("DB", "PrefixedDB", "WriteBatch", "Snapshot", "Iterator", "RawIterator"):
        kind = getattr(engine, owner)
        public |= {f"{owner}.{name}" for name in dir(kind) if re.match(r"[a-z]", name)}
    assert public - names == set()


def test_a_program_written_for_plyvel(module: ModuleType, tmp_path: Path) -> None:
    """Only the import differs, and the output does not."""
    source = (ROOT / "examples" / "word_index.py").read_text(encoding="utf-8")
    line = "from lsmkv import plyvel"
    assert source.count("lsmkv") == 1
    assert source.count(line) == 1
    program = tmp_path / "program.py"
    program.write_text(source.replace(line, f"import {module.__name__} as plyvel"), "utf-8")
    done = run_python(program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "nothing there yet",
        "keeps: [b'ant', b'bee', b'cat']",
        "keep: []",
        "from h: [b'her', b'honey', b'in', b'keeps']",
        "last: b'cat'",
        "cat now: None - before: b'A cat keeps her own counsel.'",
        "bee: b'The bee keeps no store but honey, and honey keeps.'",
        "at: b't/bee'",
        "nothing before the first",
        "files at level 0: b'0'",
        "closed: True",
    ]
