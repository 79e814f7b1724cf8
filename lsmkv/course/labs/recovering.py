"""Lab 10: the result of a student's functions in a directory that a crash has left."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

import lsmkv
from lsmkv.course.failure import CheckFailure, require, shown
from lsmkv.course.given import BLOCK_SIZE, Directory
from lsmkv.course.labs.committing import newest_table
from lsmkv.course.labs.edits import (
    COMPARATOR,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NAME_OF_ORDER,
    NEXT_FILE_NUMBER,
    encoded,
)
from lsmkv.course.labs.flushing import CURRENT
from lsmkv.course.labs.formats import (
    KIND_VALUE,
    batch_of,
    entries_of_table,
    frame,
    set_current,
    version_of_store,
    write,
)
from lsmkv.course.labs.power_cuts import PATH
from lsmkv.files import FileSource, Log, LogRecord, TableEntry, make_name, parse_name
from lsmkv.testing import CrashState, RecordingEnv

Pieces = list[bytes | None]
"""A log: its batches, and None where bytes are bad."""


class Damage(NamedTuple):
    """The begin of a log's bad bytes, and ``torn`` if no record comes after them."""

    offset: int
    torn: bool


def pieces_of(directory: Directory, name: str) -> tuple[Pieces, Damage | None]:
    """Return the engine's records from a log, and the first damage."""
    with directory.open(name) as file:
        return pieces_of_log(file)


def pieces_of_log(source: FileSource) -> tuple[Pieces, Damage | None]:
    """Return the engine's records from the bytes of a log, and the first damage."""
    pieces: Pieces = []
    first: int | None = None
    last = -1
    for part in Log(source).walk():
        if isinstance(part, LogRecord):
            pieces.append(part.payload)
            last = part.offset
        else:
            pieces.append(None)
            first = part.offset if first is None else first
    return pieces, None if first is None else Damage(first, last < first)


def log_of(pieces: Pieces) -> bytes:
    """A log of some batches; None stands for bad bytes."""
    log = b""
    for piece in pieces:
        made = frame(b"a record whose checksum is wrong" if piece is None else piece, len(log))
        log += made[:-1] + b"?" if piece is None else made
    assert len(log) < BLOCK_SIZE
    return log


BAD_BEGINNING = "Bad bytes before the first batch: it is unknown what was in them."
GAP = "A batch that does not begin where the one before it ended comes after a gap."


def why_missing(logs: Sequence[Pieces]) -> str:
    """Return the reason for missing writes, if lsmkv reports any."""
    first = next((piece for log in logs for piece in log), b"")
    return BAD_BEGINNING if first is None else GAP


def needed_logs(directory: Directory) -> list[Pieces]:
    """The logs of a directory that are needed, by the engine's rules, in order."""
    state = version_of_store(directory)
    parsed = [parse_name(name) for name in directory.names()]
    numbers = sorted(one.number for one in parsed if one is not None and one.kind == "log")
    needed = [n for n in numbers if n >= state.log_number or n == state.prev_log_number]
    return [pieces_of(directory, make_name("log", number))[0] for number in needed]


class Found(NamedTuple):
    """The result of a recovery."""

    content: dict[bytes, bytes]
    last_sequence: int


def by_the_engine(env: lsmkv.Env) -> Found | None:
    """Recover by lsmkv; None if it refuses the store, since writes are missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lsmkv.RecoveryWarning)  # the damage is made on purpose
            db = lsmkv.DB(PATH, env=env, paranoid_checks=True)
        with db:
            content = dict(db.iterator())
    except lsmkv.CorruptionError:
        return None
    with env.open_directory(PATH) as directory:
        return Found(content, version_of_store(directory).last_sequence)


def engine_replays(logs: list[Pieces], last_sequence: int, keys: list[bytes]) -> Found | None:
    """Recover some logs by lsmkv, in a store whose table holds old values of the keys."""
    env = lsmkv.MemoryEnv()
    with env.open_directory(PATH, create=True) as directory:
        made, table = newest_table(dict.fromkeys(keys, b"old"), 6, 2, 0)
        write(directory, make_name("table", 2), table)
        for number, pieces in enumerate(logs, 10):
            write(directory, make_name("log", number), log_of(pieces))
        counters = [(LOG_NUMBER, 10), (NEXT_FILE_NUMBER, 20), (LAST_SEQUENCE, last_sequence)]
        edit = encoded([(COMPARATOR, NAME_OF_ORDER), *counters, made])
        write(directory, make_name("manifest", 5), frame(edit, 0))
        set_current(directory, 5)
    return by_the_engine(env)


# Crashes of a real store


@functools.cache
def recording() -> RecordingEnv:
    """A store at work: writes, some of them synced, deletions, and two flushes."""
    env = RecordingEnv()
    with env.open_directory(PATH, create=True) as directory:
        # Replaces the info log, whose lines, and so the drawn states, would differ from run to run.
        directory.subdirectory(make_name("info log"), create=True).close()
    with lsmkv.DB(PATH, create_if_missing=True, env=env) as db:
        for number in range(45):
            key = b"key%02d" % (number * 7 % 20)
            if number % 6 == 5:
                db.delete(key)
            else:
                db.put(key, b"%d " % number * (20 + 90 * (number % 4)), sync=number % 9 == 8)
            if number in (14, 29):
                db.flush()
    return env


def crash_states(points: int, seed: int) -> Iterator[CrashState]:
    """States of the disk after a crash of that store, once the store exists."""
    for state in recording().crash_states(points=points, seed=seed):
        with state.env.open_directory("/") as root:
            if PATH[1:] not in root.names():
                continue
        with state.env.open_directory(PATH) as directory:
            if CURRENT in directory.names():
                yield state


def by_the_student(code: ModuleType, directory: Directory, when: str) -> Found | None:
    """The student's recovery of a directory; None if it refuses it."""
    found = replayed_by_the_student(code, directory, when)
    if found is None:
        return None
    entries, last_sequence = found
    content = content_of_tables(directory)
    for key, value in entries.items():
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
    return Found(content, last_sequence)


