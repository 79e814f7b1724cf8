"""The result of a survey: the files of a store's directory, and the state of each.

The survey fills these objects; ``lsmkv verify`` prints them, a repair is planned from them, and
users get them (``lsmkv.repair``).  They are plain data, used by one thread.  What a repair needs of
the engine's own objects is in attributes with an underscore.
"""

from __future__ import annotations

from typing import Never

from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.env.base import Directory, RandomAccessFile
from lsmkv.engine.format.filenames import CURRENT, LOST
from lsmkv.engine.format.keys import KIND_DELETION
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.util.compression import NO_COMPRESSION
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.files import TableFile, parse_key
from lsmkv.files.repair.damaged_table import Hole, Problem
from lsmkv.files.repair.flipped_bits import FLIPPED, MendedFile
from lsmkv.files.repair.lineage import Lineage

SOUND = 0
"""No damage and no remarks."""
REMARKABLE = 1
"""Nothing is lost for certain, but there is a remark: a torn record, or zeros, at a log's end; an
obsolete file."""
DAMAGED = 2
"""Acknowledged writes are lost, or cannot be read."""


class FileSurvey:
    """One file.  Plain data: it raises nothing and costs nothing.

    >>> file = FileSurvey("000003.log", size=100, needed=True)
    >>> file.severity == SOUND
    True
    >>> file.note(offset=7, size=3, reason="bad checksum")
    >>> file.severity == DAMAGED, file.problems
    (True, [Problem(7, 3, 'bad checksum')])
    >>> file.note_flips([80])
    >>> file.problems[-1].offset, file.damage == file.problems[:-1]
    (10, True)
    """

    def __init__(self, name: str, size: int, needed: bool) -> None:
        self.name = name
        """Within the store's directory."""
        self.size = size
        """Bytes; -1 for a file that is missing."""
        self.needed = needed
        """True if the store's content depends on the file, according to the MANIFEST."""
        self.problems: list[Problem] = []
        """Damage, in the order of the file's offsets."""
        self.remarks: list[str] = []
        """Oddities that lose nothing."""
        self.folder = ""
        """The subdirectory that it is in, if any."""
        self.flips: list[int] = []
        """The bits of it that have flipped, as checksums show, counted from the lowest of its first
        byte.  A repair restores them."""

    @property
    def severity(self) -> int:
        """:data:`SOUND`, :data:`REMARKABLE` or :data:`DAMAGED`."""
        if self.problems and self.needed:
            return DAMAGED
        return REMARKABLE if self.problems or self.remarks or not self.needed else SOUND

    def note(self, offset: int, size: int, reason: str) -> None:
        """Record damage."""
        self.problems.append(Problem(offset, size, reason))

    def note_flips(self, flips: list[int]) -> None:
        """Record bits that have flipped."""
        self.flips = flips
        for flip in flips:
            self.note(flip // 8, 0, FLIPPED)

    @property
    def damage(self) -> list[Problem]:
        """The problems by which something may be lost: all but flipped bits."""
        return [problem for problem in self.problems if problem.reason != FLIPPED]

    def __reduce__(self) -> Never:
        refuse_copy("the survey of a file", "take its severity and remarks as plain data")


class TableSurvey(FileSurvey):
    """A table, and how much of it can be read.  Plain data: it raises nothing and costs nothing.

    >>> table = TableSurvey("000005.ldb", number=5, size=900, level=-1)
    >>> table.intact, table.severity == REMARKABLE  # no version names it
    (True, True)
    """

    def __init__(self, name: str, number: int, size: int, level: int) -> None:
        super().__init__(name, size, level >= 0)
        self.number = number
        self.level = level
        """-1 if the version does not name the table."""
        self._stated: FileMetaData | None = None
        """The MANIFEST's statement about the table; None if it does not name it."""
        self.holes: list[Hole] = []
        """The data blocks that cannot be read; each of them is also a problem."""
        self.blocks = 0
        """Data blocks that can be read."""
        self.entries = 0
        """Entries in these blocks, deletions included."""
        self.deletions = 0
        self.smallest = b""
        """The first of their internal keys (:func:`lsmkv.files.parse_key`); empty if there is
        none."""
        self.largest = b""
        """The last of them."""
        self.first_sequence = 0
        """The lowest of their sequences."""
        self.last_sequence = 0
        """The highest of them."""
        self.reads_first = True
        """True if the file's first data block is among those that can be read."""
        self.reads_last = True
        """True if its last one is."""
        self.stray = ""
        """Description of its content, if it is not the table that the MANIFEST states under its
        number."""
        self.metadata_intact = True
        """True if footer, index, metaindex and filters are intact."""
        self.codec = NO_COMPRESSION
        """The codec of those of its data blocks that are compressed and can be read."""

    def _count(self, stored: list[bytes]) -> None:
        """Count entries, by their tags as they are stored."""
        tags = [int.from_bytes(tag, "little") for tag in stored]
        if tags:
            lowest = min(tags) >> 8
            self.first_sequence = min(self.first_sequence, lowest) if self.entries else lowest
            self.last_sequence = max(self.last_sequence, max(tags) >> 8)
            self.entries += len(tags)
            self.deletions += sum([tag & 0xFF == KIND_DELETION for tag in tags])

    @property
    def intact(self) -> bool:
        """True if the file can be used as it is."""
        return not self.problems


class LogSurvey(FileSurvey):
    """A write-ahead log.  Plain data: it raises nothing and costs nothing.

    >>> log = LogSurvey("000003.log", number=3, size=100, needed=True)
    >>> log.batches, log.operations, log.tail
    (0, 0, None)
    """

    def __init__(self, name: str, number: int, size: int, needed: bool) -> None:
        super().__init__(name, size, needed)
        self.number = number
        self.batches = 0
        """Batches that can be read."""
        self.operations = 0
        """Writes in them."""
        self.first_sequence = 0
        """That of the first write; 0 if there is none."""
        self.last_sequence = 0
        self.tail: Problem | None = None
        """The problem after the last batch, if there is one: the next log shows what it means."""
        self.gaps: list[tuple[int, int]] = []
        """The first and last of the writes that are missing between two of its batches."""
        self.gap_before: tuple[int, int] | None = None
        """The same of those before its first batch; the first is 0 if it is unknown."""
        self.zeros = 0
        """Bytes of zeros at its end, where writes may have been: not space that was reserved."""
        self.start = 0
        """Everything before this offset is in the store already, and is not counted."""


class LostLogSurvey(LogSurvey):
    """A log that recovery has set aside in ``lost/``, from its damage on.

    It is reported until the user has acknowledged it.  Plain data: it raises nothing and costs
    nothing.

    >>> LostLogSurvey("000003.log", number=3, size=100, start=60).name
    'lost/000003.log'
    """

    def __init__(self, name: str, number: int, size: int, start: int) -> None:
        """``start`` is where its damage begins: everything before it is in the store."""
        super().__init__(f"{LOST}/{name}", number, size, True)
        self.folder = LOST
        self.start = start
        self.is_newest = True
        """True if nothing has been written to the store since, so that these writes follow its
        own."""


class ManifestSurvey(FileSurvey):
    """A MANIFEST.  Plain data: it raises nothing, and costs nothing except as noted.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"ant", b"six")
    ...     db.flush()
    >>> manifest = lsmkv.repair.survey_db("store", env=env).manifest
    >>> manifest.whole, manifest.comparator, [len(level) for level in manifest.levels()]
    (True, 'leveldb.BytewiseComparator', [0, 0, 1, 0, 0, 0, 0])
    """

    def __init__(self, name: str, number: int, size: int, needed: bool, state: Manifest) -> None:
        super().__init__(name, size, needed)
        self.number = number
        self.records = 0
        """Records that can be read."""
        self._state = state
        """The sum of its readable records."""
        self._lineage = Lineage()
        """From which files the tables of these records were made."""
        self.whole = False
        """True if it can be relied on: no record is damaged, except for a torn last one."""

    @property
    def comparator(self) -> str | None:
        """The name of the order of keys; None if no readable record has it."""
        return self._state.comparator

    def levels(self) -> tuple[tuple[TableFile, ...], ...]:
        """The tables of each level that its readable records name, in their order.  O(tables)."""
        return tuple(
            tuple(
                [
                    TableFile(
                        file.number, file.size, parse_key(file.smallest), parse_key(file.largest)
                    )
                    for file in files.values()
                ]
            )
            for files in self._state.levels
        )


class Survey:
    """A directory and all its files: what :func:`survey_db` returns.

    Plain data: it raises nothing and costs nothing.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"ant", b"six")
    >>> found = lsmkv.repair.survey_db("store", env=env)
    >>> found.severity, found.levels_known, found.last_sequence
    (0, True, 1)
    >>> [file.name for file in found.files]
    ['CURRENT', 'MANIFEST-000004', '000003.log']
    """

    def __init__(self, path: str) -> None:
        self.path = path
        """The directory."""
        self.current = FileSurvey(CURRENT, -1, True)
        """The file CURRENT, which names the MANIFEST in force."""
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
        self.strangers = False
        """True if none of the tables that the MANIFEST in force names is as it states."""
        self.unnamed: set[int] = set()
        """Numbers of tables that the MANIFEST in force does not name, if it names missing files: it
        may lack records at its end."""

    def __reduce__(self) -> Never:
        refuse_copy("the survey of a store", "take its severity and its files' as plain data")

    @property
    def levels_known(self) -> bool:
        """True if an intact MANIFEST names the tables of the store and their levels."""
        return self.manifest is not None and self.manifest.whole

    @property
    def _read_logs(self) -> list[LogSurvey]:
        """The store's logs that have batches."""
        return [log for log in self.logs if log.needed and log.batches > 0]

    def _use_all(self) -> None:
        """Take all tables and logs for the store's, as if there were no MANIFEST."""
        self.logs = [log for log in self.logs if log.size >= 0]
        files = [*self.tables, *self.logs]
        self._do_not_rely(0, "not used: every table and every log is merged", files)

    def _do_not_rely(self, offset: int, reason: str, files: list[FileSurvey]) -> None:
        """Do not rely on the MANIFEST, and take ``files`` for the store's as well."""
        if self.manifest is not None:
            self.manifest.whole = False
            self.manifest.note(offset, 0, reason)
        self.tables = [table for table in self.tables if table.size >= 0]
        for file in files:
            file.needed = True

    @property
    def files(self) -> list[FileSurvey]:
        """All files, in the order in which a recovery would read them."""
        return [self.current, *self.manifests, *self.logs, *self.tables, *self.lost, *self.others]

    @property
    def last_sequence(self) -> int:
        """The highest sequence that was found in the store itself."""
        found = [table.last_sequence for table in self.tables if table.needed]
        found += [log.last_sequence for log in self.logs if log.needed]
        if self.manifest is not None and self.manifest.whole:
            found.append(self.manifest._state.last_sequence)
        return max(found, default=0)

    @property
    def severity(self) -> int:
        """The severity of the worst file."""
        return max(file.severity for file in self.files)


def open_mended(directory: Directory, survey: FileSurvey) -> RandomAccessFile:
    """Open a file that was surveyed, as it was before some of its bits flipped."""
    if not survey.folder:
        file = directory.open(survey.name)
    else:
        with directory.subdirectory(survey.folder) as folder:
            file = folder.open(survey.name.removeprefix(f"{survey.folder}/"))
    return MendedFile(file, survey.flips) if survey.flips else file
