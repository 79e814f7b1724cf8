"""What the exceptions carry besides their message, and the built-in classes that catch them."""

from __future__ import annotations

import asyncio
import copy
import errno
import os
import pickle
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import lsmkv
import lsmkv.aio
import lsmkv.bulk
import lsmkv.owner
import lsmkv.plyvel
import lsmkv.shards
from lsmkv.cache import recipes
from lsmkv.errors import errno_of, io_error


async def _open_aio(path: str) -> None:
    async with lsmkv.aio.open_db(path, create_if_missing=True):
        pass


async def _serve(path: str) -> None:
    async with import_module("lsmkv.server").Server(path):
        pass


FACES: dict[str, Callable[[str], object]] = {
    "Cache": lsmkv.Cache,
    "DB": lambda path: lsmkv.DB(path, create_if_missing=True),
    "DB, read-only": lambda path: lsmkv.DB(path, read_only=True),
    "Deque": lambda path: recipes.Deque((), path),
    "Index": recipes.Index,
    "SharedDB": lambda path: lsmkv.SharedDB(path, create_if_missing=True),
    "aio": lambda path: asyncio.run(_open_aio(path)),
    "bulk.build": lambda path: lsmkv.bulk.build([(b"k", b"v")], path),
    "bulk.versions": lsmkv.bulk.versions,
    "destroy_db": lsmkv.destroy_db,
    "open": lambda path: lsmkv.open(path, "c"),
    "open, new": lambda path: lsmkv.open(path, "n"),
    "plan_repair": lsmkv.plan_repair,
    "plyvel": lambda path: lsmkv.plyvel.DB(path, create_if_missing=True),
    "plyvel.destroy_db": lsmkv.plyvel.destroy_db,
    "plyvel.repair_db": lsmkv.plyvel.repair_db,
    "read_owner": lsmkv.owner.read_owner,
    "repair_db": lsmkv.repair_db,
    "shards": lsmkv.shards.open,
}
if find_spec("hiredis"):
    FACES["Server"] = lambda path: asyncio.run(_serve(path))
every_face = pytest.mark.parametrize("face", FACES)
every_errno = pytest.mark.parametrize("number", sorted(errno.errorcode))


@every_errno
def test_an_io_error_is_also_of_the_built_in_class_of_its_errno(number: int) -> None:
    error = lsmkv.IOError(number, "reason", "path")
    assert isinstance(error, lsmkv.IOError)
    assert isinstance(error, type(OSError(number, "reason")))
    assert (error.errno, error.strerror, error.filename) == (number, "reason", "path")
    assert str(error) == str(OSError(number, "reason", "path"))
    assert type(error) is type(lsmkv.IOError(number, "another"))
    assert repr(error) == f"IOError({number}, 'reason')"


@every_errno
def test_an_io_error_keeps_its_class_where_it_is_copied_and_pickled(number: int) -> None:
    error = lsmkv.IOError(number, "reason", "path", None, "path2")
    error.add_note("note")
    pickled = [pickle.dumps(error, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for one in (copy.copy(error), copy.deepcopy(error), *map(pickle.loads, pickled)):
        assert (type(one), one.args, str(one)) == (type(error), error.args, str(error))
        assert vars(one) == vars(error)


def test_a_pickle_of_0_2_0_is_read() -> None:
    """What 0.2.0 wrote with protocol 2 for IOError(13, "Permission denied", "path")."""
    data = (
        b"\x80\x02clsmkv.errors\nIOError\nq\x00K\rX\x11\x00\x00\x00Permission deniedq\x01"
        b"X\x04\x00\x00\x00pathq\x02\x87q\x03Rq\x04."
    )
    error = pickle.loads(data)
    assert isinstance(error, PermissionError)
    assert str(error) == "[Errno 13] Permission denied: 'path'"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (lsmkv.IOError(), ""),
        (lsmkv.IOError("reason"), "reason"),
        (lsmkv.IOError(None, "reason", "path"), "[Errno None] reason: 'path'"),
    ],
)
def test_an_io_error_without_an_errno_is_of_no_other_class(error: lsmkv.IOError, text: str) -> None:
    assert type(error) is lsmkv.IOError
    assert str(error) == text


def test_a_subclass_takes_its_own_arguments() -> None:
    class FullError(lsmkv.IOError):
        def __init__(self, path: str, *, missing: int) -> None:
            super().__init__(errno.ENOSPC, f"{missing} bytes are missing", path)

    error = FullError("path", missing=7)
    assert type(error) is FullError
    assert str(error) == f"[Errno {errno.ENOSPC}] 7 bytes are missing: 'path'"


WITH_AN_ERRNO = [
    kind
    for kind in (*OSError.__subclasses__(), *ConnectionError.__subclasses__())
    if kind.__module__ == "builtins"
]


