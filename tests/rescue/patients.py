"""Sound stores whose history is known: who wrote them, every write, and the files on the way.

The corpus of ``damages.py`` is made from them.  A patient of lsmkv's has its files after each
change of the disk; those of other writers have them between calls.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from leveldbs import HAS_AMULET, HAS_PLYVEL
from live_copies import STORE, Files, LiveRun, Write, record

from lsmkv import DB, Comparator, MemoryEnv
from lsmkv.files import Log, Table
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.testing import FaultyEnv

DATA = Path(__file__).parents[1] / "data"
NO_DATA = ("LOCK", "LOG", "LOG.old", "STATS")


class Patient(NamedTuple):
    """A store, its history and its files."""

    name: str
    writer: str
    run: LiveRun
    """The write with sequence n is the n-th."""
    comparator: Comparator | None = None

    @property
    def files(self) -> Files:
        """The files at the end."""
        return {name: content for name, content in self.run.steps[-1].items() if name != "LOCK"}

    @property
    def writes(self) -> int:
        """How many writes there were."""
        return len(self.run.writes)


class Calls(Protocol):
    """What a program does with a store."""

    def write(self, key: bytes, value: bytes | None) -> None:
        """Put a value, or delete for None."""

    def flush(self) -> None:
        """Have the log's writes in a table."""

    def compact(self) -> None:
        """Merge all tables."""


Program = Callable[[Calls], None]


def only_a_log(store: Calls) -> None:
    """Forty writes that no table has."""
    for number in range(40):
        store.write(b"key%03d" % (number % 25), b"value %d" % number)
    store.write(b"key007", None)


def churn(store: Calls) -> None:
    """Overwrite and delete keys, through flushes and compactions."""
    for turn in range(3):
        for number in range(30):
            store.write(b"key%03d" % number, b"%d" % turn + bytes(40))
        for number in range(turn, 30, 5):
            store.write(b"key%03d" % number, None)
        store.flush()
        store.write(b"zz%d" % turn, b"tail")
    store.compact()
    for number in range(0, 30, 2):
        store.write(b"key%03d" % number, b"late" + bytes(40))
    store.flush()
    store.compact()
    store.write(b"end", b"1")
    store.write(b"key003", b"last")


def ranges(store: Calls) -> None:
    """Tables of four ranges of keys, then overwrites and deletions of some in newer tables."""
    for turn in range(4):
        for number in range(40):
            store.write(b"%d%03d" % (turn, number), b"first" + bytes(30))
        store.flush()
    for number in range(0, 40, 3):
        store.write(b"1%03d" % number, b"second" + bytes(30))
        store.write(b"2%03d" % number, None)
    store.flush()
    for number in range(0, 40, 4):
        store.write(b"0%03d" % number, b"third" + bytes(30))
        store.write(b"1%03d" % number, None)
    store.flush()
    for number in range(20):
        store.write(b"3%03d" % (2 * number), b"fourth %d" % number)


def large(store: Calls) -> None:
    """Tables on several levels with hundreds of blocks, and a long log."""
    for turn in range(3):
        for number in range(turn, 600, turn + 1):
            store.write(b"key:%05d" % (number * 7 % 600), b"turn %d " % turn + bytes(number % 90))
        for number in range(turn, 600, 11):
            store.write(b"key:%05d" % number, None)
        store.flush()
        if turn == 1:
            store.compact()
    for number in range(900):
        store.write(b"key:%05d" % (number * 13 % 700), b"newest %d " % number + bytes(60))


PROGRAMS: dict[str, Program] = {
    "only a log": only_a_log,
    "churn": churn,
    "ranges": ranges,
    "large": large,
}


class _Recorded:
    """Calls of a store; its files are noted before and after each flush and compaction."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.steps: list[Files] = []
        self.written: list[int] = []

    def note(self, files: Files) -> None:
        """Note the files as they are now."""
        if not self.steps or files != self.steps[-1]:
            self.steps.append(files)
            self.written.append(len(self.writes))

    def run(self) -> LiveRun:
        """The run until now."""
        return LiveRun(self.writes, self.steps, self.written)


class _Engine(_Recorded):
    """A store in a directory of the disk, of another engine."""

    def __init__(self, path: Path, opened: Callable[[str], Any]) -> None:
        super().__init__()
        self._path = path
        self._opened = opened
        self._db = opened(str(path))

    def write(self, key: bytes, value: bytes | None) -> None:
        """Put a value, or delete for None."""
        self.writes.append((key, value))
        if value is None:
            self._db.delete(key)
        else:
            self._db.put(key, value)

    def flush(self) -> None:
        """Open the store again: opening writes the log to a table."""
        self.note(_files_at_rest(self._path))
        self._db.close()
        self._db = self._opened(str(self._path))
        self.note(_files_at_rest(self._path))

    def compact(self) -> None:
        """Merge all tables."""
        self.note(_files_at_rest(self._path))
        compact = getattr(self._db, "compact_range", None) or self._db.compact
        compact()
        self.note(_files_at_rest(self._path))

    def end(self) -> LiveRun:
        """Close the store; its files are those of a killed process."""
        self.note(_files_at_rest(self._path))
        self._db.close()
        return self.run()


class _OwnEngine(_Recorded):
    """A store of lsmkv's."""

    def __init__(self, env: MemoryEnv | FaultyEnv) -> None:
        super().__init__()
        self._env = env
        self.db = DB(
            STORE, create_if_missing=True, env=env, block_size=256, write_buffer_size=1 << 20
        )

    def write(self, key: bytes, value: bytes | None) -> None:
        """Put a value, or delete for None."""
        self.writes.append((key, value))
        if value is None:
            self.db.delete(key)
        else:
            self.db.put(key, value)

    def flush(self) -> None:
        """Have the log's writes in a table."""
        self.note(files_of(self._env))
        self.db.flush()
        self.note(files_of(self._env))

    def compact(self) -> None:
        """Merge all tables."""
        self.note(files_of(self._env))
        self.db.compact_range()
        self.note(files_of(self._env))


