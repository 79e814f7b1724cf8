"""The second kind of task in a bulk build: merges a range of every run into one shard.

A shard is a directory of LevelDB's files.  Its tables are on the last level, where no compaction
moves them.  A MANIFEST of one version edit names them, and CURRENT names the MANIFEST.  All entries
have sequence 0.  META, in the same directory, holds all that opening the shard reads, in one object
(``meta.py``).

Tables are made in memory and stored one by one, so a task holds one table at a time.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.table_output import TableOutput
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.filenames import CURRENT, manifest_name, set_current, table_name
from lsmkv.engine.format.keys import KIND_VALUE, pack
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.shards.building.merging import Chunk, Merge, merged
from lsmkv.shards.building.place import Place
from lsmkv.shards.building.runs import FRAME_BYTES, Run, RunReader
from lsmkv.shards.building.tables import TableSettings
from lsmkv.shards.remote.meta import META, FilePieces, Piece, encode_meta
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.remote.table_pieces import table_pieces
from lsmkv.shards.version import ShardEntry, StoredFile

_MANIFEST_NUMBER = 1
_TAG = pack(b"", 0, KIND_VALUE)
_ENTRIES = 512
_NO_LIMIT = 1 << 62
_MOST_AHEAD = 8 * 1024 * 1024


class ShardTask(NamedTuple):
    """The task of a worker: a merge of runs."""

    number: int
    """The shard's index among all."""
    begin: bytes
    end: bytes | None
    """Its range of keys, [begin, end); None means no bound."""
    runs: tuple[Run, ...]
    """The runs with keys in the range, in the order of the input."""
    work: Place
    """The place of the runs."""
    target: Place
    build: str
    """The build's name: all shards of one build are in one directory."""
    tables: TableSettings
    memory_limit: int
    merge: Merge | None


def build_shard(task: ShardTask) -> ShardEntry:
    """Write a shard's objects, and return its entry for the version.

    The directory's name includes the attempt, so a task that runs twice never meets its own
    objects.  Their content is the same each time.  Nothing names them before the version is
    published.
    """
    path = f"shards/{task.build}/{task.number:04d}-{secrets.token_hex(4)}"
    most = task.memory_limit // (4 * max(1, len(task.runs)))
    most = max(FRAME_BYTES, min(most, _MOST_AHEAD))
    with task.work.open() as work, task.target.open() as target:
        sources = [RunReader(work, run, task.begin, task.end, most) for run in task.runs]
        return write_shard(
            merged([source.chunks() for source in sources], task.merge),
            target,
            path,
            task.begin,
            task.tables,
        )


def write_shard(
    chunks: Iterable[Chunk], target: ObjectStore, path: str, first: bytes, tables: TableSettings
) -> ShardEntry:
    """Store a shard of these pairs, which are in strictly ascending order, below ``path``."""
    with MemoryEnv().open_directory("/shard", create=True) as directory:
        writer = _ShardWriter(directory, target, path, tables)
        for keys, values in chunks:
            writer.add(keys, values)
        return writer.finish(first)


class _ShardWriter:
    """Call order: ``add* finish``."""

    def __init__(
        self, directory: Directory, target: ObjectStore, path: str, tables: TableSettings
    ) -> None:
        self._directory = directory
        self._target = target
        self._path = path
        self._options = tables.options()
        self._table_bytes = tables.table_bytes
        self._output: TableOutput | None = None
        self._tables: list[FileMetaData] = []
        self._files: list[StoredFile] = []
        self._pieces: list[FilePieces] = []
        self._pairs = 0

    def add(self, keys: list[bytes], values: list[bytes]) -> None:
        """Append pairs."""
        tagged = [_TAG + value for value in values]
        at = 0
        while at < len(keys):
            if self._output is None:
                number = _MANIFEST_NUMBER + 1 + len(self._tables)
                self._output = TableOutput(self._directory, number, self._options)
            stop = min(len(keys), at + _ENTRIES)
            at = self._output.add_entries(keys, tagged, at, stop, self._table_bytes)
            if self._output.size >= self._table_bytes:
                self._finish_table(self._output)
        self._pairs += len(keys)

    def finish(self, first: bytes) -> ShardEntry:
        """Store the remaining pairs, and return the entry of a shard that begins at ``first``."""
        if self._output is not None:
            self._finish_table(self._output)
        self._write_manifest()
        for name in (manifest_name(_MANIFEST_NUMBER), CURRENT):
            data = self._directory.read_file(name, _NO_LIMIT)
            self._pieces.append(FilePieces(name, len(data), [Piece(0, data)]))
            self._put(name, data)
        meta = encode_meta(self._pieces)
        self._target.put(f"{self._path}/{META}", meta)
        return ShardEntry(self._path, first, self._pairs, _stored(META, meta), tuple(self._files))

    def _finish_table(self, output: TableOutput) -> None:
        """Store the table, and free its memory."""
        table = output.finish()
        self._output = None
        self._tables.append(table)
        name = table_name(table.number)
        self._pieces.append(table_pieces(self._directory, name, self._options))
        data = self._directory.read_file(name, _NO_LIMIT)
        self._directory.remove(name)
        self._put(name, data)

    def _put(self, name: str, data: bytes) -> None:
        self._target.put(f"{self._path}/{name}", data)
        self._files.append(_stored(name, data))

    def _write_manifest(self) -> None:
        edit = VersionEdit()
        edit.comparator = self._options.comparator.name
        edit.log_number = 0  # there is no log
        edit.prev_log_number = 0
        edit.next_file_number = _MANIFEST_NUMBER + 1 + len(self._tables)
        edit.last_sequence = 0
        for table in self._tables:
            edit.add_file(NUM_LEVELS - 1, table)
        with self._directory.create(manifest_name(_MANIFEST_NUMBER)) as file:
            LogWriter(file).add_record(edit.encode())
            file.sync()
        set_current(self._directory, _MANIFEST_NUMBER)


def _stored(name: str, data: bytes) -> StoredFile:
    return StoredFile(name, len(data), hashlib.sha256(data).hexdigest())