def replayed_by_the_student(
    code: ModuleType, directory: Directory, when: str
) -> tuple[dict[bytes, bytes | None], int] | None:
    """The student's replay of a directory's logs; None if replay reports missing writes."""
    state = version_of_store(directory)
    names = directory.names()
    logs: list[Pieces] = []
    for name in code.logs_to_replay(names, state.log_number, state.prev_log_number):
        require(name in names, f"logs_to_replay named {name!r}, which is not in the directory.")
        pieces, damage = pieces_of(directory, name)
        logs.append(pieces)
        if damage is None:
            continue
        data = directory.read_file(name, 1 << 24)
        got = code.is_torn_tail(data, damage.offset)
        require(
            got is damage.torn,
            f"{when}, {name} is bad from byte {damage.offset:,} on, and the engine finds"
            f" {'no record' if damage.torn else 'records'} after that. is_torn_tail must be"
            f" {damage.torn}, but your code returned {shown(got)}.",
        )
    try:
        got = code.replay(logs, state.last_sequence)
    except ValueError:
        return None
    require_replayed(got, when)
    entries, last_sequence = got
    return entries, last_sequence


def require_replayed(got: object, when: str) -> None:
    """Fail unless replay could return this."""
    require(
        isinstance(got, tuple)
        and len(got) == 2
        and isinstance(got[0], dict)
        and isinstance(got[1], int),
        f"{when}, replay must return a dict and a number, not {shown(got)}.",
    )


def content_of_tables(directory: Directory) -> dict[bytes, bytes]:
    """The keys and values of only a store's tables."""
    newest: dict[bytes, TableEntry] = {}
    for files in version_of_store(directory).levels:
        for file in files:
            for entry in entries_of_table(directory, file.number):
                other = newest.get(entry.user_key)
                if other is None or other.sequence < entry.sequence:
                    newest[entry.user_key] = entry
    return {key: entry.value for key, entry in newest.items() if entry.kind == KIND_VALUE}


def require_found(
    got: Found | None, expected: Found | None, when: str, engine: str, hint: str = ""
) -> None:
    """Fail unless the student's recovery finds the same as an engine's."""
    if expected is None:
        require(
            got is None,
            f"{when}, writes are missing: {engine} refuses the store, but your replay does not.\n"
            f"{hint or GAP}",
        )
        return
    if got is None:
        bad = "Bad bytes alone are no loss: only a batch with a later sequence after them is."
        raise CheckFailure(
            f"{when}, {engine} recovers the store, but your replay raises ValueError.\n"
            f"{hint or bad}"
        )
    for key in sorted({*got.content, *expected.content}):
        one, other = got.content.get(key), expected.content.get(key)
        require(
            one == other,
            f"{when}, {engine} finds {shown(other)} for the key {key!r}, but your recovery finds"
            f" {shown(one)}.\nAll logs that are needed must be replayed, in order. The last"
            " operation on a key decides, and a deletion hides the values in the tables.",
        )
    last = "A batch of three operations has three sequences, and its record states the first."
    require(
        got.last_sequence == expected.last_sequence,
        f"{when}, the last sequence is {expected.last_sequence}, but your replay returned"
        f" {got.last_sequence}.\n{hint or last}",
    )


def batches(*starts: int) -> Pieces:
    """Batches that begin at these sequences, each with one put; 0 means bad bytes."""
    return [
        batch_of(start, [(b"key%d" % start, b"value %d" % start)]) if start else None
        for start in starts
    ]
