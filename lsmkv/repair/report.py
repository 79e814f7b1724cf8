"""The result of a survey: the files of a store's directory, and the state of each.

The survey fills these objects; ``lsmkv verify`` prints them, and a repair is planned from them.
They are plain data, used by one thread.
"""

from __future__ import annotations

from typing import Never

from lsmkv.db.opening.lost import LostLog
from lsmkv.db.tree.manifest import Manifest
from lsmkv.format.filenames import CURRENT, LOST
from lsmkv.format.keys import unpack
from lsmkv.format.version_edit import FileMetaData
from lsmkv.repair.damaged_table import Hole, Problem
from lsmkv.util.compression import NO_COMPRESSION
from lsmkv.util.copying import refuse_copy

SOUND = 0
"""No damage, and nothing to remark."""
REMARKABLE = 1
"""No write is lost, but there is a remark: a torn record at a log's end, an obsolete file."""
DAMAGED = 2
"""Acknowledged writes are lost, or cannot be read."""


class FileSurvey:
    """One file."""

    def __init__(self, name: str, size: int, needed: bool) -> None:
        self.name = name
        self.size = size
        """Bytes; -1 for a file that is missing."""
        self.needed = needed
        """Whether the store's content depends on the file, as far as the MANIFEST tells."""
        self.problems: list[Problem] = []
        """Damage, in the order of the file's offsets."""
        self.remarks: list[str] = []
        """Oddities that lose nothing."""

    @property
    def severity(self) -> int:
        """:data:`SOUND`, :data:`REMARKABLE` or :data:`DAMAGED`."""
        if self.problems and self.needed:
            return DAMAGED
        return REMARKABLE if self.problems or self.remarks or not self.needed else SOUND

    def note(self, offset: int, size: int, reason: str) -> None:
        """Record damage."""
        self.problems.append(Problem(offset, size, reason))

    def __reduce__(self) -> Never:
        refuse_copy(
            "the survey of a file",
            "take its severity and remarks as plain data",
        )


class TableSurvey(FileSurvey):
    """A table, and how much of it can be read."""

    def __init__(self, name: str, number: int, size: int, level: int) -> None:
        super().__init__(name, size, level >= 0)
        self.number = number
        self.level = level
        """-1 if the version does not name the table."""
        self.stated: FileMetaData | None = None
        """What the MANIFEST states of the table; None if it does not name it."""
        self.holes: list[Hole] = []
        self.blocks = 0
        """Data blocks that can be read."""
        self.entries = 0
        self.deletions = 0
        self.smallest = b""
        self.largest = b""
        self.last_sequence = 0
        self.metadata_intact = True
        """Whether footer, index, metaindex and filters are intact."""
        self.codec = NO_COMPRESSION
        """The codec of its data blocks, as far as they are compressed and can be read."""

    @property
    def intact(self) -> bool:
        """Whether the file can be used as it is."""
        return not self.problems


class LogSurvey(FileSurvey):
    """A write-ahead log."""

    def __init__(self, name: str, number: int, size: int, needed: bool) -> None:
        super().__init__(name, size, needed)
        self.number = number
        self.batches = 0
        self.operations = 0
        self.first_sequence = 0
        self.last_sequence = 0
        self.folder = ""
        """The subdirectory that it lies in, if it lies in one."""
        self.tail: Problem | None = None
        """The problem after the last batch, if there is one: the next log shows what it means."""
        self.start = 0
        """What lies before this offset is in the store already, and is not counted."""


class LostLogSurvey(LogSurvey):
    """A log that recovery has set aside in ``lost/``, from its damage on.

    It is named until the user has acknowledged it.
    """

    def __init__(self, name: str, number: int, size: int, lost: LostLog) -> None:
        super().__init__(f"{LOST}/{name}", number, size, True)
        self.folder = LOST
        self.start = lost.log.offset
        self.lost = lost
        self.is_newest = True
        """Whether nothing was written to the store since: then these writes follow its own."""


class ManifestSurvey(FileSurvey):
    """A MANIFEST; ``state`` is the sum of its readable records."""

    def __init__(self, name: str, number: int, size: int, needed: bool, state: Manifest) -> None:
        super().__init__(name, size, needed)
        self.number = number
        self.records = 0
        self.state = state
        self.whole = False
        """Whether ``state`` can be relied on: no record is damaged, except for a torn last one."""


class Survey:
    """A directory and all its files."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.current = FileSurvey(CURRENT, -1, True)
        self.manifests: list[ManifestSurvey] = []
        self.manifest: ManifestSurvey | None = None
        """The MANIFEST in force: the one that CURRENT names, or else the newest intact one."""
        self.tables: list[TableSurvey] = []
        self.logs: list[LogSurvey] = []
        self.lost: list[LostLogSurvey] = []
        """The logs in ``lost/`` that were not acknowledged."""
        self.others: list[FileSurvey] = []
        self.obsolete: set[int] = set()
        """Numbers of the tables that some MANIFEST has removed from the store."""

    @property
    def levels_known(self) -> bool:
        """Whether an intact MANIFEST tells which tables make up the store, and their levels."""
        return self.manifest is not None and self.manifest.whole

    @property
    def files(self) -> list[FileSurvey]:
        """All files, in the order in which a recovery would read them."""
        return [
            self.current,
            *self.manifests,
            *self.logs,
            *self.tables,
            *self.lost,
            *self.others,
        ]

    @property
    def last_sequence(self) -> int:
        """The highest sequence that was found in the store itself."""
        found = [table.last_sequence for table in self.tables if table.needed]
        found += [log.last_sequence for log in self.logs if log.needed]
        if self.manifest is not None and self.manifest.whole:
            found.append(self.manifest.state.last_sequence)
        return max(found, default=0)

    @property
    def severity(self) -> int:
        """The severity of the worst file."""
        return max(file.severity for file in self.files)


def user_range(hole: Hole) -> tuple[bytes | None, bytes | None]:
    """The user keys between which those of a hole lie, both included; None is no bound."""
    lower = None if hole.lower is None else unpack(hole.lower)[0]
    upper = None if hole.upper is None else unpack(hole.upper)[0]
    return lower, upper
