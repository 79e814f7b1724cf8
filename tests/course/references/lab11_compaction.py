"""Lab 11, by the engine's own modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsmkv.course.labs.compacting import (
    Entry,
    File,
    engine_compact,
    engine_held_deeper,
    file_of,
    version_of,
)
from lsmkv.course.labs.compaction import Levels, engine_pick, engine_scores, size_of

held_deeper = engine_held_deeper
level_scores = engine_scores


def overlapping(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    return [file_of(file) for file in version_of(levels).overlapping(level, begin, end)]


def pick(
    levels: Levels, pointers: Sequence[bytes | None]
) -> tuple[int, list[File], list[File]] | None:
    picked = engine_pick(levels, pointers)
    return None if picked is None else (picked.level, picked.inputs, picked.next_inputs)


def compact(
    runs: Sequence[Sequence[Entry]],
    oldest_snapshot: int,
    may_be_deeper: Callable[[bytes], bool],
) -> list[Entry]:
    keys = {entry[0] for run in runs for entry in run}
    return engine_compact(runs, oldest_snapshot, [key for key in keys if may_be_deeper(key)])


def split(entries: Sequence[Entry], limit: int) -> list[list[Entry]]:
    outputs: list[list[Entry]] = []
    size = limit
    for entry in entries:
        if size >= limit and not (outputs and outputs[-1][-1][0] == entry[0]):
            outputs.append([])
            size = 0
        outputs[-1].append(entry)
        size += size_of(entry)
    return outputs


def write_amplification(user_bytes: int, flush_bytes: int, compaction_bytes: int) -> float:
    return (flush_bytes + compaction_bytes) / user_bytes if user_bytes else 0.0
