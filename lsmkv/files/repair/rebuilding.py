"""Finds the files from which a missing table was made, and rebuilds the table.

The files count only for the keys between the table's first and last internal keys, on the table's
level: what else they had may have been replaced or deleted since.  The plan of a repair counts
these entries, and its job writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.merge import live_entries, merge
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE, Entry, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.files.repair.damaged_log import FoundBatch, read_batches
from lsmkv.files.repair.damaged_table import FoundBlock, Salvage
from lsmkv.files.repair.lineage import Origin
from lsmkv.files.repair.ordering import Ordering
from lsmkv.files.repair.placing import is_as_stated
from lsmkv.files.repair.report import LogSurvey, Survey, TableSurvey, open_mended
from lsmkv.files.repair.survey import check_internal_keys

_CHUNK = 512  # entries of logs that are merged at a time


class Sources:
    """The files that have a table's entries, and the sequences that none of them has."""

    def __init__(self) -> None:
        self.tables: dict[int, TableSurvey] = {}
        self.logs: dict[int, LogSurvey] = {}
        self.missing: list[tuple[int, int]] = []
        """The first and last of sequences with which entries may be missing, by file."""

    def __bool__(self) -> bool:
        return bool(self.tables or self.logs)

    @property
    def complete(self) -> bool:
        """True if no entry of the table is missing."""
        return not self.missing

    @property
    def first_missing(self) -> int:
        """The lowest of these sequences."""
        return min([first for first, _ in self.missing])

    @property
    def last_missing(self) -> int:
        """The highest of them."""
        return max([last for _, last in self.missing])

    @property
    def names(self) -> list[str]:
        """The files, the oldest first."""
        files = {**self.tables, **self.logs}
        return [files[number].name for number in sorted(files)]

    def lack(self, first: int, last: int) -> None:
        """Note that entries with these sequences may be missing."""
        if (first, last) not in self.missing:
            self.missing.append((first, last))

    def add(self, other: Sources) -> None:
        """Add the sources of an input."""
        self.tables.update(other.tables)
        self.logs.update(other.logs)
        for first, last in other.missing:
            self.lack(first, last)


class Ancestry:
    """Finds the sources of the tables of a survey, whose MANIFEST is whole."""

    def __init__(self, survey: Survey) -> None:
        assert survey.manifest is not None
        self._ordering = Ordering(survey)
        self._origins = survey.manifest._lineage.origins
        self._last_sequence = survey.manifest._state.last_sequence
        self._tables = {table.number: table for table in survey.tables if table.size >= 0}
        self._logs = sorted(
            [log for log in survey.logs if log.size >= 0], key=lambda log: log.number
        )
        self._found: dict[int, Sources] = {}

    def sequences_of(self, number: int) -> tuple[int, int]:
        """Return a lower and an upper bound of the sequences of the table's entries."""
        origin = self._origins.get(number)
        last = self._last_sequence if origin is None else origin.last_sequence
        return self._ordering.first_of_table(number), last

    def sources_of(self, number: int) -> Sources:
        """The files from which the table can be made again, as far as they are there.

        O(edits) for all tables of a store together.
        """
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = Sources()
            origin = self._origins.get(number)
            if origin is None:
                found.lack(*self.sequences_of(number))
            elif origin.inputs:
                for one in origin.inputs:
                    self._add_input(found, one)
            elif origin.first_log > 0:
                self._add_logs(found, origin, self._ordering.first_of_table(number))
            else:
                found.lack(*self.sequences_of(number))
        return found

    def _add_input(self, found: Sources, number: int) -> None:
        table = self._tables.get(number)
        origin = self._origins.get(number)
        if (
            table is None
            or table.damage
            or (origin is not None and not is_as_stated(table, origin.file))
        ):
            found.add(self.sources_of(number))
        else:
            found.tables[number] = table

    def _add_logs(self, found: Sources, origin: Origin, first: int) -> None:
        """Add the logs of a flush, as far as their sequences leave nothing out.

        A copy of a live store may have a log that was cut between two records.  It has everything
        if the next log goes on where it ends, or if it has the last write of its time.
        """
        expected = -1
        for log in self._logs:
            if log.number < origin.first_log or log.batches == 0:
                continue
            if expected < 0 and log.number != origin.first_log:
                break
            if log.number >= origin.next_log:
                if log.first_sequence == expected:
                    return
                break
            if expected >= 0 and log.first_sequence != expected:
                break
            found.logs[log.number] = log
            expected = log.last_sequence + 1
            if log.damage:
                if len(log.damage) > 1 or log.tail is None:
                    expected = log.first_sequence  # what follows its first damage is not in order
                    del found.logs[log.number]
                break
        if expected <= origin.last_sequence:
            found.lack(max(expected, first), origin.last_sequence)


def rebuilt_entries(
    sources: Sources, smallest: bytes, largest: bytes, directory: Directory, options: Options
) -> Iterator[list[Entry]]:
    """The newest entry of each key between two internal keys, deletions included, in order."""
    comparator = InternalKeyComparator(options.comparator)
    memtable = MemTable(options.comparator, StoreLock())
    for found in batches_of_all([log for _, log in sorted(sources.logs.items())], directory):
        memtable.add(found.sequence, found.operations, -1)
    runs = [memtable_entries(memtable)]
    runs += [table_entries(table, directory, options) for table in sources.tables.values()]
    for entries in merge(runs, comparator.order):
        within = [
            entry
            for entry in entries
            if comparator.compare(smallest, key := entry[0] + entry[1][:TAG_SIZE]) <= 0
            and comparator.compare(key, largest) <= 0
        ]
        kept = live_entries(within, MAX_SEQUENCE, comparator.order, None)
        yield list(zip(*kept, strict=True))


def batches_of(log: LogSurvey, directory: Directory) -> Iterator[FoundBatch]:
    """The batches of a log that was surveyed."""
    # The survey has recorded the damage; what is recorded here is dropped.
    again = LogSurvey(log.name, log.number, log.size, log.needed)
    again.folder, again.flips = log.folder, log.flips
    again.start = log.start
    return read_batches(directory, again)


def batches_of_all(logs: Iterable[LogSurvey], directory: Directory) -> Iterator[FoundBatch]:
    """The batches of several logs that were surveyed."""
    for log in logs:
        yield from batches_of(log, directory)


def memtable_entries(memtable: MemTable) -> Iterator[list[Entry]]:
    """The entries of a memtable that is no longer written to."""
    for user_keys, tagged in memtable.columns():
        for at in range(0, len(user_keys), _CHUNK):
            stop = at + _CHUNK
            yield list(zip(user_keys[at:stop], tagged[at:stop], strict=True))


def table_entries(
    table: TableSurvey, directory: Directory, options: Options
) -> Iterator[list[Entry]]:
    """The entries of a table that can be read, block by block."""
    with open_mended(directory, table) as file:
        for piece in Salvage(options, file, check_internal_keys).pieces():
            if isinstance(piece, FoundBlock):
                yield [
                    (key[:-TAG_SIZE], key[-TAG_SIZE:] + value)
                    for key, value in zip(piece.keys, piece.values, strict=True)
                ]
