"""The effect of one version edit: a flush, a compaction, a move; in figures and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from lsmkv.engine.options import MAX_MEM_COMPACT_LEVEL
from lsmkv.files import Edit
from lsmkv.tools.text import count, size

START, FLUSH, COMPACTION, MOVE, COUNTERS = "start", "flush", "compaction", "move", "counters"
"""The kinds of edits; ``start`` is the state that the MANIFEST begins with."""


class Change(NamedTuple):
    """One edit, and what it did to the tables."""

    kind: str
    flushed: int
    """Bytes of new tables that came from a memtable, or from an ingest."""
    compacted: int
    """Bytes that a compaction wrote."""


def change_of(edit: Edit, is_first: bool) -> Change:
    """The kind of an edit and the bytes that it wrote.

    A table that an edit removes from one level and adds to another was moved, not written.  An edit
    does not distinguish a flush from an ingest: both only add tables.
    """
    removed = {number for _, number in edit.deleted_files}
    written = sum(file.size for _, file in edit.new_files if file.number not in removed)
    if is_first:
        return Change(START, 0, 0)
    if not edit.new_files and not removed:
        return Change(COUNTERS, 0, 0)
    if not removed:
        return Change(FLUSH, written, 0)
    moved = edit.new_files and all(file.number in removed for _, file in edit.new_files)
    return Change(MOVE, 0, 0) if moved else Change(COMPACTION, 0, written)


def words_for(edit: Edit, change: Change) -> str:
    """The edit in one line.

    >>> from lsmkv.files import parse_edit
    >>> key = bytes.fromhex("09 61 0000000000000000")
    >>> edit = parse_edit(bytes.fromhex("07 00 07 8010") + key + key)
    >>> words_for(edit, change_of(edit, False))
    'flush: 1 table to level 0, 2.0 KiB'
    """
    to_levels = _levels(level for level, _ in edit.new_files)
    from_levels = _levels(level for level, _ in edit.deleted_files)
    added, removed = count(len(edit.new_files), "table"), count(len(edit.deleted_files), "table")
    if change.kind == START:
        return f"the MANIFEST begins: {added}" + (f" on {to_levels}" if edit.new_files else "")
    if change.kind == COUNTERS:
        return "counters only: no table changes"
    if change.kind == FLUSH:
        return f"flush: {added} to {to_levels}, {size(change.flushed)}"
    if change.kind == MOVE:
        return f"move: {added} from {from_levels} to {to_levels}, without writing"
    if not edit.new_files:
        return f"compaction: {removed} of {from_levels} removed, with no entries left"
    return (
        f"compaction: {removed} of {from_levels} become {added} on {to_levels},"
        f" {size(change.compacted)}"
    )


def why_deeper(level: int) -> str:
    """Explain why a flush put its table on level 1 or 2.

    >>> print(why_deeper(1))
    It skips level 0, because no table of levels 0 and 1 has keys in its range: there it would \
only wait for a compaction (in LevelDB, PickLevelForMemTableOutput decides this).
    """
    skipped = "level 0" if level == 1 else "levels 0 and 1"
    free = "levels 0 and 1" if level == 1 else f"levels 0 to {level}"
    return (
        f"It skips {skipped}, because no table of {free} has keys in its range: there it would "
        "only wait for a compaction (in LevelDB, PickLevelForMemTableOutput decides this)."
    )


NO_FLUSHED_TABLES: Final = (
    "Level 0 is empty: compactions moved its tables down, or flushes skipped it. A flush skips "
    "levels, down to level 2 at most, if no table on them has keys in its range (in LevelDB, "
    "PickLevelForMemTableOutput decides this)."
)
"""The explanation of an empty level 0."""


def why(edit: Edit, change: Change) -> str:
    """Explain the level of a flush's tables; empty if that needs no reason."""
    level = max((level for level, _ in edit.new_files), default=0)
    flushed = change.kind == FLUSH and 0 < level <= MAX_MEM_COMPACT_LEVEL
    return why_deeper(level) if flushed else ""


def _levels(levels: Iterable[int]) -> str:
    numbers = sorted(set(levels))
    names = " and ".join(str(number) for number in numbers)
    return f"level{'s' if len(numbers) > 1 else ''} {names}"
