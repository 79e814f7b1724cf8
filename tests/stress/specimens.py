"""Small stores of every make, as files in memory, together with what is in them."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numbered import State, changed, put_all

from lsmkv import DB, Bloom64Policy, MemoryEnv
from lsmkv.engine.format.filenames import FileType, log_name, parse_filename

PATH = "/db"

Files = dict[str, bytes]

SMALL: dict[str, Any] = {"block_size": 160, "block_restart_interval": 3, "lru_cache_size": 4096}
_DATA = (FileType.CURRENT, FileType.MANIFEST, FileType.TABLE, FileType.LOG)


@dataclass
class Specimen:
    """A store at rest: its files, how it is opened, and what it must say."""

    name: str
    files: Files
    options: dict[str, Any]
    states: list[State]
    """After each batch that only a log holds; the last one is the whole store."""
    record_ends: dict[str, list[int]] = field(default_factory=dict)
    """By log, oldest first: where each of its records ends.  A record holds one batch."""

    @property
    def whole(self) -> State:
        """All that was written."""
        return self.states[-1]

    @property
    def logs(self) -> list[str]:
        """Names of the logs, oldest first."""
        return list(self.record_ends)

    def batches_before(self, log: str, offset: int) -> int:
        """How many batches lie wholly before this place, those of older logs included."""
        count = 0
        for name, ends in self.record_ends.items():
            if name == log:
                return count + sum(end <= offset for end in ends)
            count += len(ends)
        raise KeyError(log)


def kind_of(name: str) -> FileType | None:
    """What the engine takes a name for, if it keeps data under it."""
    parsed = parse_filename(name)
    return parsed[1] if parsed is not None and parsed[1] in _DATA else None


def load(files: Files) -> MemoryEnv:
    """A file system with these files in the store's directory."""
    env = MemoryEnv()
    with env.open_directory(PATH, create=True) as directory:
        for name, data in files.items():
            with directory.create(name) as file:
                file.append(data)
    return env


def files_of(env: MemoryEnv, below: str = "") -> Files:
    """The files with data in the store's directory, or in one below it; {} if there is none."""
    found: Files = {}
    with env.open_directory(PATH) as directory:
        if below and not directory.exists(below):
            return {}
        with directory.subdirectory(below) if below else env.open_directory(PATH) as place:
            for name in place.names():
                if kind_of(name) is not None:
                    with place.open(name) as file:
                        found[name] = file.read(0, file.size)
    return found


def specimens() -> list[Specimen]:
    """All of them; one more where plyvel can be imported."""
    found = [
        _levels("levels", compression=None, mapped=True),
        _levels("snappy", compression="snappy", size=40),
        _levels("zstd", compression="zstd", size=40, bloom_filter_bits=0),
        _levels("table filters", compression=None, filter_layout="table"),
        _levels("both filters", compression="snappy", filter_layout="both"),
        _levels("64-bit filters", compression=None, filter_layout="both", **_FILTERS_64),
        _levels("by length", compression=None, bloom_filter_bits=0, **_ORDER),
        _twins(),
        _one_log(),
        _one_log("one mapped log", mapped=True),
        _several_logs(_levels("several logs", compression=None)),
        _several_logs(_one_log("logs alone", mapped=True)),
    ]
    if importlib.util.find_spec("plyvel") is not None:
        found.append(_leveldbs())
    return found


def _by_length(a: bytes, b: bytes) -> int:
    return ((len(a), a) > (len(b), b)) - ((len(a), a) < (len(b), b))


_FILTERS_64: dict[str, Any] = {"filter_policy": Bloom64Policy(), "prefix_extractor": 3}
_ORDER: dict[str, Any] = {"comparator": _by_length, "comparator_name": "by.length"}

Change = tuple[bytes, bytes | None]


def _apply(db: Any, state: State, changes: list[Change]) -> State:
    """Write one batch, to a store of either engine; the state after it."""
    with db.write_batch() as batch:
        put_all(batch, changes)
    return changed(state, changes)


def _rounds(size: int) -> list[list[Change]]:
    """Three generations of keys: each overwrites some of the one before, and deletes some."""
    generations: list[list[Change]] = []
    for n in range(3):
        changes: list[Change] = []
        for key in range(n, 14, n + 1):
            name = b"key%02d" % key if key % 4 else b"k" * (key + 1)
            changes.append((name, None if (key + n) % 5 == 4 else b"%d" % n * size))
        generations.append(changes)
    return generations


