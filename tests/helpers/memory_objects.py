"""An object store in a dict, which counts its requests and fails where a test wants it to."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.format.filenames import CURRENT, FileType, parse_filename, read_current
from lsmkv.engine.options import Options
from lsmkv.shards.remote.meta import FilePieces, Piece, encode_meta
from lsmkv.shards.remote.objects.base import ObjectInfo, ObjectStore, check_object_name
from lsmkv.shards.remote.table_pieces import table_pieces


class MemoryObjects(ObjectStore):
    """``hook`` is called before each request, with its kind and the object's name; it may raise.

    ``edit`` may change what a request for bytes returns.
    """

    def __init__(self, url: str = "memory://bucket") -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self.modified: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.ranges: list[tuple[str, int, int]] = []
        """Name, offset and length of each ranged request."""
        self.hook: Callable[[str, str], None] = lambda kind, name: None
        self.edit: Callable[[str, bytes], bytes] = lambda name, data: data
        self._lock = threading.Lock()

    @property
    def requests(self) -> int:
        return self.counts.total()

    def forget_requests(self) -> None:
        with self._lock:
            self.counts.clear()
            self.ranges.clear()

    def get(self, name: str) -> bytes:
        self._request("get", name)
        return self.edit(name, self._find(name))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        with self._lock:
            self.ranges.append((name, offset, length))
        self._request("get_range", name)
        return self.edit(name, self._find(name)[offset : offset + length])

    def put(self, name: str, data: bytes) -> None:
        self._request("put", name)
        self._put(name, data)

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._request("put_if_absent", name)
        with self._lock:
            if name in self.objects:
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), self.url_of(name))
        self._put(name, data)

    def list(self, prefix: str) -> list[ObjectInfo]:
        self._request("list", prefix)
        with self._lock:
            return [
                ObjectInfo(name, len(data), self.modified[name])
                for name, data in sorted(self.objects.items())
                if name.startswith(prefix)
            ]

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._request("delete", name)
            with self._lock:
                self.objects.pop(name, None)

    def close(self) -> None:
        pass

    def _request(self, kind: str, name: str) -> None:
        with self._lock:
            self.counts[kind] += 1
        self.hook(kind, name)

    def _put(self, name: str, data: bytes) -> None:
        with self._lock:
            self.objects[check_object_name(name)] = bytes(data)
            self.modified[name] = self.modified.get(name, 0.0) + 1

    def _find(self, name: str) -> bytes:
        with self._lock:
            if name not in self.objects:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self.url_of(name))
            return self.objects[name]


def upload(
    env: Env, path: str, objects: ObjectStore, prefix: str, *, meta: Options | None = None
) -> None:
    """Copy the files of a directory to ``prefix/``; with a META, if ``meta`` has options for it."""
    with env.open_directory(path) as directory:
        for name in directory.names():
            if name not in ("LOCK", "LOG", "LOG.old"):
                objects.put(f"{prefix}/{name}", directory.read_file(name, 1 << 40))
        if meta is not None:
            objects.put(f"{prefix}/META", meta_of(directory, meta))


def meta_of(directory: Directory, options: Options) -> bytes:
    """The META of a database that nobody writes to, as the builder of a shard makes it."""
    plain = options._replace(filter_policy=None, prefix_extractor=None, block_cache=None)
    manifest = read_current(directory)
    files: list[FilePieces] = []
    for name in directory.names():
        parsed = parse_filename(name)
        kind = None if parsed is None else parsed[1]
        if kind is FileType.TABLE:
            files.append(table_pieces(directory, name, plain))
        elif kind is FileType.LOG or name in (CURRENT, manifest):
            data = directory.read_file(name, 1 << 40)
            pieces = [Piece(0, data)] if data else []
            files.append(FilePieces(name, len(data), pieces))
    return encode_meta(files)
