"""The store in a directory, as ``lsmkv doctor`` reports it: sound, broken, or not there.

Every file is read, by :func:`lsmkv.repair.survey_db`.  Nothing is written and no lock is taken, so
the store may be open elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

from lsmkv import (
    ComparatorMismatchError,
    Error,
    ForeignFormatError,
    OptionArguments,
    UnsupportedCompressionError,
)
from lsmkv.engine.util.progress import Progress
from lsmkv.files.repair import DAMAGED, SOUND, FileSurvey, LogSurvey, Survey, TableSurvey, survey_db
from lsmkv.shards import VersionSurvey
from lsmkv.shared.owner import read_owner
from lsmkv.tools.next_step import holds_store, is_set_directory, stores_below
from lsmkv.tools.shard_sets import open_shards
from lsmkv.tools.text import count, size

MOST = 5
"""The most damaged files, remarks and stores below that are named."""


class Stored(NamedTuple):
    """The content of a directory."""

    verdict: str = ""
    """``"sound"``, ``"broken"``, ``"not checked"``; empty if there is no store."""
    content: str = ""
    """The amount of its content, in words."""
    damage: tuple[str, ...] = ()
    """The worst problem of each damaged file; the worst file first."""
    possible: tuple[str, ...] = ()
    """Places where writes may be lost, which nothing in the files decides."""
    remarks: tuple[str, ...] = ()
    """Findings that imply no loss: a torn record, files left over."""
    reason: str = ""
    """The reason for which it was not checked."""
    advice: str = ""
    """Advice for a store that was not checked."""
    open_in: int | None = None
    """The process that has it open, if that is known."""
    below: tuple[str, ...] = ()
    """The stores in the folders of a directory that holds none itself."""

    @property
    def is_broken(self) -> bool:
        """True if data is damaged or missing."""
        return self.verdict == "broken"

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "verdict": self.verdict,
            "damage": list(self.damage),
            "remarks": [*self.possible, *self.remarks],
            "reason": self.reason or None,
        }


def examine_store(
    path: str, progress: Progress | None = None, **options: Unpack[OptionArguments]
) -> Stored:
    """Survey the store or the shard set in a directory, or look for stores below it.

    ``progress`` and ``options`` are those of :func:`survey_db`.  Raises nothing: what cannot be
    read is in the result.  Reads every byte of the store.
    """
    try:
        if is_set_directory(path):
            return _examine_set(path, progress)
        if not holds_store(path):
            return Stored(below=tuple(stores_below(path)))
        found = survey_db(path, progress=progress, **options)
    except (Error, OSError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        return Stored("not checked", reason=words or str(error), advice=_advice(error))
    pid: int | None = None
    with contextlib.suppress(Error):  # a damaged STATS.json: the survey is of what holds data
        pid = read_owner(path).pid
    return Stored(
        _verdict(found.severity),
        _content(found),
        tuple(_damage(found.files)),
        tuple(_remarks(found, possible=True)),
        tuple(_remarks(found, possible=False)),
        open_in=None if pid == os.getpid() else pid,
    )


def _examine_set(path: str, progress: Progress | None) -> Stored:
    with open_shards(path) as shards:
        found = shards.verify(progress)
    pairs = count(found.document.pairs, "pair")
    content = f"a shard set, {count(len(found.shards), 'shard')}, {pairs}"
    damage = tuple(_damage_of_shards(found))
    return Stored(_verdict(found.severity), content, damage)


def _advice(error: Exception) -> str:
    if isinstance(error, ForeignFormatError):
        return "Name a store in LevelDB's format: lsmkv reads no other."
    if isinstance(error, ComparatorMismatchError):
        return "Survey it in Python: lsmkv.repair.survey_db(DIR, comparator=...)."
    if isinstance(error, UnsupportedCompressionError):
        return "Install what decodes it, and ask again."
    if isinstance(error, OSError) and error.errno == errno.EIO:
        return "The disk fails: copy the directory to another one, and ask again there."
    return "Ask as a user who may read all of its files."


def _verdict(severity: int) -> str:
    return "broken" if severity == DAMAGED else "sound"


def _content(found: Survey) -> str:
    tables = [table for table in found.tables if table.needed and table.size >= 0]
    writes = sum(log.operations for log in found.logs if log.needed)
    entries = count(sum(table.entries for table in tables), "entry")
    held = size(sum(table.size for table in tables))
    return f"{count(len(tables), 'table')}, {entries}, {held}; {count(writes, 'write')} in the log"


def _damage(files: list[FileSurvey]) -> Iterator[str]:
    damaged = [file for file in files if file.severity == DAMAGED]
    for file in sorted(damaged, key=_lost_bytes, reverse=True):
        worst = max(file.problems, key=lambda problem: problem.size)
        more = f", and {len(file.problems) - 1:,} more" if len(file.problems) > 1 else ""
        at = f" at {worst.offset}" if worst.offset else ""
        yield f"{file.name}: {worst.reason}{at}{more}"


def _remarks(found: Survey, possible: bool) -> Iterator[str]:
    for file in found.files:
        zeros = isinstance(file, LogSurvey) and file.zeros > 0
        for remark in file.remarks:
            if (zeros and remark.startswith("zeros ")) == possible:
                yield f"{file.name}: {remark}"


def _lost_bytes(file: FileSurvey) -> float:
    """Rank the damage of a file: without CURRENT or MANIFEST no other file can be placed."""
    if isinstance(file, TableSurvey):
        return sum(hole.lost for hole in file.holes)
    if file.name.startswith(("CURRENT", "MANIFEST")):
        return float("inf")
    return sum(problem.size for problem in file.problems)


def _damage_of_shards(found: VersionSurvey) -> Iterator[str]:
    for shard in found.shards:
        if shard.severity != SOUND:
            of_files = _damage(list(shard.files))
            for words in (*shard.problems, *of_files):
                yield f"shard {shard.number}: {words}"
