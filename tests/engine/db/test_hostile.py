"""Directories made to do harm: refused with lsmkv's own errors, in bounded memory and time, and
nothing outside of them is touched.

Each is given to a process of its own, which reads it in every way, writes to it, and destroys it.
"""

from __future__ import annotations

import json
import os
import pathlib
import selectors
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam
import pytest

import lsmkv
from lsmkv.engine.env.mounts import MOUNTS
from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.log import BLOCK_SIZE, frame
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.format import BlockHandle, Footer, seal_block
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import encode_varint
from lsmkv.engine.util.compression import NO_COMPRESSION, SNAPPY, ZSTD

MIB = 1 << 20
LONGEST = 30.0  # seconds for all that is done with one directory: only a hang takes that long
MOST_MEMORY = 64 * MIB
STEPS = ("read_only", "mapped", "survey", "open", "paranoid", "write", "destroy")
ADDRESS_SPACE = 1500  # MiB, for the interpreter and its libraries too

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory"),
]


class Reader:
    """The process that opens them; see ``hostile_reader.py``."""

    def __init__(self) -> None:
        script = pathlib.Path(__file__).parent / "hostile_reader.py"
        root = pathlib.Path(lsmkv.__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(ADDRESS_SPACE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        assert self._line() == "ready\n"

    def judge(self, path: pathlib.Path, steps: tuple[str, ...]) -> dict[str, Any]:
        """What came of it."""
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join((str(path), *steps)) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not self._selector.select(LONGEST):
            self.close()
            raise AssertionError("it hangs")
        line = self._process.stdout.readline()
        assert line, "it died"
        return line

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._selector.close()


@pytest.fixture(scope="module")
def shared_reader() -> Iterator[list[Reader]]:
    readers: list[Reader] = []
    yield readers
    for one in readers:
        one.close()


@pytest.fixture
def reader(shared_reader: list[Reader], request: pytest.FixtureRequest) -> Iterator[Reader]:
    """One for all tests, and a new one after a failure."""
    if not shared_reader:
        shared_reader.append(Reader())
    before = request.session.testsfailed
    yield shared_reader[0]
    if request.session.testsfailed > before:
        shared_reader.pop().close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A sound store: two tables and a log."""
    path = tmp_path_factory.mktemp("hostile") / "template"
    with lsmkv.DB(path, create_if_missing=True) as db:
        for n in range(2):
            db.put(b"k%d" % n, b"v")
            db.flush()
        db.put(b"logged", b"v")
    return path


@pytest.fixture
def store(template: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "store"
    shutil.copytree(template, path)
    return path


@pytest.fixture
def outside(tmp_path: pathlib.Path) -> pathlib.Path:
    """Somebody else's: a directory beside the store, and files that a store might have."""
    path = tmp_path / "outside"
    path.mkdir()
    for name in ("file", "000001.log", "000005.ldb", "CURRENT", "LOCK"):
        (path / name).write_bytes(b"not yours\n")
    return path


def fingerprint(path: pathlib.Path) -> list[tuple[str, bytes, int, int]]:
    """Names, contents, times of change and modes."""
    found = [(".", b"", path.stat().st_mtime_ns, path.stat().st_mode)]
    for file in sorted(path.iterdir()):
        status = file.stat()
        found.append((file.name, file.read_bytes(), status.st_mtime_ns, status.st_mode))
    return found


def judged(
    reader: Reader,
    store: pathlib.Path,
    outside: pathlib.Path | None = None,
    steps: tuple[str, ...] = STEPS,
) -> dict[str, str]:
    """Outcomes by step, once they have been found to be harmless."""
    before = None if outside is None else fingerprint(outside)
    found = reader.judge(store, steps)
    outcomes: dict[str, str] = found["outcomes"]
    assert not [what for what in outcomes.values() if what.startswith("NOT TYPED")], outcomes
    assert found["peak"] < MOST_MEMORY
    for path in found["touched"]:
        below = path == str(store) or path.startswith(f"{store}/")
        # A plain name is looked up in a directory that is held open.
        plain = "/" not in path and path != ".."
        assert below or plain or path in (str(store.parent), MOUNTS), path
    if outside is not None:
        assert fingerprint(outside) == before
    return outcomes


def first(store: pathlib.Path, pattern: str) -> pathlib.Path:
    return min(store.glob(pattern))


def test_a_sound_store_is_read(reader: Reader, store: pathlib.Path, outside: pathlib.Path) -> None:
    """The judge can see, and does not refuse everything."""
    found = reader.judge(store, STEPS)
    assert set(found["outcomes"].values()) == {"ok"}
    assert any(path.endswith(".ldb") for path in found["touched"])
    assert not store.exists()
    (outside / "file").write_bytes(b"changed")
    assert fingerprint(outside)[-1][1] == b"changed"


# Things that are no files


@pytest.mark.parametrize("kind", ["link", "link to a directory", "dangling", "fifo", "directory"])
@pytest.mark.parametrize(
    "victim",
    [
        "*.ldb", "*.log", "MANIFEST-*", "CURRENT", "LOCK", "LOG", "LOG.old", "lost", "000901.dbtmp",
        "000902.ldb", "000903.log", "MANIFEST-000904", ".worker-0123456789abcdef-5.tmp",
    ],
)  # fmt: skip
def test_no_regular_file(
    reader: Reader, store: pathlib.Path, outside: pathlib.Path, victim: str, kind: str
) -> None:
    file = first(store, victim) if "*" in victim else store / victim
    if file.is_file():
        file.unlink()
    if kind == "link":
        file.symlink_to(outside / "file")
    elif kind == "link to a directory":
        file.symlink_to(outside)
    elif kind == "dangling":
        file.symlink_to(outside / "not there")
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    outcomes = judged(reader, store, outside)
    if victim in ("*.ldb", "*.log", "MANIFEST-*", "CURRENT"):
        for step in ("read_only", "open", "paranoid", "write"):
            assert outcomes[step] in ("IOError", "CorruptionError"), outcomes


def test_lost_is_a_link(reader: Reader, store: pathlib.Path, outside: pathlib.Path) -> None:
    """A damaged log is set aside: not there."""
    (store / "lost").symlink_to(outside)
    log = first(store, "*.log")
    log.write_bytes(b"\xff" * 40 + log.read_bytes())
    outcomes = judged(reader, store, outside)
    assert outcomes["open"] == "IOError"


@pytest.mark.parametrize(
    "name",
    [
        "../outside/000001.log", "/etc/passwd", "MANIFEST-../outside/CURRENT", "MANIFEST-000004\0",
        "MANIFEST-\u0664", "MANIFEST-000004", "",
    ],
)  # fmt: skip
def test_current_leads_nowhere(
    reader: Reader, store: pathlib.Path, outside: pathlib.Path, name: str
) -> None:
    end = "" if name in ("", "MANIFEST-000004") else "\n"
    (store / "CURRENT").write_bytes(name.encode() + end.encode())
    outcomes = judged(reader, store, outside)
    assert {outcomes[step] for step in ("read_only", "open", "write")} == {"CorruptionError"}


def test_names_that_are_none_of_the_engines_stay(reader: Reader, store: pathlib.Path) -> None:
    names = ["..ldb", "000001.ldb~", " 000001.log", "MANIFEST-1\n", "\u0661.log", "x" * 255]
    for name in names:
        (store / name).write_bytes(b"mine")
    judged(reader, store)
    assert sorted(os.listdir(store)) == sorted(names)


@pytest.mark.parametrize("settled", [False, True])
def test_a_log_with_another_name_is_not_written_to(store: pathlib.Path, settled: bool) -> None:
    """Though it is sound and would be continued, or is empty."""
    with lsmkv.DB(store) as db:
        if settled:
            db.flush()
        else:
            db.put(b"new", b"v")
    victim = store.parent / "victim"
    (log,) = store.glob("*.log")
    os.link(log, victim)
    before = victim.read_bytes()
    with lsmkv.DB(store, reuse_logs=True) as db:
        db.put(b"more", b"v")
        assert (db.get(b"new"), db.get(b"more")) == (None if settled else b"v", b"v")
    assert victim.read_bytes() == before
    assert victim.stat().st_nlink == 1
    with lsmkv.DB(store) as db:
        assert db.get(b"more") == b"v"


# MANIFESTs: every checksum is right


def edit_of(*files: tuple[int, FileMetaData], **fields: int) -> VersionEdit:
    edit = VersionEdit()
    edit.comparator = "leveldb.BytewiseComparator"
    edit.log_number, edit.next_file_number, edit.last_sequence = 0, 50, 500
    for name, value in fields.items():
        setattr(edit, name, value)
    for level, file in files:
        edit.add_file(level, file)
    return edit


def table_of(number: int, low: bytes = b"a", high: bytes = b"z", size: int = 99) -> FileMetaData:
    return FileMetaData(number, size, pack(low, 9, 1), pack(high, 9, 1))


def log_of(*records: bytes) -> bytes:
    """A log, or a MANIFEST."""
    data = b""
    for record in records:
        data += frame(record, len(data) % BLOCK_SIZE)
    return data


def put_manifest(store: pathlib.Path, data: bytes) -> None:
    for file in store.glob("MANIFEST-*"):
        file.unlink()
    (store / "MANIFEST-000040").write_bytes(data)
    (store / "CURRENT").write_bytes(b"MANIFEST-000040\n")


SOUND = edit_of().encode()
BEGINNING = struct.pack("<IHB", masked_crc32c(b"\x02data"), 4, 2) + b"data"
"""The first fragment of a record that has no other."""
LONG = b"\xff" * 9 + b"\x01"
MANIFESTS: dict[str, bytes] = {
    "names itself": log_of(edit_of((0, table_of(40))).encode()),
    "its log is itself": log_of(edit_of(log_number=40).encode()),
    "one table on all levels": log_of(edit_of(*[(n, table_of(5)) for n in range(7)]).encode()),
    "one table a thousand times": log_of(edit_of(*[(0, table_of(5))] * 1000).encode()),
    "overlap": log_of(edit_of((1, table_of(5)), (1, table_of(7))).encode()),
    "from end to beginning": log_of(edit_of((1, table_of(5, b"z", b"a"))).encode()),
    "a table of 2^64 bytes": log_of(edit_of((1, table_of(5, size=2**64 - 1))).encode()),
    "a table of 2^63 bytes": log_of(edit_of((1, table_of(5, size=2**63))).encode()),
    "table 2^64 - 1": log_of(edit_of((1, table_of(2**64 - 1))).encode()),
    "table 2^63 - 1": log_of(edit_of((1, table_of(2**63 - 1))).encode()),
    "added and deleted": log_of(
        edit_of((1, table_of(5))).encode() + b"\x06\x01\x05", b"\x06\x01\x05" * 5000
    ),
    "level 7": log_of(SOUND + b"\x07\x07\x05\x05"),
    "level 2^32 - 1": log_of(SOUND + b"\x06" + encode_varint(2**32 - 1) + b"\x05"),
    "a level of 2^63": log_of(SOUND + b"\x06" + LONG + b"\x05"),
    "a level in too many bytes": log_of(SOUND + b"\x06\x80\x80\x80\x80\x80\x00\x05"),
    "a number without end": log_of(SOUND + b"\x02" + b"\x80" * 5000),
    "a number of 11 bytes": log_of(SOUND + b"\x03" + b"\x80" * 10 + b"\x01"),
    "a tag without end": log_of(SOUND + b"\xff" * 5000),
    "a name of 2^32 - 1 bytes": log_of(b"\x01" + encode_varint(2**32 - 1) + b"x"),
    "a key of 2^32 - 1 bytes": log_of(SOUND + b"\x05\x01" + encode_varint(2**32 - 1) + b"x"),
    "a key of 2^64 - 1 bytes": log_of(SOUND + b"\x05\x01" + LONG + b"x"),
    "a key of 7 bytes": log_of(SOUND + b"\x05\x01\x07abcdefg"),
    "a comparator that is a path": log_of(b"\x01\x0b/etc/passwd" + SOUND),
    "a comparator that is no text": log_of(b"\x01\x02\xff\xfe" + SOUND),
    "fifty thousand times nothing": log_of(SOUND, b"\x04\x01" * 50_000),
    "two thousand tables": log_of(edit_of(*[(0, table_of(n)) for n in range(100, 2_100)]).encode()),
    "no record": b"",
    "zeros": bytes(3 * BLOCK_SIZE),
    "empty records": log_of(*[b""] * 4000),
    "a record without its end": log_of(SOUND) + BEGINNING,
}
for _name in ("log_number", "prev_log_number", "next_file_number", "last_sequence"):
    for _power in (56, 63, 64):
        for _less in (0, 1, 2):
            if _power != 64 or _less:
                MANIFESTS[f"{_name} 2^{_power} - {_less}"] = log_of(
                    edit_of(**{_name: 2**_power - _less}).encode()
                )


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests(reader: Reader, store: pathlib.Path, name: str) -> None:
    put_manifest(store, MANIFESTS[name])
    judged(reader, store)


# Logs


def batch(sequence: int, count: int, body: bytes) -> bytes:
    return log_of(struct.pack("<QI", sequence, count) + body)


LOGS: dict[str, bytes] = {
    "2^32 - 1 operations": batch(3, 2**32 - 1, b"\x01\x01k\x01v"),
    "a key of 2^32 - 1 bytes": batch(3, 1, b"\x01" + encode_varint(2**32 - 1) + b"k"),
    "a key of 2^64 - 1 bytes": batch(3, 1, b"\x01" + LONG + b"k"),
    "a value of 2^31 bytes": batch(3, 1, b"\x01\x01k" + encode_varint(2**31) + b"v"),
    "a length without end": batch(3, 1, b"\x01" + b"\x80" * 3000),
    "write 2^56 - 1": batch(2**56 - 1, 1, b"\x01\x01k\x01v"),
    "write 2^56 - 2": batch(2**56 - 2, 1, b"\x01\x01k\x01v"),
    "write 2^64 - 1": batch(2**64 - 1, 1, b"\x01\x01k\x01v"),
    "write 0": batch(0, 1, b"\x01\x01k\x01v"),
    "no operation": batch(3, 0, b"") * 4000,
    "a million operations": batch(3, 10_000, b"\x00\x00" * 10_000),
    "beginnings without end": BEGINNING * 2000,
    "nothing but headers": bytes([4, 0x3F]) * (BLOCK_SIZE // 2),
    "ones": b"\x01" * BLOCK_SIZE,
    "noise": bytes(n * n % 251 for n in range(3 * BLOCK_SIZE)),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs(reader: Reader, store: pathlib.Path, name: str) -> None:
    first(store, "*.log").write_bytes(LOGS[name])
    judged(reader, store)


# Tables


class Parts:
    """A table made of anything; the MANIFEST tells its true size, and its first key."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, raw: bytes, kind: int = NO_COMPRESSION) -> BlockHandle:
        """A block as it is stored, compressed already if ``kind`` says so."""
        at = len(self.data)
        body = raw + bytes([kind])
        self.data += body + masked_crc32c(body).to_bytes(4, "little")
        return BlockHandle(at, len(raw))

    def end(self, metaindex: BlockHandle, index: BlockHandle) -> bytes:
        return self.data + Footer(metaindex, index).encode()


def block(*entries: tuple[bytes, bytes], restarts: bytes | None = None) -> bytes:
    builder = BlockBuilder(1)
    for key, value in entries:
        builder.add(key, value)
    data = builder.finish()
    return data if restarts is None else data[: -4 * (len(entries) or 1) - 4] + restarts


KEY = pack(b"k1", 9, 1)
EMPTY = block()


def with_data(raw: bytes, kind: int = NO_COMPRESSION, times: int = 1) -> bytes:
    """A table with this as its data block, which the index names so many times."""
    parts = Parts()
    data = parts.add(raw, kind)
    metaindex = parts.add(EMPTY)
    names = [(pack(b"k1" + b"%06d" % n, 9, 1), data.encode()) for n in range(times)]
    return parts.end(metaindex, parts.add(block(*names)))


def with_index(make: Callable[[BlockHandle], list[BlockHandle]]) -> bytes:
    """A table whose index names these blocks; it gets the place of the only data block."""
    parts = Parts()
    data = parts.add(block((KEY, b"v")))
    metaindex = parts.add(EMPTY)
    handles = make(data)
    names = [(pack(b"k%d" % (n + 1), 9, 1), handle.encode()) for n, handle in enumerate(handles)]
    return parts.end(metaindex, parts.add(block(*names)))


def with_one_block(raw: bytes) -> bytes:
    """A table whose index is its metaindex, too."""
    parts = Parts()
    only = parts.add(raw)
    return parts.end(only, only)


def with_filter(contents: bytes, prefix: bytes = b"filter.") -> bytes:
    parts = Parts()
    data = parts.add(block((KEY, b"v")))
    filters = parts.add(contents)
    name = prefix + b"leveldb.BuiltinBloomFilter2"
    metaindex = parts.add(block((name, filters.encode())))
    return parts.end(metaindex, parts.add(block((KEY, data.encode()))))


def entry(shared: int, unshared: int, size: int, rest: bytes) -> bytes:
    head = encode_varint(shared) + encode_varint(unshared) + encode_varint(size) + rest
    return head + struct.pack("<II", 0, 1)


def zstd(raw: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(raw))


def bomb(entries: bytes, tail: bytes = struct.pack("<II", 0, 1)) -> bytes:
    return zstd(entries + tail)


def compressed_index(raw: bytes) -> bytes:
    parts = Parts()
    parts.add(block((KEY, b"v")))
    metaindex = parts.add(EMPTY)
    return parts.end(metaindex, parts.add(zstd(raw), ZSTD))


WHOLE = bytes([0, len(KEY), 1]) + KEY + b"v"
TABLES: dict[str, Callable[[], bytes]] = {
    "2^32 - 1 restart points": lambda: with_data(block((KEY, b"v"), restarts=b"\xff" * 4)),
    "2^30 restart points": lambda: with_data(
        block((KEY, b"v"), restarts=struct.pack("<I", 1 << 30))
    ),
    "a restart point of 2^31": lambda: with_data(
        block((KEY, b"v"), restarts=struct.pack("<II", 1 << 31, 1))
    ),
    "restart points that fall": lambda: with_data(
        WHOLE * 3 + struct.pack("<IIII", 28, 14, 0, 3)
    ),
    "a key of 2^32 - 1 bytes": lambda: with_data(entry(0, 2**32 - 1, 1, KEY)),
    "a value of 2^32 - 1 bytes": lambda: with_data(entry(0, len(KEY), 2**32 - 1, KEY)),
    "all lengths 2^32 - 1": lambda: with_data(entry(2**32 - 1, 2**32 - 1, 2**32 - 1, KEY)),
    "a length of 2^63": lambda: with_data(entry(0, 2**63, 2**63, KEY)),
    "a length of 2^64 - 1": lambda: with_data(entry(0, 2**64 - 1, 0, KEY)),
    "a length without end": lambda: with_data(b"\x80" * 4000 + struct.pack("<II", 0, 1)),
    "keys out of memory": lambda: with_data(
        entry(0, 60_000, 0, bytes(60_000))[:-8]
        + bytes(encode_varint(60_000) + b"\x01\x00x") * 60_000 + struct.pack("<II", 0, 1)
    ),
    "a block a thousand times": lambda: with_data(block((KEY, b"v")), times=1000),
    "snappy of 2^32 - 1 bytes": lambda: with_data(encode_varint(2**32 - 1) + b"\0" * 99, SNAPPY),
    "snappy without length": lambda: with_data(b"\x80" * 20, SNAPPY),
    "snappy that copies itself": lambda: with_data(
        encode_varint(1000) + b"\x00a" + b"\xfe\x01\x00" * 16, SNAPPY
    ),
    "zstd without size": lambda: with_data(
        b"\x28\xb5\x2f\xfd\x00\x58" + b"\x01\x00\x00" + b"a", ZSTD
    ),
    "zstd of 2^64 - 1 bytes": lambda: with_data(
        b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + b"\x01\x00\x00", ZSTD
    ),
    "zstd of 2 MiB": lambda: with_data(zstd(bytes(2 * MIB)), ZSTD),
    "zstd, a hundred times 1 MiB": lambda: with_data(
        bomb(WHOLE + bytes([0, len(KEY), 0]) + KEY, bytes(MIB // 2) + struct.pack("<I", 1 << 17)),
        ZSTD, times=100,
    ),
    "zlib of 100 MiB": lambda: with_data(zlib.compress(bytes(100 * MIB), 1), ZSTD),
    "a codec that there is not": lambda: with_data(b"block", 77),
    "an index of 30,000 empty keys": lambda: compressed_index(
        bytes(3 * 30_000) + struct.pack("<II", 0, 1)
    ),
    "a block of 30,000 empty keys": lambda: with_data(bomb(WHOLE + bytes(3 * 30_000)), ZSTD),
    "a block of 30,000 versions": lambda: with_data(
        bomb(WHOLE + bytes([len(KEY), 0, 0]) * 30_000), ZSTD
    ),
    "an index that names itself": lambda: with_index(lambda data: [BlockHandle(60, 40)]),
    "an index of handles past the end": lambda: with_index(
        lambda data: [data, BlockHandle(2**63 - 8, 2**63 - 8)]
    ),
    "handles that add up to 2^64": lambda: with_index(
        lambda data: [data, BlockHandle(2**64 - 1, 1)]
    ),
    "handles that overlap": lambda: with_index(
        lambda data: [data, data, BlockHandle(data.offset, data.size), BlockHandle(0, 3)]
    ),
    "handles from the end to the beginning": lambda: with_index(
        lambda data: [BlockHandle(data.size + 5, len(EMPTY)), data]
    ),
    "a footer that names itself": lambda: Parts().end(BlockHandle(0, 43), BlockHandle(0, 43)),
    "a footer of 2^64 - 1": lambda: Parts().end(
        BlockHandle(2**64 - 1, 2**64 - 1), BlockHandle(2**64 - 1, 2**64 - 1)
    ),
    "nothing but a footer": lambda: Parts().end(BlockHandle(0, 0), BlockHandle(0, 0)),
    "a filter that is none": lambda: with_filter(b"\xff" * 40),
    "a filter of 2^31 offsets": lambda: with_filter(struct.pack("<IB", 1, 0)),
    "a filter with a base of 255": lambda: with_filter(struct.pack("<IIB", 0, 4, 255)),
    "a filter of 255 probes": lambda: with_filter(b"\x00" * 9 + b"\xff", b"lsmkv.table_filter."),
    "the index is the metaindex": lambda: with_one_block(block((KEY, BlockHandle(0, 9).encode()))),
}  # fmt: skip


def put_table(store: pathlib.Path, data: bytes) -> None:
    """Let the MANIFEST say that this is the store's only table."""
    for file in (*store.glob("*.ldb"), *store.glob("*.log")):
        file.unlink()
    (store / "000005.ldb").write_bytes(data)
    file = FileMetaData(5, len(data), KEY, pack(b"zz", 9, 1))
    put_manifest(store, log_of(edit_of((1, file)).encode()))


@pytest.mark.parametrize("name", TABLES)
def test_tables(reader: Reader, store: pathlib.Path, name: str) -> None:
    put_table(store, TABLES[name]())
    outcomes = judged(reader, store)
    assert outcomes["survey"] in ("ok", "UnsupportedCompressionError")


def test_a_sound_table_by_the_same_hand(reader: Reader, store: pathlib.Path) -> None:
    put_table(store, with_data(block((KEY, b"v"), (pack(b"zz", 9, 1), b"v"))))
    (store / "000005.ldb").rename(store / "aside")
    table = (store / "aside").read_bytes()
    parts = Parts()
    data = parts.add(block((KEY, b"v"), (pack(b"zz", 9, 1), b"v")))
    index = block((pack(b"zz", 9, 1), data.encode()))
    put_table(store, parts.end(parts.add(EMPTY), parts.add(index)))
    assert len(table) > 0
    assert set(judged(reader, store).values()) == {"ok"}


def test_a_table_larger_than_memory(reader: Reader, store: pathlib.Path) -> None:
    """A file may have a size and take no room: reading such a block must fail like any other."""
    size = 8 << 30
    footer = Footer(BlockHandle(0, 8), BlockHandle(0, size - 48 - 5)).encode()
    put_table(store, b"")
    with (store / "000005.ldb").open("r+b") as file:
        file.seek(size - len(footer))
        file.write(footer)
    put_manifest(store, log_of(edit_of((1, FileMetaData(5, size, KEY, KEY))).encode()))
    # Not survey_db, which goes through all that a file says it has.
    outcomes = judged(reader, store, steps=("read_only", "open", "paranoid", "write", "destroy"))
    assert outcomes["read_only"] == outcomes["open"] == "CorruptionError"


def test_sealed_blocks_of_these_tests() -> None:
    parts = Parts()
    parts.add(b"content")
    assert parts.data == seal_block(b"content", NO_COMPRESSION)
