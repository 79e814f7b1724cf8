"""Picking a compaction: which files to merge, as a pure function of the version.

The background work calls this under the store's lock; :mod:`lsmkv.engine.db.compact.compaction`
merges the files that it picks.  (Source: LevelDB, ``db/version_set.cc``.)
"""

from __future__ import annotations

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.version import Version, max_grandparent_overlap, total_size
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import Options

_EXPANDED_LIMIT = 25
"""Widening the inputs stops at this many times ``max_file_size``."""


class Compaction:
    """Files of ``level`` and of the next level; the merged outputs replace them on the next
    level.  A rewrite has files of only one level, and the outputs stay there."""

    def __init__(
        self,
        version: Version,
        level: int,
        inputs: list[FileMetaData],
        next_inputs: list[FileMetaData],
        grandparents: list[FileMetaData],
        is_rewrite: bool = False,
    ) -> None:
        self.version = version
        self.level = level
        self.is_rewrite = is_rewrite
        """True if the outputs replace the inputs, on the same level."""
        self.output_level = level if is_rewrite else level + 1
        self.inputs = inputs
        self.next_inputs = next_inputs
        self.grandparents = grandparents
        """The files of the level below the outputs that these will overlap."""
        self.by_seeks = False

    @property
    def input_size(self) -> int:
        """Bytes of all files that are merged."""
        return total_size(self.inputs) + total_size(self.next_inputs)

    def spans(self, begin: bytes, end: bytes) -> bool:
        """Return True if an output may overlap the user keys [begin, end]."""
        compare = self.version.comparator.user_comparator.compare
        files = self.inputs + self.next_inputs
        return any(compare(file.smallest[:-8], end) <= 0 for file in files) and any(
            compare(begin, file.largest[:-8]) <= 0 for file in files
        )

    def is_trivial_move(self, options: Options) -> bool:
        """Return True if the compaction can move its one file to the next level unchanged.

        A file that overlaps many grandparents is merged instead: moved, it would make the next
        compaction an expensive one.
        """
        return (
            not self.is_rewrite
            and len(self.inputs) == 1
            and not self.next_inputs
            and total_size(self.grandparents) <= max_grandparent_overlap(options)
        )

    def edit(self, outputs: list[FileMetaData]) -> VersionEdit:
        """The version edit: inputs deleted, outputs added, and where the next compaction begins."""
        comparator = self.version.comparator
        edit = VersionEdit()
        for file in self.inputs:
            edit.delete_file(self.level, file.number)
        for file in self.next_inputs:
            edit.delete_file(self.output_level, file.number)
        for file in outputs:
            edit.add_file(self.output_level, file)
        if self.is_rewrite:
            return edit  # the next compaction begins where it would have begun
        largest = max((file.largest for file in self.inputs), key=comparator.sort_key)
        edit.compact_pointers.append((self.level, largest))
        return edit


def compaction_is_due(version: Version, options: Options) -> bool:
    """Return True if :func:`pick_compaction` would return a compaction."""
    return version.compaction_score >= 1 or (
        version.file_to_compact is not None and options.seek_compaction
    )


def pick_compaction(
    version: Version, compact_pointers: list[bytes | None], options: Options
) -> Compaction | None:
    """The compaction that the version needs most, or None.

    A level over its limit comes first, then a file with too many seeks.
    """
    if version.compaction_score >= 1:
        level = version.compaction_level
        first = _next_in_turn(version, level, compact_pointers[level])
    elif version.file_to_compact is not None and options.seek_compaction:
        level, first = version.file_to_compact
    else:
        return None
    inputs = [first]
    if level == 0:
        # All overlapping files of level 0: otherwise an older version of a key could stay above a
        # newer one.
        inputs = version.overlapping(0, first.smallest[:-8], first.largest[:-8])
    compaction = _complete(version, level, inputs, options)
    compaction.by_seeks = version.compaction_score < 1
    return compaction


