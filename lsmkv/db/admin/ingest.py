"""Ingest: tables made outside of the store become part of it, all at once, as its newest write.

``DB.ingest`` calls it without a lock.  Only the publication, at the end, holds the writers' lock.

The files cannot be linked into the store.  Every entry in them has sequence 0 (see
:class:`~lsmkv.db.admin.table_writer.TableWriter`), which is older than everything in the store, and
LevelDB's files cannot state a sequence for a table as a whole.  So the files are read, verified on
the way, and rewritten under file numbers of the store, with *one* new sequence for all entries.

That sequence is reserved ahead of the writers: it is the last sequence plus as many as the files
have bytes.  Writers use the sequences below it while the tables are made.  It becomes the store's
last sequence when the tables become visible; snapshots taken before have lower sequences and do not
see them.  If the writers reach it first, the tables are made again while writers wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from threading import Lock, get_ident

from lsmkv.db.background import Background
from lsmkv.db.merge import RowOrder, live_rows, merge_forward
from lsmkv.db.publication import Publication
from lsmkv.db.store import Store
from lsmkv.db.table_output import TableOutput, remove_table
from lsmkv.db.writer import Writer
from lsmkv.env.base import Env
from lsmkv.errors import ClosedError, CorruptionError, Error
from lsmkv.format.filenames import table_name
from lsmkv.format.keys import KIND_VALUE, MAX_SEQUENCE, TAG_SIZE, pack
from lsmkv.format.version_edit import FileMetaData
from lsmkv.stats import ReadCounters
from lsmkv.table.block import Row
from lsmkv.table.reader import Table
from lsmkv.util.progress import Progress

INGEST_SEQUENCE = 0
"""The sequence of every entry in a file that is to be ingested."""

_TAG = pack(b"", INGEST_SEQUENCE, KIND_VALUE)
_READAHEAD = 256 * 1024
_BLOCK = 1  # as many bytes as are merged at a time from each file: one block
_NO_LIMIT = 1 << 62
_LARGEST_ON_LEVEL_0 = 64
"""In units of ``max_file_size``: a few large tables on level 0 do not stall writers."""


def as_paths(files: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files' paths as text.  ``TypeError`` for a single path, and for other objects."""
    if isinstance(files, (str, bytes, os.PathLike)):
        raise TypeError("ingest takes several paths: put a single one into a list")
    return [os.fsdecode(path) for path in files]


class _Source:
    """A file to ingest, and its smallest and largest user key."""

    __slots__ = ("largest", "path", "position", "size", "smallest")

    def __init__(
        self, path: str, position: int, size: int, smallest: bytes, largest: bytes
    ) -> None:
        self.path = path
        self.position = position
        """Its position in the caller's list, from 1 on: later files win."""
        self.size = size
        self.smallest = smallest
        self.largest = largest