_LOGGED: list[list[Change]] = [
    [(b"key03", b"logged"), (b"log1", b"1")],
    [(b"log2", b"2" * 9)],
    [(b"key05", None), (b"log1", None)],
    [(b"log3", b""), (b"", b"empty")],
    [(b"log2", b"again")],
]


def _levels(name: str, size: int = 8, *, mapped: bool = False, **options: Any) -> Specimen:
    """A table on each of three levels, and a log."""
    options = {**SMALL, **options}
    env = MemoryEnv(mapped_logs=mapped)
    state: State = {}
    with DB(PATH, create_if_missing=True, env=env, **options) as db:
        for changes in _rounds(size):
            state = _apply(db, state, changes)
            db.flush()
        states = [state]
        for changes in _LOGGED:
            states.append(_apply(db, states[-1], changes))
        return _at_rest(name, files_of(env), options, states)


def _twins() -> Specimen:
    """Tables of one size: beside each other on level 2, and over each other on level 0."""
    options = {**SMALL, "compression": None}
    env = MemoryEnv()
    state: State = {}
    with DB(PATH, create_if_missing=True, env=env, **options) as db:
        for first in (10, 50, 30, 10, 10):
            names = [b"key%02d" % key for key in range(first, first + 10)]
            mark = b"%04d" % len(state)
            state = _apply(db, state, [(key, mark + b"-%02d" % first) for key in names])
            db.flush()
        states = [state, _apply(db, state, [(b"log", b"1")])]
        return _at_rest("twins", files_of(env), options, states)


def _one_log(name: str = "one log", *, mapped: bool = False) -> Specimen:
    """All that there is, in one log."""
    env = MemoryEnv(mapped_logs=mapped)
    states: list[State] = [{}]
    with DB(PATH, create_if_missing=True, env=env, **SMALL) as db:
        for changes in [*_rounds(8), *_LOGGED]:
            states.append(_apply(db, states[-1], changes))
        return _at_rest(name, files_of(env), dict(SMALL), states)


def _several_logs(of: Specimen) -> Specimen:
    """The same, as a process leaves it that was killed while it flushed: its log in three."""
    (log,) = of.logs
    data = of.files.pop(log)
    ends = of.record_ends.pop(log)
    number = int(log.split(".", maxsplit=1)[0])
    cuts = [0, ends[1], ends[3], len(data)]
    for n in range(3):
        name = log_name(number + 2 * n)
        of.files[name] = data[cuts[n] : cuts[n + 1]]
        of.record_ends[name] = [end - cuts[n] for end in ends if cuts[n] < end <= cuts[n + 1]]
    return of


def _leveldbs() -> Specimen:
    """What LevelDB writes: two tables and a log."""
    plyvel: Any = importlib.import_module("plyvel")
    with tempfile.TemporaryDirectory() as path:
        db = plyvel.DB(path, create_if_missing=True, block_size=160, bloom_filter_bits=10)
        state: State = {}
        for changes in _rounds(30)[:2]:
            state = _apply(db, state, changes)
            db.compact_range()
        states = [state]
        for changes in _LOGGED:
            states.append(_apply(db, states[-1], changes))
        db.close()
        found = [file for file in Path(path).iterdir() if kind_of(file.name) is not None]
        files = {file.name: file.read_bytes() for file in found}
    return _at_rest("LevelDB's", files, dict(SMALL), states)


def _at_rest(name: str, files: Files, options: dict[str, Any], states: list[State]) -> Specimen:
    (log,) = (file for file in files if kind_of(file) is FileType.LOG)
    ends = []
    at = 0
    data = files[log]
    while data[at:].strip(b"\0"):  # room that was reserved follows
        at += 7 + int.from_bytes(data[at + 4 : at + 6], "little")
        ends.append(at)
    if len(ends) != len(states) - 1:
        raise ValueError(f"{name}: {len(ends)} records, {len(states) - 1} batches")
    return Specimen(name, files, options, states, {log: ends})


Order = Callable[[bytes], Any]


def order_of(specimen: Specimen) -> Order:
    """The sort key that its comparator amounts to."""
    if "comparator" in specimen.options:
        return lambda key: (len(key), key)
    return lambda key: key
