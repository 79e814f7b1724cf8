"""More mistakes for ``plant.py``: a step of a put, a Get, a flush, a compaction or an opening is
left out, and every answer is the same without it.

See ``mistakes.py`` for what they are.
"""

from __future__ import annotations

from mistake import Mistake

MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "a memtable is sorted with every put",
        "memtable",
        "MemTable.add",
        "newest_pinned < 0 and",
        "newest_pinned < -1 and",
        "A program that only loads takes several times as long.",
    ),
    Mistake(
        "a Get keeps no value in the row cache",
        "version",
        "Reader._keep_row",
        "if value is not None and",
        "if value is None and",
        "A key that is asked for again and again is searched in its block each time.",
    ),
    Mistake(
        "a block that is read goes into no cache",
        "block",
        "Table._admit",
        "if len(block) <= room:",
        "if len(block) > room:",
        "Each Get reads its block from the file, whatever the size of the cache.",
    ),
    Mistake(
        "an open table is forgotten by the process",
        "table",
        "TableCache._keep",
        "if not self._directory.immutable:",
        "if self._directory.immutable:",
        "A program with many stores runs out of file descriptors.",
    ),
    Mistake(
        "the separators of an index are whole keys",
        "table",
        "TableBuilder.add",
        "self._comparator.find_shortest_separator(self._last_key, key)",
        "self._last_key",
        "An index takes as much memory as its longest keys do.",
    ),
    Mistake(
        "an output of a flush is written back only at its end",
        "files",
        "TableOutput.add_entries",
        "self._begin_sync()",
        "pass",
        "A writer waits for the sync of a whole table at once.",
    ),
    Mistake(
        "a new version is not checked",
        "version",
        "VersionSet._apply",
        "version.check()",
        "pass",
        "Tables of one level that overlap are committed, and the next opening refuses them.",
    ),
    Mistake(
        "a store with nothing to recover is recovered",
        "recovery",
        "Recovery._recover",
        "if self._is_settled(names, logs) and (",
        "if not logs and self._is_settled(names, logs) and (",
        "Each opening writes a MANIFEST and a log, and syncs them.",
    ),
)
