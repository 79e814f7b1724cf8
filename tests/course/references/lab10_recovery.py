"""Lab 10, by the engine's own modules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeGuard

from lsmkv.course.labs.committing import Plan, obsolete_after
from lsmkv.course.labs.formats import write
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.batch import decode_batch
from lsmkv.engine.format.filenames import FileType, log_name, parse_filename, set_current
from lsmkv.engine.format.log import LogReader


def logs_to_replay(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    numbers = sorted(parsed[0] for parsed in map(parse_filename, names) if is_log(parsed))
    return [log_name(one) for one in numbers if one >= log_number or one == prev_log_number]


def is_log(parsed: tuple[int, FileType] | None) -> TypeGuard[tuple[int, FileType]]:
    return parsed is not None and parsed[1] is FileType.LOG


def is_torn_tail(log: bytes, offset: int) -> bool:
    with MemoryEnv().open_directory("log", create=True) as directory:
        write(directory, "log", log)
        with directory.open("log") as file:
            return all(record.offset <= offset for record in LogReader(file))


def replay(
    logs: Sequence[Sequence[bytes | None]], last_sequence: int
) -> tuple[dict[bytes, bytes | None], int]:
    entries: dict[bytes, bytes | None] = {}
    expected = None
    bad = False
    for piece in (piece for log in logs for piece in log):
        if piece is None:
            bad = True
            continue
        sequence, operations = decode_batch(piece)
        if (bad and expected is None) or (expected is not None and sequence != expected):
            raise ValueError("writes are missing")
        entries |= operations
        expected = sequence + len(operations)
    return entries, max(last_sequence, (expected or 1) - 1)


def obsolete_files(
    names: Sequence[str],
    tables: Collection[int],
    log_number: int,
    prev_log_number: int,
    manifest_number: int,
) -> list[str]:
    plan = Plan({}, manifest_number, frozenset(tables), log_number)
    found = obsolete_after(list(names), plan)
    return [name for name in found if name != log_name(prev_log_number)]


def commit(
    directory: Directory, files: Mapping[str, bytes], manifest_number: int, obsolete: Sequence[str]
) -> None:
    for name, data in files.items():
        write(directory, name, data)
    set_current(directory, manifest_number)
    for name in obsolete:
        directory.remove(name)