@pytest.mark.parametrize("kind", WITH_AN_ERRNO)
def test_an_error_that_was_raised_without_an_errno_gets_that_of_its_class(
    kind: type[OSError],
) -> None:
    error = io_error(kind("reason"))
    assert isinstance(error, lsmkv.IOError)
    assert isinstance(error, kind)
    assert error.errno == errno_of(kind("reason")) is not None
    assert error.strerror == "reason"
    assert isinstance(error.__cause__, kind)


def test_an_error_keeps_both_of_its_paths() -> None:
    raised = OSError(errno.EXDEV, os.strerror(errno.EXDEV), "old", None, "new")
    assert str(io_error(raised)) == str(raised)


def test_a_failure_that_an_env_reports_is_of_both_classes() -> None:
    class Env(lsmkv.MemoryEnv):
        def open_directory(self, path: str, create: bool = False) -> lsmkv.Directory:
            raise OSError(number, os.strerror(number), path)

    for number in errno.errorcode:
        if number != errno.ENOENT:
            for use in (lsmkv.DB, lsmkv.destroy_db, lsmkv.plan_repair, lsmkv.repair_db):
                with pytest.raises(lsmkv.IOError) as raised:
                    use("path", env=Env())
                assert isinstance(raised.value, type(OSError(number, "")))


@every_face
def test_a_file_above_the_directory_is_an_error_of_both_classes(face: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((NotADirectoryError, FileExistsError)) as raised:
        FACES[face](str(tmp_path / "file" / "below"))
    assert isinstance(raised.value, lsmkv.IOError)
    assert str(tmp_path / "file") in str(raised.value)


@every_face
def test_an_empty_path_is_not_the_working_directory(
    face: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lsmkv.DB("store", create_if_missing=True).close()
    if face.endswith("destroy_db"):
        FACES[face]("")  # nothing is there
    else:
        with pytest.raises(lsmkv.NotFoundError, match=r"^\[Errno 2\] the path is empty: ''$"):
            FACES[face]("")
    assert os.listdir() == ["store"]


MISSING_TABLE: dict[str, Callable[[lsmkv.DB], object]] = {
    "check": lambda db: db.check(),
    "checkpoint": lambda db: db.checkpoint("copy"),
    "explain": lambda db: db.explain(b"k"),
    "get": lambda db: db.get(b"k"),
    "iterator": list,
    "multi_get": lambda db: db.multi_get([b"k"]),
    "raw_iterator": lambda db: db.raw_iterator().seek_to_first(),
    "snapshot": lambda db: db.snapshot().get(b"k"),
    "transaction": lambda db: db.transaction().get(b"k"),
    "verify": lambda db: db.verify(),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("call", MISSING_TABLE)
def test_the_error_of_a_missing_table_names_its_file(call: str, read_only: bool) -> None:
    env = lsmkv.MemoryEnv()
    with lsmkv.DB("store", create_if_missing=True, env=env) as db:
        db.put(b"k", b"v")
        db.flush()
        name = db.tables()[0].name
    if read_only and call == "transaction":
        return
    with lsmkv.DB("store", read_only=read_only, env=env) as db:
        with env.open_directory("store") as directory:
            directory.remove(name)
        try:
            result = MISSING_TABLE[call](db)
        except lsmkv.CorruptionError as error:
            found = [error]
        else:
            assert isinstance(result, list)
            found = result
        assert [str(error) for error in found] == [f"store/{name}: the table is missing"]


def test_a_comparator_mismatch_names_both_orders(tmp_path: Path) -> None:
    with lsmkv.DB(
        tmp_path / "db", create_if_missing=True, comparator=lsmkv.ReverseBytewiseComparator()
    ):
        pass
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        lsmkv.DB(tmp_path / "db", comparator=lsmkv.BytewiseComparator())
    error = caught.value
    assert error.stored == "leveldb.ReverseBytewiseComparator"
    assert error.given == "leveldb.BytewiseComparator"
    assert Path(error.path).parent == tmp_path / "db"
    assert Path(error.path).name.startswith("MANIFEST-")
    assert str(error) == (
        f"{error.path}: the database is ordered by 'leveldb.ReverseBytewiseComparator',"
        " the comparator given is 'leveldb.BytewiseComparator'"
    )


def test_a_comparator_mismatch_can_be_pickled() -> None:
    error = lsmkv.ComparatorMismatchError("db/MANIFEST-000001", "idb_cmp1", "other")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is lsmkv.ComparatorMismatchError
    assert (again.path, again.stored, again.given) == ("db/MANIFEST-000001", "idb_cmp1", "other")
    assert str(again) == str(error)
