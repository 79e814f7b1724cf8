"""Version: which tables make up which level, at one moment.  Immutable.

Level 0 holds flushed memtables, whose ranges overlap; it is kept newest first.  On every other
level the files are sorted and disjoint, so a key lies in one file at most.  The version set makes
versions; readers and compactions use them in any thread without a lock.  (Source: LevelDB,
``db/version_set.cc``.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.row_cache import RowCache
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import (
    MAX_SEQUENCE,
    TAG_SIZE,
    InternalKeyComparator,
    sequence_in,
    unpack,
)
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import L0_COMPACTION_TRIGGER, MAX_MEM_COMPACT_LEVEL, Options
from lsmkv.engine.util.search import SortedKeys

if TYPE_CHECKING:
    from mypy_extensions import i64

LEVEL_1_BYTES = 10 * 1024 * 1024
LEVEL_GROWTH = 10

PLACE_BITS: Final = 32  # a file's place is level << 32 | index + 1
_PLACE_MASK: Final = 0xFFFFFFFF


def max_bytes_for_level(level: int) -> int:
    """Bytes that a level >= 1 may hold before it needs a compaction: 10 MB x 10^(level - 1)."""
    return LEVEL_1_BYTES * int(LEVEL_GROWTH ** (level - 1))


def total_size(files: list[FileMetaData]) -> int:
    """Bytes of all these files."""
    return sum(file.size for file in files)


class Version:
    """The files of each level.

    A version that is still referenced keeps its files on disk: the version set knows the
    ``lease`` of every version by a weak reference, and only files that none of them names are
    removed.
    """

    def __init__(self, comparator: InternalKeyComparator, levels: list[list[FileMetaData]]) -> None:
        """``levels`` has the files of each level in any order; they are sorted here.

        There are seven, or more in a store of goleveldb's, which is only read.
        """
        self.comparator = comparator
        self._user_compare = comparator.user_comparator.compare
        self.levels = levels
        levels[0].sort(key=lambda file: -file.number)
        for files in levels[1:]:
            files.sort(key=lambda file: comparator.sort_key(file.smallest))
        # For lookups: the sort keys of the first and last user key of each file, file by file.
        self._edges: list[list[Any]] = [edges_of(files, comparator.order) for files in levels]
        self._places = [SortedKeys(edges) for edges in self._edges]
        used = [level for level in range(len(levels)) if levels[level]]
        self._deepest: i64 = used[-1] if used else 0
        """The last level that holds anything."""
        self.sizes = [total_size(files) for files in levels]
        """Bytes of each level."""
        self.size = sum(self.sizes)
        """Bytes of all tables."""
        self.numbers = frozenset(file.number for files in levels for file in files)
        self.lease = set(self.numbers)
        """The same, for the version alone to refer to: while it lives, its tables are in use."""
        self.compaction_level, self.compaction_score = self._score()
        self.row_cache = RowCache()
        """Values that Gets found in these tables, valid as long as the version is current."""
        self.file_to_compact: tuple[int, FileMetaData] | None = None
        """Level and file of a seek compaction: too many lookups read the file without finding a
        key."""

    def candidates(self, sort_key: Any) -> list[tuple[int, FileMetaData]]:
        """The files whose range covers a user key, in the order to ask them, each with its level.

        The newest data comes first: the files of level 0, the newest first; then at most one file
        of each other level.  So the first version of a key that is found is its newest one.
        ``sort_key`` is the key's sort key.  O(files of level 0 + log files of each other level).

        A Get asks for the files one by one (:meth:`next_candidate`), so it makes no list: usually
        it ends at the first.  A *place* is a file's level and its index on the level, packed into
        one machine integer.
        """
        found: list[tuple[int, FileMetaData]] = []
        place = self.next_candidate(0, sort_key, MAX_SEQUENCE)
        while place > 0:
            found.append((place >> PLACE_BITS, self.file_in(place)))
            place = self.next_candidate(place, sort_key, MAX_SEQUENCE)
        return found

    def apply(self, edit: VersionEdit) -> Version:
        """The version after ``edit``: this one without the deleted files, and with the new ones."""
        levels: list[list[FileMetaData]] = []
        for level in range(NUM_LEVELS):
            gone = {number for at, number in edit.deleted_files if at == level}
            files = [file for file in self.levels[level] if file.number not in gone]
            files += [file for at, file in edit.new_files if at == level]
            levels.append(files)
        return Version(self.comparator, levels)

    def overlaps(self, level: int, begin: bytes | None, end: bytes | None) -> bool:
        """Return True if any file of the level holds a user key in [begin, end]."""
        files = self.levels[level]
        if level == 0 or begin is None:
            return any(self._touches(file, begin, end) for file in files)
        at = self.file_from(level, self.comparator.order.of(begin), MAX_SEQUENCE)
        return at < len(files) and self._touches(files[at], begin, end)

    def _touches(self, file: FileMetaData, begin: bytes | None, end: bytes | None) -> bool:
        compare = self._user_compare
        if begin is not None and compare(file.largest[:-8], begin) < 0:
            return False
        return end is None or compare(file.smallest[:-8], end) <= 0

    def level_for_flush(self, smallest: bytes, largest: bytes, options: Options) -> int:
        """The level for a new table with this range of user keys: 0, or a deeper one that is free.

        A table that overlaps nothing may skip level 0 and its compactions, but does not go so deep
        that it overlaps many grandparents.
        """
        if self.overlaps(0, smallest, largest):
            return 0
        level = 0
        while level < MAX_MEM_COMPACT_LEVEL:
            if self.overlaps(level + 1, smallest, largest):
                break
            grandparents = self.overlapping(level + 2, smallest, largest)
            if total_size(grandparents) > max_grandparent_overlap(options):
                break
            level += 1
        return level

    # Beyond the tour: what compactions ask, and checks

    def overlapping(self, level: int, begin: bytes | None, end: bytes | None) -> list[FileMetaData]:
        """The level's files that hold any user key in [begin, end]; None is no bound.

        On level 0 the range grows with each file that is taken, until no other file touches it:
        a compaction that moves a key down takes every file that may hold a version of it.
        """
        compare = self._user_compare
        if level > 0:
            return [file for file in self.levels[level] if self._touches(file, begin, end)]
        # Files that touch each other are taken together or not at all.  O(n log n): a hostile
        # MANIFEST may name any number of them.
        groups: list[list[int]] = []
        edges: list[tuple[bytes, bytes]] = []
        for file in sorted(self.levels[0], key=self._smallest_first):
            low, high = file.smallest[:-8], file.largest[:-8]
            if edges and compare(low, edges[-1][1]) <= 0:
                groups[-1].append(file.number)
                if compare(high, edges[-1][1]) > 0:
                    edges[-1] = edges[-1][0], high
            else:
                groups.append([file.number])
                edges.append((low, high))
        taken: set[int] = set()
        for (low, high), numbers in zip(edges, groups, strict=True):
            if (begin is None or compare(high, begin) >= 0) and (
                end is None or compare(low, end) <= 0
            ):
                taken.update(numbers)
        return [file for file in self.levels[0] if file.number in taken]

    def _smallest_first(self, file: FileMetaData) -> Any:
        return self.comparator.sort_key(file.smallest)

    def deepest_level(self, begin: bytes | None, end: bytes | None) -> int:
        """The deepest level that holds any user key in [begin, end]; at least 1."""
        deepest = 1
        for level in range(1, NUM_LEVELS):
            if self.overlaps(level, begin, end):
                deepest = level
        return deepest

    def _score(self) -> tuple[int, float]:
        """The level that needs a compaction most, and its score; from 1 on it needs one."""
        # Level 0 is counted in files, since every read asks each of them.
        best_level = 0
        best = len(self.levels[0]) / L0_COMPACTION_TRIGGER
        for level in range(1, NUM_LEVELS - 1):
            score = self.sizes[level] / max_bytes_for_level(level)
            if score > best:
                best_level, best = level, score
        return best_level, best

    def charge_seek(self, place: i64) -> bool:
        """Count a seek: a block of the file was read and did not hold the key.  True if the file
        has used up its seeks and a seek compaction should follow."""
        file = self.file_in(place)
        file.allowed_seeks -= 1
        if file.allowed_seeks <= 0 and self.file_to_compact is None:
            self.file_to_compact = (place >> PLACE_BITS, file)
            return True
        return False

    def check(self) -> None:
        """Raise :class:`CorruptionError` unless the levels are what they must be.

        No file twice; in every file smallest <= largest; levels >= 1 sorted and disjoint.
        """
        seen: set[int] = set()
        compare = self.comparator.compare
        for level, files in enumerate(self.levels):
            previous: FileMetaData | None = None
            for file in files:
                if file.number in seen:
                    raise CorruptionError(f"table {file.number} is listed twice")
                seen.add(file.number)
                if compare(file.smallest, file.largest) > 0:
                    raise CorruptionError(f"table {file.number} ends before it begins")
                if (
                    level > 0
                    and previous is not None
                    and compare(previous.largest, file.smallest) >= 0
                ):
                    raise CorruptionError(
                        f"tables {previous.number} and {file.number} overlap on level {level}"
                    )
                previous = file

    def __str__(self) -> str:
        """The text of LevelDB's property ``leveldb.sstables``."""
        lines: list[str] = []
        for level, files in enumerate(self.levels):
            lines.append(f"--- level {level} ---")
            lines += [
                f" {file.number}:{file.size}"
                f"[{describe_key(file.smallest)} .. {describe_key(file.largest)}]"
                for file in files
            ]
        return "\n".join(lines) + "\n"

    # Fast paths: files one by one, without a list; see candidates

    def next_candidate(self, place: i64, sort_key: Any, sequence: i64) -> i64:
        """The place of the next file that may hold a version of a user key at or before
        ``sequence``; 0 if there is none.

        ``sort_key`` is the key's sort key.  ``place`` is the result of the call before, 0 at first;
        :meth:`file_in` returns the file.
        """
        level = place >> PLACE_BITS
        if level == 0:
            edges = self._edges[0]
            while 2 * place < len(edges):
                place += 1
                if not (sort_key < edges[2 * place - 2] or edges[2 * place - 1] < sort_key):
                    return place
        while level < self._deepest:
            level += 1
            edges = self._edges[level]
            if not edges:
                continue
            at = self._places[level].first_at_or_after(sort_key)
            if sequence < MAX_SEQUENCE:
                at = self._skip_newer(level, at, sort_key, sequence)
            # An odd index is the end of a file, which covers the key, since it began before.  An
            # even one is a beginning, at the key or after it.
            if at & 1 != 0 or (at < len(edges) and not sort_key < edges[at]):
                return (level << PLACE_BITS) + (at >> 1) + 1
        return 0

    def file_in(self, place: i64) -> FileMetaData:
        """The file at a place that :meth:`next_candidate` named; its level is ``place >> 32``."""
        return self.levels[place >> PLACE_BITS][(place & _PLACE_MASK) - 1]

    def file_from(self, level: i64, sort_key: Any, sequence: i64) -> i64:
        """The index of the first file of a level >= 1 that may hold the user key in a version at or
        before ``sequence``, or any later key.

        Returns the number of files if there is none.  If ``sequence`` is -1, all versions of the
        key are skipped: the file is the first that may hold a later key.  ``sort_key`` is the user
        key's sort key.
        """
        at = self._places[level].first_at_or_after(sort_key)
        if sequence < MAX_SEQUENCE:
            at = self._skip_newer(level, at, sort_key, sequence)
        return at >> 1

    def _skip_newer(self, level: i64, at: i64, sort_key: Any, sequence: i64) -> i64:
        """The index ``at`` of an edge, moved past each file that ends in a version of the key newer
        than ``sequence``.  The versions of one user key may be spread over several files.
        """
        edges = self._edges[level]
        files = self.levels[level]
        while at < len(edges) and not sort_key < edges[at]:
            largest = files[at >> 1].largest
            if sort_key < edges[at | 1]:
                break
            if sequence_in(largest[len(largest) - TAG_SIZE :]) <= sequence:
                break
            at = (at | 1) + 1
        return at


def max_grandparent_overlap(options: Options) -> int:
    """Bytes of level n + 2 that an output on level n + 1 may overlap before another one begins."""
    return 10 * options.max_file_size


def edges_of(files: list[FileMetaData], order: KeyOrder) -> list[Any]:
    """The sort keys of the first and last user key of each file, in their order."""
    return [order.of(key[:-8]) for file in files for key in (file.smallest, file.largest)]


def describe_key(internal_key: bytes) -> str:
    """An internal key as LevelDB writes it: ``'user key' @ sequence : kind``, in ASCII."""
    user_key, sequence, kind = unpack(internal_key)
    text = "".join(chr(one) if 0x20 <= one <= 0x7E else f"\\x{one:02x}" for one in user_key)
    return f"'{text}' @ {sequence} : {kind}"
