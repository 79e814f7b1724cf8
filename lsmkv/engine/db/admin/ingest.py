"""Ingest: tables made elsewhere become part of the store, atomically, as its newest write.

LevelDB's format cannot state that a whole table was written at some sequence.  And sequence 0,
which :class:`~lsmkv.engine.db.admin.table_writer.TableWriter` gives to every entry, would be older
than anything that the store holds.  So the files are read, verified, and rewritten under new file
numbers of the store, with *one* new sequence for all of their entries.

That sequence is reserved ahead of time: it lies above the last one by as many writes as the files
have bytes.  Writers use the sequences below it while the tables are made.  It becomes the last
sequence when the tables become visible; readers from before have a lower one.  If the writers are
faster and reach it, the tables are made once more while writers wait.

``DB.ingest`` calls it, in the caller's thread.  It holds no lock while it reads and writes tables,
and the writers' lock while it publishes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NoReturn

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.compact.background_jobs import Publication
from lsmkv.engine.db.tree.merge import live_entries, merge
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.table_output import TableOutput, remove_table
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.env.base import Env, RandomAccessFile
from lsmkv.engine.errors import ClosedError, CorruptionError, Error
from lsmkv.engine.format.filenames import table_name
from lsmkv.engine.format.keys import (
    KIND_VALUE,
    MAX_SEQUENCE,
    TAG_SIZE,
    Entry,
    pack,
)
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.inspection import first_and_last_key
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.threads import get_ident, new_lock

INGEST_SEQUENCE = 0
"""The sequence of every entry in a file to ingest."""

_TAG = pack(b"", INGEST_SEQUENCE, KIND_VALUE)
_READAHEAD = 256 * 1024
_CHUNK = 1  # one block at a time: a table may end after any of them
_NO_LIMIT = 1 << 62
_END = 512
"""Bytes.  A table ends with its index, its checksum and the footer."""
_ANOTHER = (
    "the owner of the store finds another file or none at this path: is the calling process in"
    " another container?"
)
_LARGEST_ON_LEVEL_0 = 64
"""Times ``max_file_size``: where level 0 overlaps, a few large tables cause no write stall."""


def as_paths(files: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files' paths as text; ``TypeError`` for other types, and for a single path."""
    if isinstance(files, (str, bytes, os.PathLike)):
        raise TypeError("ingest takes several paths: put a single one into a list")
    return [os.fsdecode(path) for path in files]


def ends_of(env: Env, paths: list[str]) -> list[bytes]:
    """Return the last bytes of each file: they prove to another process that it was read."""
    ends: list[bytes] = []
    for path in paths:
        with _open_file(env, path) as file:
            ends.append(_end_of(file))
    return ends


def _open_file(env: Env, path: str) -> RandomAccessFile:
    with env.open_directory(os.path.dirname(path) or ".") as directory:
        return directory.open(os.path.basename(path))


def _end_of(file: RandomAccessFile) -> bytes:
    return file.read(max(0, file.size - _END), min(file.size, _END))


class _IngestedFile:
    """A file to ingest, and the user keys that it begins and ends with."""

    __slots__ = ("largest", "path", "place", "size", "smallest")

    def __init__(self, path: str, place: int, size: int, smallest: bytes, largest: bytes) -> None:
        self.path = path
        self.place = place
        """Its place in the caller's list, from 1 on: later files win."""
        self.size = size
        self.smallest = smallest
        self.largest = largest


