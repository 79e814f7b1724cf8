"""The files of a shard in the object store, fetched whole and checked, for verification.

A reader fetches ranges of a shard, some of them from META.  A :class:`FetchedShard` is a directory
in which every file is a whole object.  It is compared with all that the version and META state of
it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple, NoReturn

from lsmkv.engine.env.base import Directory, FileLock, RandomAccessFile, WritableFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.shards.remote.meta import META, FilePieces, decode_meta
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.version import ShardEntry


class Flaw(NamedTuple):
    """A fault of an object."""

    name: str
    """Within the shard's directory."""
    offset: int
    reason: str


class FetchedShard(Directory):
    """The objects of one shard, for reading by one thread.

    An object is fetched when it is opened: one request.  Small objects stay in memory, and a table
    stays while it is open.  Objects that the version does not name are left out.
    """

    def __init__(
        self, objects: ObjectStore, entry: ShardEntry, fetched: Callable[[int], None]
    ) -> None:
        """``fetched`` is called with the size of each fetched object.

        Costs a listing; if the store cannot list, a request for each object.
        """
        self.path = objects.url_of(entry.path)
        self.flaws: list[Flaw] = []
        """The objects that differ from the statements of the version or META."""
        self.seen: set[str] = set()
        """The objects that have been fetched."""
        self._objects = objects
        self._entry = entry
        self._fetched = fetched
        self._stated = {file.name: file for file in (entry.meta, *entry.files)}
        sizes = _sizes(objects, entry)
        self.others = {name: size for name, size in sizes.items() if name not in self._stated}
        """The sizes of objects that the version does not name."""
        self._sizes = {name: size for name, size in sizes.items() if name in self._stated}
        self._small: dict[str, bytes] = {}
        self._pieces: dict[str, FilePieces] = {}  # until META has been read
        self._pieces = self._read_meta()

    def names(self) -> list[str]:
        return list(self._sizes)

    def exists(self, name: str) -> bool:
        return name in self._sizes

    def size(self, name: str) -> int:
        if name not in self._sizes:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.path}/{name}")
        return self._sizes[name]

    def open(self, name: str) -> RandomAccessFile:
        """Fetch an object unless it is in memory, and compare it."""
        data = self._small.get(name)
        if data is None:
            data = self._fetch(name)
            if not name.endswith((".ldb", ".sst")):
                self._small[name] = data
        return _BytesFile(f"{self.path}/{name}", data)

    def close(self) -> None:
        self._small.clear()

    def _fetch(self, name: str) -> bytes:
        self.size(name)
        self.seen.add(name)
        try:
            data = self._objects.get(f"{self._entry.path}/{name}")
        except FileNotFoundError:  # removed after it was listed
            self._note(name, 0, "missing")
            return b""
        self._fetched(len(data))
        stated = self._stated[name]
        if len(data) != stated.size:
            self._note(
                name,
                min(len(data), stated.size),
                f"{_bytes(data)}, but the version states {stated.size}",
            )
        elif sha256(data).hexdigest() != stated.sha256:
            self._note(name, 0, "its SHA-256 differs from the one that the version states")
        if name in self._pieces:
            self._compare(self._pieces[name], data)
        return data

    def _read_meta(self) -> dict[str, FilePieces]:
        if META not in self._sizes:
            return {}
        data = self._fetch(META)
        try:
            return {file.name: file for file in decode_meta(data)}
        except CorruptionError as error:
            self._note(META, error.offset or 0, error.reason)
            return {}

    def _compare(self, file: FilePieces, data: bytes) -> None:
        """Check that META repeats the bytes of a file."""
        if file.size != len(data):
            self._note(
                META,
                0,
                f"it states {file.size} bytes for {file.name}, whose size is {len(data)}",
            )
        for piece in file.pieces:
            if data[piece.offset : piece.offset + len(piece.data)] != piece.data:
                self._note(META, 0, f"its bytes of {file.name} at {piece.offset} differ")

    def _note(self, name: str, offset: int, reason: str) -> None:
        self.flaws.append(Flaw(name, offset, reason))

    # Nothing is written

    def create(self, name: str) -> WritableFile:
        self._refuse()

    def append_to(self, name: str) -> WritableFile:
        self._refuse()

    def rename(self, old: str, new: str) -> None:
        self._refuse()

    def remove(self, name: str) -> None:
        self._refuse()

    def link(self, name: str, target: Directory) -> None:
        self._refuse()

    def sync(self) -> None:
        self._refuse()

    def lock(self, name: str) -> FileLock:
        self._refuse()

    def subdirectory(self, name: str, create: bool = False) -> Directory:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), self.path)


class _BytesFile(RandomAccessFile):
    """Bytes in memory."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.size = len(data)
        self._data = data

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def close(self) -> None:
        self._data = b""


def _sizes(objects: ObjectStore, entry: ShardEntry) -> dict[str, int]:
    """The sizes of the objects in the shard's directory, by name."""
    where = f"{entry.path}/"
    try:
        return {info.name[len(where) :]: info.size for info in objects.list(where)}
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
    sizes: dict[str, int] = {}
    for name, file in entry.objects():
        try:
            objects.get_range(name, 0, 1)
        except FileNotFoundError:
            continue
        sizes[file.name] = file.size
    return sizes


def _bytes(data: bytes) -> str:
    return f"{len(data)} bytes"
