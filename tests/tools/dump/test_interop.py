"""``lsmkv dump`` beside LevelDB's own dump of the same files, line by line.

plyvel brings LevelDB as a shared library, and that has ``leveldb::DumpFile``, which ``leveldbutil
dump`` consists of.  It is called here by its C++ name: a ``WritableFile`` made of a table of
callbacks takes what it prints.
"""

from __future__ import annotations

import ctypes
import platform
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools.app import app
from lsmkv.tools.text import unescape

plyvel = pytest.importorskip("plyvel")

_DUMP_FILE = "_ZN7leveldb8DumpFileEPNS_3EnvERKSsPNS_12WritableFileE"
_DEFAULT_ENV = "_ZN7leveldb3Env7DefaultEv"


class Slice(ctypes.Structure):
    """``leveldb::Slice``."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))


_Append = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Slice))
_Other = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _library() -> ctypes.CDLL | None:
    if platform.machine() != "x86_64":  # where a status is returned otherwise
        return None
    home = Path(plyvel.__file__).parents[1] / "plyvel.libs"
    for path in home.glob("libleveldb*"):
        library = ctypes.CDLL(str(path))
        if hasattr(library, _DUMP_FILE):
            return library
    return None


LEVELDB = _library()
pytestmark = pytest.mark.skipif(LEVELDB is None, reason="plyvel brings no LevelDB that can dump")


def leveldb_dump(path: Path) -> list[bytes]:
    """The lines of ``leveldbutil dump``."""
    assert LEVELDB is not None
    printed: list[bytes] = []

    def succeed(status: int) -> int:
        ctypes.c_void_p.from_address(status).value = None
        return status

    def append(status: int, _this: int, data: Any) -> int:
        printed.append(ctypes.string_at(data.contents.data, data.contents.size))
        return succeed(status)

    callbacks = [_Append(append), *(_Other(lambda status, _: succeed(status)) for _ in range(3))]
    # Two destructors, which are never called, then Append, Close, Flush and Sync.
    members = [None, None, *(ctypes.cast(one, ctypes.c_void_p).value for one in callbacks)]
    virtual = (ctypes.c_void_p * len(members))(*members)
    writable = ctypes.c_void_p(ctypes.addressof(virtual))

    # A std::string of the old ABI: length, capacity and reference count stand before the text.
    name = bytes(path)
    text = ctypes.create_string_buffer(
        len(name).to_bytes(8, "little") * 2 + bytes(8) + name, 24 + len(name) + 1
    )
    string = ctypes.c_void_p(ctypes.addressof(text) + 24)

    default_env = getattr(LEVELDB, _DEFAULT_ENV)
    default_env.restype = ctypes.c_void_p
    dump_file = getattr(LEVELDB, _DUMP_FILE)
    dump_file.restype = ctypes.c_void_p
    dump_file.argtypes = [ctypes.c_void_p] * 4
    status = ctypes.c_void_p()
    dump_file(
        ctypes.addressof(status),
        default_env(),
        ctypes.addressof(string),
        ctypes.addressof(writable),
    )
    assert status.value is None, "LevelDB refuses the file"
    return b"".join(printed).split(b"\n")[:-1]


def our_dump(path: Path) -> list[bytes]:
    """The lines of lsmkv dump that LevelDB prints, too."""
    done = CliRunner().invoke(app, ["dump", str(path)])
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout_bytes.split(b"\n")[:-1]
    if path.suffix in (".ldb", ".sst"):
        lines = [line for line in lines if not line.startswith((b"---", b"  "))]
    return lines


def as_leveldb_escapes(line: bytes) -> bytes:
    r"""Bytes as LevelDB escapes them: ``\xNN`` for all but printable ASCII."""
    plain = unescape(line)
    return re.sub(rb"[^ -~]", lambda one: b"\\x%02x" % one[0][0], plain)


def agrees(directory: Path) -> dict[str, int]:
    """Compare every file; gives the number of lines compared for each kind of file."""
    compared = {".ldb": 0, ".log": 0, "": 0}
    for path in directory.iterdir():
        if path.suffix in (".ldb", ".log") or path.name.startswith("MANIFEST-"):
            theirs = leveldb_dump(path)
            assert [as_leveldb_escapes(line) for line in our_dump(path)] == theirs
            compared[path.suffix] += len(theirs)
    return compared


def fill(db: Any, rng: random.Random, count: int) -> None:
    for n in range(count):
        key = rng.choice([b"key%03d" % rng.randrange(500), rng.randbytes(rng.randrange(6))])
        if rng.random() < 0.3:
            db.delete(key)
        else:
            db.put(key, rng.choice([b"value" * rng.randrange(20), rng.randbytes(30)]))
        if n % 500 == 499:
            with db.write_batch() as batch:
                for _ in range(40):  # a record of more than two blocks
                    batch.put(rng.randbytes(4), rng.randbytes(2000))
                batch.delete(b"\\'\x7f\t\n\xff")


Open = Callable[..., Any]


@pytest.mark.parametrize("engine", [plyvel.DB, lsmkv.DB], ids=["leveldb", "lsmkv"])
@pytest.mark.parametrize(
    "options",
    [
        {"compression": None, "bloom_filter_bits": 0},
        {"compression": None, "bloom_filter_bits": 10, "block_restart_interval": 1},
        {"compression": "snappy", "bloom_filter_bits": 10, "block_size": 500},
    ],
    ids=["plain", "filters", "snappy"],
)
def test_dump_prints_the_lines_of_leveldbutil(
    engine: Open, options: dict[str, Any], tmp_path: Path
) -> None:
    rng = random.Random(repr((engine, options)))
    path = tmp_path / "db"
    sizes = {"write_buffer_size": 70_000, "max_file_size": 30_000}
    db = engine(str(path), create_if_missing=True, **options, **sizes)
    fill(db, rng, 1600)
    db.compact_range()
    fill(db, rng, 600)
    db.close()
    compared = agrees(path)
    assert compared[".ldb"] > 300
    assert compared[""] > 30
    assert compared[".log"] > 5
    manifest = b"\n".join(line for one in path.glob("MANIFEST-*") for line in our_dump(one))
    for field in (
        b"Comparator: ",
        b"LogNumber: ",
        b"CompactPointer: ",
        b"DeleteFile: ",
        b"AddFile: ",
    ):
        assert field in manifest
    for one in path.glob("*.ldb"):
        assert CliRunner().invoke(app, ["dump", "--annotate", str(one)]).exit_code == 0


def test_the_comparison_with_leveldbutil_can_fail(tmp_path: Path) -> None:
    with plyvel.DB(str(tmp_path / "db"), create_if_missing=True) as db:
        db.put(b"k", b"v")
    (log,) = (tmp_path / "db").glob("*.log")
    assert leveldb_dump(log) == [b"--- offset 0; sequence 1", b"  put 'k' 'v'"]
    assert our_dump(log) != leveldb_dump(log)[:1]