class Ingestion:
    """One ingest: call ``run`` once.  Any number of ingests of a store may run concurrently."""

    def __init__(
        self,
        store: Store,
        background: Background,
        env: Env,
        paths: list[str],
        progress: Progress | None,
        ends: list[bytes] | None = None,
    ) -> None:
        """``env`` has the files; it may differ from the store's.  With ``ends``, those of
        :func:`ends_of` in another process, each file must end so."""
        self._store = store
        self._background = background
        self._env = env
        self._paths = paths
        self._progress = progress
        self._ends = ends
        self._compare = store.comparator.user_comparator.compare
        self._groups: list[list[_IngestedFile]] = []
        self._total = 0  # bytes of all sources
        self._reads = ReadCounters()
        self._tables: list[Table] = []  # open ones
        self._sequence = 0
        self._files: list[FileMetaData] = []
        self._numbers: set[int] = set()  # all numbers used: tables with them belong to this ingest
        background.pending_outputs.lease(self._numbers)
        self._output: TableOutput | None = None
        self._output_begin = b""  # its first user key
        self._split_at = 0
        self._publication: Publication | None = None

    def run(self, writer: Writer) -> None:
        """Make the tables, and publish them; all of it or nothing."""
        self._store.lock.refuse_to_wait("an ingest")
        under_way = new_lock()
        place = (get_ident(), under_way)
        with under_way:
            try:
                writer.ingests.append(place)
                self._run(writer)
            finally:
                self._background.reserved.discard(self._sequence)
                if place in writer.ingests:
                    writer.ingests.remove(place)

    def _run(self, writer: Writer) -> None:
        self._refuse_if_closing()
        self._background.raise_error()
        self._examine()
        if not self._groups:
            return
        # Now, not at the end: it shows where level 0 will overlap.
        writer.flush_memtable()
        try:
            self._reserve()
            self._write(self._progress)
            self._tell(self._progress, self._total, "publishing")
            writer.publish(self._number)
        except BaseException:
            self._clean_up()
            raise

    def _reserve(self) -> None:
        """Reserve a sequence above those of the ingests in progress.

        Ingests of the same size usually end in the order in which they began.  One that has to be
        repeated, because another one was faster, would make writers wait.
        """
        store = self._store
        reserved = self._background.reserved
        with store.lock.nested, store.lock.guard:
            last = store.versions.last_sequence
            sequence = last + self._total * (1 + len(reserved))
            self._sequence = sequence if sequence < MAX_SEQUENCE else last + 1
            reserved.add(self._sequence)

    # The files

    def _examine(self) -> None:
        """Open each file once, and group files that do not overlap, in order."""
        sources: list[_IngestedFile] = []
        for at, path in enumerate(self._paths):
            source = self._source(path, at + 1)
            if source is not None:
                sources.append(source)
                self._total += source.size
        order = self._store.order
        sources.sort(key=lambda source: order.of(source.smallest))
        for source in sources:
            for group in self._groups:
                if self._compare(group[-1].largest, source.smallest) < 0:
                    group.append(source)
                    break
            else:
                self._groups.append([source])

    def _source(self, path: str, place: int) -> _IngestedFile | None:
        """The file's first and last key; None for a table without entries."""
        table, size = self._open(path, place)
        try:
            edges = first_and_last_key(table)
        finally:
            table.close()
        if edges is None:
            return None
        return _IngestedFile(
            path, place, size, _user_key(edges[0], path), _user_key(edges[1], path)
        )

    def _open(self, path: str, place: int) -> tuple[Table, int]:
        """The table, and its length in bytes."""
        file = self._open_named(path, place)
        try:
            return Table(self._store.options, file), file.size
        except BaseException:
            file.close()
            raise

    def _open_named(self, path: str, place: int) -> RandomAccessFile:
        """The file; if another process has named it, only the one that this process can read."""
        ends = self._ends
        if ends is None:
            return _open_file(self._env, path)
        try:
            file = _open_file(self._env, path)
        except OSError:
            raise Error(f"{path}: {_ANOTHER}") from None
        if _end_of(file) != ends[place - 1]:
            file.close()
            raise Error(f"{path}: {_ANOTHER}")
        return file

    def _read(self, group: list[_IngestedFile]) -> Iterator[list[Entry]]:
        """The entries of one group of files, each with its file's place as sequence.

        The files are checked again here: they may have changed since :meth:`_examine`.
        """
        last: bytes | None = None
        for source in group:
            tag = pack(b"", source.place, KIND_VALUE)
            table, _ = self._open(source.path, source.place)
            self._tables.append(table)
            for entries in table.entries(self._reads, _READAHEAD, _CHUNK):
                self._refuse_out_of_order(entries, last, source.path)
                last = entries[-1][0]
                yield [(user_key, tag + tagged[TAG_SIZE:]) for user_key, tagged in entries]
            self._tables.remove(table)
            table.close()

    def _refuse_out_of_order(self, entries: list[Entry], last: bytes | None, path: str) -> None:
        compare = self._compare
        bytewise = self._store.order.is_bytewise
        for user_key, tagged in entries:
            if tagged[:TAG_SIZE] != _TAG:
                _refuse(user_key + tagged[:TAG_SIZE], path)
            if last is not None and (
                user_key <= last if bytewise else compare(user_key, last) <= 0
            ):
                raise CorruptionError(
                    f"keys out of order: {user_key!r} after {last!r}"
                    " (made with another comparator, or modified during the ingest?)",
                    path,
                )
            last = user_key

    # The tables

    def _write(self, progress: Progress | None) -> None:
        """Write tables of all sources, every entry with the reserved sequence."""
        if self._sequence >= MAX_SEQUENCE:
            raise Error("sequence numbers exhausted: a store has 2^56 of them")
        self._reads = ReadCounters()
        tag = pack(b"", self._sequence, KIND_VALUE)
        latest = len(self._paths)  # the place of the file that wins over all others
        store = self._store
        reported = -1
        try:
            for entries in merge([self._read(group) for group in self._groups], store.order):
                self._refuse_if_closing()
                user_keys, kept = live_entries(entries, latest, store.order, None)
                if self._output is None:
                    self._output = self._new_output(user_keys[0])
                self._add(user_keys, [tag + tagged[TAG_SIZE:] for tagged in kept])
                if self._output is not None and self._output.size >= self._split_at:
                    self._split(entries[-1][0])
                if self._reads.bytes_read > reported:
                    reported = self._reads.bytes_read
                    self._tell(progress, min(reported, self._total), "tables")
            self._finish_output()
        finally:
            for table in self._tables:
                table.close()
            self._tables = []

    def _add(self, user_keys: list[bytes], tagged: list[bytes]) -> None:
        output = self._output
        assert output is not None
        at = 0
        while at < len(user_keys):
            at = output.add_entries(user_keys, tagged, at, len(user_keys), _NO_LIMIT)

    def _new_output(self, first: bytes) -> TableOutput:
        store = self._store
        self._output_begin = first
        self._split_at = store.options.max_file_size
        return TableOutput(store.directory, self._new_number(), store.options)

    def _split(self, last: bytes) -> None:
        """End the table here, unless it will lie on level 0 because it overlaps tables there."""
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
        """Give the tables file numbers above all others, durably: level 0 orders by number.

        Caller holds the writers' lock.
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
        """After an exception: remove the tables, if the MANIFEST certainly never names them.

        Tables that are not removed now are removed after the next commit or at the next open,
        unless the MANIFEST names them.
        """
        publication = self._publication
        if publication is not None:
            # It was published, unless the exception came before the background work took it.
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

    def _tell(self, progress: Progress | None, done: int, phase: str) -> None:
        if progress is not None:
            progress(done, self._total, phase)
            # The callback may have closed the store or forked: a child must not write to the files
            # of its parent.
            self._refuse_if_closing()


def _user_key(key: bytes, path: str) -> bytes:
    if key[-8:] != _TAG:
        _refuse(key, path)
    return key[:-8]


def _refuse(key: bytes, path: str) -> NoReturn:
    raise ValueError(f"{path} was not made by TableWriter: it has the internal key {key!r}")