def compaction_of_range(
    version: Version, level: int, begin: bytes | None, end: bytes | None, options: Options
) -> tuple[Compaction, bytes | None] | None:
    """Move the entries of ``level`` with user keys in [begin, end] down by one level.

    Returns the compaction, and where the next one has to begin if this one does not take
    everything (a wide range goes in steps); None if the level holds nothing of the range.
    """
    inputs = version.overlapping(level, begin, end)
    if not inputs:
        return None
    proceed: bytes | None = None
    if level > 0:  # files of level 0 overlap: all or none
        size = 0
        for at, file in enumerate(inputs):
            size += file.size
            if size >= options.max_file_size and at + 1 < len(inputs):
                inputs = inputs[: at + 1]
                proceed = file.largest[:-8]
                break
    return _complete(version, level, inputs, options), proceed


def rewrite_of_level(
    version: Version, level: int, after: bytes | None, before: int, options: Options
) -> tuple[Compaction, bytes] | None:
    """Rewrite some tables of a level >= 1 where they are: neighbors with numbers below
    ``before`` that begin after the user key ``after``.

    Returns the compaction, and the user key after which the next one begins; None if the level
    holds no such table.  All versions that the level holds of a user key stay together.
    """
    compare = version.comparator.user_comparator.compare
    inputs: list[FileMetaData] = []
    for file in version.levels[level]:
        if after is not None and compare(file.smallest[:-8], after) <= 0:
            continue
        if file.number < before:
            inputs.append(file)
            if total_size(inputs) >= options.max_file_size:
                break
        elif inputs:
            break  # an output must not reach over it
    if not inputs:
        return None
    inputs = _with_boundary(version, level, inputs)
    below = _overlapping_all(version, level + 1, inputs) if level + 1 < NUM_LEVELS else []
    compaction = Compaction(version, level, inputs, [], below, is_rewrite=True)
    return compaction, inputs[-1].largest[:-8]


def _next_in_turn(version: Version, level: int, pointer: bytes | None) -> FileMetaData:
    """The level's first file beyond the pointer, or its first file if there is none beyond."""
    comparator = version.comparator
    files = sorted(version.levels[level], key=lambda file: comparator.sort_key(file.smallest))
    if pointer is not None:
        for file in files:
            if comparator.compare(file.largest, pointer) > 0:
                return file
    return files[0]


def _complete(
    version: Version, level: int, inputs: list[FileMetaData], options: Options
) -> Compaction:
    """The compaction of these inputs, with the files that must or may join them."""
    inputs = _with_boundary(version, level, inputs)
    next_inputs = _overlapping_all(version, level + 1, inputs)
    if next_inputs:
        # Add files of this level if that adds none of the next level.
        wider = _with_boundary(
            version, level, _overlapping_all(version, level, inputs + next_inputs)
        )
        size = total_size(wider) + total_size(next_inputs)
        if len(wider) > len(inputs) and size < _EXPANDED_LIMIT * options.max_file_size:
            wider_next = _overlapping_all(version, level + 1, wider)
            if len(wider_next) == len(next_inputs):
                inputs, next_inputs = wider, wider_next
    grandparents: list[FileMetaData] = []
    if level + 2 < NUM_LEVELS:
        grandparents = _overlapping_all(version, level + 2, inputs + next_inputs)
    return Compaction(version, level, inputs, next_inputs, grandparents)


def _overlapping_all(version: Version, level: int, files: list[FileMetaData]) -> list[FileMetaData]:
    """The level's files that overlap the range from the first to the last key of ``files``."""
    comparator = version.comparator
    smallest = min((file.smallest for file in files), key=comparator.sort_key)
    largest = max((file.largest for file in files), key=comparator.sort_key)
    found = version.overlapping(level, smallest[:-8], largest[:-8])
    return _with_boundary(version, level, found) if found else found


def _with_boundary(version: Version, level: int, files: list[FileMetaData]) -> list[FileMetaData]:
    """``files``, and every file of the level that continues with the last user key of one of them.

    Versions of one user key may be spread over two files of a level.  If only the newer ones moved
    down, a lookup would meet the older ones first.
    """
    if level == 0 or not files:
        return files
    comparator = version.comparator
    compare = comparator.user_comparator.compare
    chosen = {file.number for file in files}
    ordered = version.levels[level]
    result = list(files)
    for at in range(len(ordered) - 1):
        here, follower = ordered[at], ordered[at + 1]
        if (
            here.number in chosen
            and follower.number not in chosen
            and compare(here.largest[:-8], follower.smallest[:-8]) == 0
        ):
            chosen.add(follower.number)
            result.append(follower)
    return result