class Ingestion:
    """One ingest.  ``run`` is called once.  Any number of ingests of a store may run at once."""

    def __init__(
        self,
        store: Store,
        background: Background,
        env: Env,
        paths: list[str],
        progress: Progress | None,
    ) -> None:
        """``env`` has the files; it need not be the store's."""
        self._store = store
        self._background = background
        self._env = env
        self._paths = paths
        self._progress = progress
        self._compare = store.comparator.user_comparator.compare
        self._runs: list[list[_Source]] = []
        self._total = 0  # bytes of all sources
        self._reads = ReadCounters()
        self._tables: list[Table] = []  # open ones
        self._sequence = 0
        self._files: list[FileMetaData] = []
        self._numbers: set[int] = set()  # all that were used: their files may be removed
        background.pending_outputs.lease(self._numbers)
        self._output: TableOutput | None = None
        self._output_begin = b""  # its first user key
        self._split_at = 0
        self._publication: Publication | None = None

    def run(self, writer: Writer) -> None:
        """Make the tables and publish them: all of them or none."""
        running = Lock()
        registration = (get_ident(), running)
        with running:
            try:
                writer.ingests.append(registration)
                self._run(writer)
            finally:
                self._background.reserved.discard(self._sequence)
                if registration in writer.ingests:
                    writer.ingests.remove(registration)

    def _run(self, writer: Writer) -> None:
        self._refuse_if_closing()
        self._background.raise_error()
        self._examine()
        if not self._runs:
            return
        # The memtable is flushed first: its table shows where level 0 will overlap.
        writer.rotate()
        try:
            self._reserve()
            self._write(self._progress)
            self._report_progress(self._progress, self._total, "publishing")
            writer.publish(self._number)
        except BaseException:
            self._clean_up()
            raise

    def _reserve(self) -> None:
        """Reserve a sequence ahead of the writers, above those of other ingests under way.

        Ingests of one size usually end in the order in which they began.  If a later one were
        published first, the tables of the other would be made again while writers wait.
        """
        store = self._store
        reserved = self._background.reserved
        with store.lock:
            last = store.versions.last_sequence
            sequence = last + self._total * (1 + len(reserved))
            self._sequence = sequence if sequence < MAX_SEQUENCE else last + 1
            reserved.add(self._sequence)

    # The files

    def _examine(self) -> None:
        """Open each file once, and join files that do not overlap into runs."""
        sources: list[_Source] = []
        for at, path in enumerate(self._paths):
            source = self._source(path, at + 1)
            if source is not None:
                sources.append(source)
                self._total += source.size
        order = self._store.order
        sources.sort(key=lambda source: order.of(source.smallest))
        for source in sources:
            for run in self._runs:
                if self._compare(run[-1].largest, source.smallest) < 0:
                    run.append(source)
                    break
            else:
                self._runs.append([source])

    def _source(self, path: str, position: int) -> _Source | None:
        """The file with its range of keys; None for a table without entries."""
        table, size = self._open(path)
        counters = ReadCounters()
        try:
            if table.num_blocks == 0:
                return None
            smallest = _user_key(_keys(table, 0, counters)[0], path)
            largest = _user_key(_keys(table, table.num_blocks - 1, counters)[-1], path)
            return _Source(path, position, size, smallest, largest)
        finally:
            table.close()

    def _open(self, path: str) -> tuple[Table, int]:
        """The opened table, and its size in bytes."""
        with self._env.open_directory(os.path.dirname(path) or ".") as directory:
            file = directory.open(os.path.basename(path))
        try:
            return Table(self._store.table_options, file), file.size
        except BaseException:
            file.close()
            raise

    def _chain(self, run: list[_Source]) -> Iterator[list[Row]]:
        """The entries of a run's files, each with its file's position as sequence.

        Every entry is checked, since the files may have changed after they were examined.
        """
        last: bytes | None = None
        for source in run:
            table, _ = self._open(source.path)
            self._tables.append(table)
            for entries in table.rows(TAG_SIZE, self._reads, _READAHEAD, _BLOCK):
                yield self._with_position(entries, last, source)
                last = entries[-1][0] if entries else last
            self._tables.remove(table)
            table.close()

    def _with_position(self, entries: list[Row], last: bytes | None, source: _Source) -> list[Row]:
        """Check that entries of a file rise from the key ``last`` on; give them its position."""
        compare = self._compare
        bytewise = self._store.order.is_bytewise
        tag = pack(b"", source.position, KIND_VALUE)
        positioned: list[Row] = []
        for user_key, tagged in entries:
            if not tagged.startswith(_TAG):
                raise _not_of_table_writer(user_key + tagged[:TAG_SIZE], source.path)
            if last is not None and (
                user_key <= last if bytewise else compare(user_key, last) <= 0
            ):
                raise CorruptionError(
                    f"keys out of order: {user_key!r} after {last!r}"
                    " (made with another comparator, or changed meanwhile?)",
                    source.path,
                )
            last = user_key
            positioned.append((user_key, tag + tagged[TAG_SIZE:]))
        return positioned

    # The tables

    def _write(self, progress: Progress | None) -> None:
        """Write the tables; every entry gets the reserved sequence."""
        if self._sequence >= MAX_SEQUENCE:
            raise Error("the store has used up its 2^56 sequence numbers")
        self._reads = ReadCounters()
        tag = pack(b"", self._sequence, KIND_VALUE)
        order = RowOrder(self._store.comparator.user_comparator)
        reported = -1
        try:
            for entries in merge_forward([self._chain(run) for run in self._runs], order):
                self._refuse_if_closing()
                user_keys, positioned = live_rows(entries, MAX_SEQUENCE, order, _keep_deletions)
                tagged = [tag + one[TAG_SIZE:] for one in positioned]
                if self._output is None:
                    self._output = self._new_output(user_keys[0])
                self._output.add_rows(user_keys, tagged, 0, len(user_keys), _NO_LIMIT)
                if self._output.size >= self._split_at:
                    self._split(user_keys[-1])
                if self._reads.bytes_read > reported:
                    reported = self._reads.bytes_read
                    self._report_progress(progress, min(reported, self._total), "tables")
            self._finish_output()
        finally:
            for table in self._tables:
                table.close()
            self._tables = []

    def _new_output(self, first: bytes) -> TableOutput:
        store = self._store
        self._output_begin = first
        self._split_at = store.options.max_file_size
        return TableOutput(store.directory, self._new_number(), store.table_options)

    def _split(self, last: bytes) -> None:
        """End the table after the key ``last``, unless it overlaps level 0 and so belongs there."""
        limit = self._store.options.max_file_size
        output = self._output
        assert output is not None
        version = self._store.open_view().version
        if output.size >= limit * _LARGEST_ON_LEVEL_0 or not version.overlaps(
            0, self._output_begin, last
        ):
            self._finish_output()
        else:
            self._split_at = output.size + limit

    def _finish_output(self) -> None:
        if self._output is not None:
            self._files.append(self._output.finish())
            self._output = None

    def _new_number(self) -> int:
        number = self._store.versions.new_file_number()
        self._numbers.add(number)
        return number

    # Publishing

    def _number(self, last_sequence: int) -> Publication:
        """Rename the tables, durably, to numbers above all others: on level 0 these are the newest.

        Called by the writer, under the writers' lock.
        """
        if self._sequence <= last_sequence:
            self._remove_tables()
            self._background.reserved.discard(self._sequence)
            self._sequence = last_sequence + 1
            self._write(None)
        directory = self._store.directory
        files: list[FileMetaData] = []
        for file in self._files:
            number = self._new_number()
            directory.rename(table_name(file.number), table_name(number))
            files.append(FileMetaData(number, file.size, file.smallest, file.largest))
        directory.sync()
        self._publication = Publication(files, self._sequence)
        return self._publication

    # The end

    def _clean_up(self) -> None:
        """After an exception: remove the tables, unless the MANIFEST may name them.

        Tables that are not removed now are removed after the next version edit, or at the next
        open, unless the MANIFEST names them.
        """
        publication = self._publication
        if publication is not None:
            # Without effect, unless the exception was raised before the background saw it.
            self._background.withdraw(publication)
        if publication is None or publication.withdrawn:
            self._remove_tables()

    def _remove_tables(self) -> None:
        if self._output is not None:
            self._output.abandon()
            self._output = None
        for number in self._numbers:
            remove_table(self._store.directory, number)
        self._files = []

    def _refuse_if_closing(self) -> None:
        self._store.open_view()
        if self._store.closing:
            raise ClosedError("the database is closed")

    def _report_progress(self, progress: Progress | None, done: int, phase: str) -> None:
        if progress is not None:
            progress(done, self._total, phase)
            # The callback may have closed the store, or forked: a child process must not write to
            # files that it shares with its parent.
            self._refuse_if_closing()


def _keys(table: Table, number: int, counters: ReadCounters) -> list[bytes]:
    """The keys of a data block; at least one."""
    _, block = table.block(number, counters)
    try:
        keys, _ = block.entries()
        if not keys:
            raise CorruptionError("an empty data block")
    except CorruptionError as error:
        raise table.damaged(error, number) from None
    return keys


def _user_key(internal_key: bytes, path: str) -> bytes:
    if internal_key[-TAG_SIZE:] != _TAG:
        raise _not_of_table_writer(internal_key, path)
    return internal_key[:-TAG_SIZE]


def _not_of_table_writer(internal_key: bytes, path: str) -> ValueError:
    return ValueError(
        f"{path} was not made by TableWriter: it has the internal key {internal_key!r}"
    )


def _keep_deletions(_user_key: bytes) -> bool:
    return False