def files_in(path: Path) -> Files:
    """The files of a directory on disk, without those that hold no data."""
    found = sorted(one for one in path.iterdir() if one.is_file() and one.name not in NO_DATA)
    return {one.name: one.read_bytes() for one in found}


def _files_at_rest(path: Path) -> Files:
    """The files of a directory once its compactions have ended."""
    before: Files = {}
    for _ in range(1000):
        try:
            files = files_in(path)
        except FileNotFoundError:
            continue  # a compaction removed one of them
        if files == before:
            break
        before = files
        time.sleep(0.02)
    return before


def files_of(env: MemoryEnv | FaultyEnv, path: str = STORE) -> Files:
    """The files of a directory in memory, without those that hold no data."""
    files: Files = {}
    with env.open_directory(path) as directory:
        for name in sorted(directory.names()):
            if name in NO_DATA or name == "lost":
                continue
            with directory.open(name) as file:
                files[name] = file.read(0, file.size)
    return files


def by_steps(program: Program) -> LiveRun:
    """A run of lsmkv's whose files are known after each change of the disk."""

    def run(db: DB, write: Callable[[bytes, bytes | None], None]) -> None:
        class Store:
            @staticmethod
            def write(key: bytes, value: bytes | None) -> None:
                write(key, value)

            @staticmethod
            def flush() -> None:
                db.flush()

            @staticmethod
            def compact() -> None:
                db.compact_range()

        program(Store())

    return record(run)


def by_calls(program: Program) -> LiveRun:
    """A run of lsmkv's whose files are known between calls."""
    env = MemoryEnv()
    store = _OwnEngine(env)
    program(store)
    store.note(files_of(env))
    store.db.close()
    return store.run()


def on_a_full_disk(program: Program, room: int) -> tuple[Files, int]:
    """What is left of a run whose disk takes ``room`` calls that write and no more; and how many
    writes were acknowledged."""
    env = FaultyEnv()
    store = _OwnEngine(env)
    calls = {"append", "reserve", "create"}
    env.fail_at(room, OSError(errno.ENOSPC, "No space left on device"), sticky=True, calls=calls)
    acknowledged = 0
    try:
        program(store)
        acknowledged = len(store.writes)
    except OSError:
        acknowledged = len(store.writes)
        if store.writes:
            acknowledged -= 1
    files = files_of(env.kill())
    try:
        store.db.close()
    except OSError:
        pass
    return files, acknowledged


def _plyvel(program: Program, path: Path) -> LiveRun:
    import plyvel

    store = _Engine(
        path,
        lambda name: plyvel.DB(
            name, create_if_missing=True, block_size=256, bloom_filter_bits=10, compression=None
        ),
    )
    program(store)
    return store.end()


def _amulet(program: Program, path: Path) -> LiveRun:
    import leveldb

    store = _Engine(path, lambda name: leveldb.LevelDB(name, create_if_missing=True))
    program(store)
    return store.end()


def written_by_chromium(name: str) -> LiveRun:
    """A database of a real profile.  Its history is what its own log and tables have of it."""
    files = files_in(DATA / name)
    history: dict[int, Write] = {}
    for file, content in files.items():
        for sequence, key, value in entries_of(file, content):
            history[sequence] = (key, value)
    # A write that no file has any more changes a key that nothing else does.
    writes = [
        history.get(at, (b"\0" * 100 + b"%d" % at, None)) for at in range(1, max(history) + 1)
    ]
    return LiveRun(writes, [files], [len(writes)])


def entries_of(name: str, content: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The entries of an intact log or table: sequence, key, and value or None."""
    if name.endswith(".log"):
        for log_record in Log(content).records():
            for one in log_record.batch.operations():
                yield one.sequence, one.key, one.value
    elif name.endswith((".ldb", ".sst")):
        for entry in Table(content).entries():
            yield entry.sequence, entry.user_key, entry.value if entry.kind else None


def patients(into: Path) -> Iterator[Patient]:
    """All of them.  ``into`` is an empty directory."""
    for name, program in PROGRAMS.items():
        run = by_calls(program) if name == "large" else by_steps(program)
        yield Patient(f"lsmkv, {name}", "lsmkv", run)
    for name, program in PROGRAMS.items():
        if HAS_PLYVEL:
            run = _plyvel(program, into / f"plyvel {name}")
            yield Patient(f"LevelDB, {name}", "LevelDB", run)
        if HAS_AMULET:
            run = _amulet(program, into / f"amulet {name}")
            yield Patient(f"Bedrock, {name}", "Bedrock", run)
    local_storage = written_by_chromium("localstorage-chromium")
    yield Patient("Chromium, Local Storage", "Chromium", local_storage)
    indexed = written_by_chromium("indexeddb-chromium")
    yield Patient("Chromium, IndexedDB", "Chromium", indexed, IndexedDBComparator())
