"""A read-only :class:`~lsmkv.engine.env.base.Env` over an object store.

``lsmkv.DB(path, read_only=True, env=RemoteEnv(objects))`` opens the database whose files are below
``path/`` in the store.  With a META (:mod:`lsmkv.shards.remote.meta`) that takes one request.
Without one, as for a LevelDB directory that was copied to a bucket, it takes more.  Those are one
that finds no META, a listing of everything below the path, one per small file, and two per table.
A point read costs one request.  An absent key costs none if a filter rejects it.

A directory stays as it was when it was opened.  Objects must not be replaced while it is open.
Checksums would report that as damage.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import weakref
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from lsmkv.engine.env.base import Directory, Env, FileLock, WritableFile, check_name
from lsmkv.engine.errors import CorruptionError
from lsmkv.shards.remote.disk_cache import DiskCache
from lsmkv.shards.remote.fetch_ahead import FetchAhead
from lsmkv.shards.remote.meta import META, FilePieces, decode_meta
from lsmkv.shards.remote.objects.base import ObjectStore, check_object_name
from lsmkv.shards.remote.remote_file import Held, RemoteFile
from lsmkv.shards.remote.remote_object import MISSING, RemoteCounters, RemoteObject, Source

_log = logging.getLogger("lsmkv")


class Expected(NamedTuple):
    """Facts about an object from another source, such as a version document."""

    size: int
    sha256: str
    """In lower-case hexadecimal."""


class RemoteEnv(Env):
    """The directories of an object store, for reading.

    Any thread may call it.  It does not close ``objects`` and ``cache``: they belong to the caller.
    """

    def __init__(
        self,
        objects: ObjectStore,
        cache: DiskCache | None = None,
        *,
        expected: Mapping[str, Expected] | None = None,
    ) -> None:
        """``expected`` describes objects, by their full names.

        A META that differs from its description raises :class:`~lsmkv.errors.CorruptionError`; so
        does a file of another size.  Other objects are not hashed, because they are read in ranges;
        their blocks have checksums.  If a directory has described files but no META, it is not
        listed, and contains those files.  The logger ``lsmkv`` warns of a described META that is
        missing: it only repeats bytes of the files.
        """
        self._source = Source(objects, cache)
        self._expected = {} if expected is None else dict(expected)
        self._ahead = FetchAhead()
        self._directories: weakref.WeakSet[RemoteDirectory] = weakref.WeakSet()

    @property
    def counters(self) -> RemoteCounters:
        """Counts what was read."""
        return self._source.counters

    def open_directory(self, path: str, create: bool = False) -> RemoteDirectory:
        """Open the directory of the objects below ``path``: one request; none or more if
        ``expected`` describes it, or without META.

        ``path`` is part of an object's name; an empty path is the store's root.  Raises
        ``FileNotFoundError`` if there are no objects below it, and ``CorruptionError`` if META is
        damaged or not the expected one.
        """
        where = _prefix_of(path)
        url = self._url_of(where)
        if create:
            _refuse(url)
        files = self._from_meta(where)
        if files is None:
            files = self._from_expected(where) or self._from_listing(where)
        if not files:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), url)
        directory = RemoteDirectory(self, url, where, files, self._ahead)
        self._directories.add(directory)
        return directory

    def forget_meta(self, path: str | None = None) -> None:
        """:meth:`RemoteDirectory.forget_meta` for every open directory, or those at ``path``."""
        url = None if path is None else self._url_of(_prefix_of(path))
        for directory in list(self._directories):
            if url is None or directory.path == url:
                directory.forget_meta()

    def close(self) -> None:
        """End the threads that fetch ahead.  Open files stay readable.  A second close has no
        effect."""
        self._ahead.close()

    def remove_directory(self, path: str) -> None:
        """Not supported: raises ``OSError`` with ``EROFS``."""
        _refuse(path)

    def rename_directory(self, old: str, new: str) -> None:
        """Not supported: raises ``OSError`` with ``EROFS``."""
        _refuse(old)

    def _url_of(self, where: str) -> str:
        return self._source.objects.url_of(where).rstrip("/")

    # The files of a directory

    def _from_meta(self, where: str) -> dict[str, Held] | None:
        """The files of a directory with META; None without one."""
        name = where + META
        known = self._expected.get(name)
        if known is not None:
            try:
                data = self._remote(name, known.size, "").read(0, known.size)
            except CorruptionError as error:
                if error.reason != MISSING:
                    raise
                _log.warning("%s: %s; its directory is read without it", error.path, MISSING)
                return None
            digest = hashlib.sha256(data).hexdigest()
            if digest != known.sha256:
                reason = f"the object has the SHA-256 {digest}, but {known.sha256} is expected"
                raise CorruptionError(reason, self._source.objects.url_of(name))
        elif self._names_expected(where):
            return None
        else:
            try:
                data = self._source.objects.get(name)
            except FileNotFoundError:
                return None
        try:
            files = decode_meta(data)
        except CorruptionError as error:
            raise error.located(self._source.objects.url_of(name)) from None
        stamp = f"META {hashlib.sha256(data).hexdigest()}"
        return {file.name: self._held(where, file, stamp) for file in files}

    def _held(self, where: str, file: FilePieces, stamp: str) -> Held:
        """A file from META."""
        name = where + file.name
        known = self._expected.get(name)
        if known is not None and known.size != file.size:
            reason = f"{file.name} has {file.size} bytes here, but {known.size} are expected"
            raise CorruptionError(reason, self._source.objects.url_of(where + META))
        pieces = tuple((piece.offset, piece.data) for piece in file.pieces)
        return Held(self._remote(name, file.size, stamp), pieces)

    def _names_expected(self, where: str) -> list[str]:
        """The names of the objects in a directory that ``expected`` describes."""
        at = len(where)
        return [name for name in self._expected if name.startswith(where) and "/" not in name[at:]]

    def _from_expected(self, where: str) -> dict[str, Held]:
        at = len(where)
        return {
            name[at:]: Held(self._remote(name, self._expected[name].size, ""))
            for name in self._names_expected(where)
            if name[at:] != META
        }

    def _from_listing(self, where: str) -> dict[str, Held]:
        at = len(where)
        return {
            info.name[at:]: Held(self._remote(info.name, info.size, f"modified {info.modified!r}"))
            for info in self._source.objects.list(where)
        }

    def _remote(self, name: str, size: int, stamp: str) -> RemoteObject:
        """Make an object.  Its content is identified by its hash, if that is known.  Otherwise its
        URL, size and ``stamp`` identify it; another object of that name has another stamp."""
        known = self._expected.get(name)
        if known is not None:
            identity = f"sha256 {known.sha256}"
        else:
            identity = f"{self._source.objects.url_of(name)} size {size} {stamp}"
        return RemoteObject(self._source, name, size, identity)


class RemoteDirectory(Directory):
    """The objects below one prefix.  Methods that write raise ``OSError`` with ``EROFS``."""

    def __init__(
        self, env: RemoteEnv, url: str, where: str, files: dict[str, Held], ahead: FetchAhead
    ) -> None:
        """``where`` is the prefix, with its slash; ``files`` are the objects below it, by the rest
        of their names."""
        self.path = url
        self._env = env
        self._where = where
        self._files = files
        self._ahead = ahead
        self._folders = {name.partition("/")[0] for name in files if "/" in name}
        self._closed = False

    @property
    def immutable(self) -> bool:
        return True

    def change_mark(self) -> str:
        """Always the same."""
        return self.path

    def names(self) -> list[str]:
        self._check_open()
        return [name for name in self._files if "/" not in name] + sorted(self._folders)

    def exists(self, name: str) -> bool:
        check_name(name)
        self._check_open()
        return name in self._files or name in self._folders

    def size(self, name: str) -> int:
        return self._find(name).remote.size

    def open(self, name: str) -> RemoteFile:
        """Open a file without a request."""
        return RemoteFile(self._find(name), self._ahead)

    def subdirectory(self, name: str, create: bool = False) -> RemoteDirectory:
        self._check_open()
        return self._env.open_directory(self._where + check_name(name), create)

    def forget_meta(self) -> None:
        """Free the bytes from META, once the database is open.

        The bytes of a table of several blocks are freed when it has been opened.  What remains are
        CURRENT, the MANIFEST, and tables of one block.  All stay readable, by requests.
        """
        for held in self._files.values():
            held.pieces = ()

    def lock_holder(self, name: str) -> int | None:
        """Nobody: there are no writers."""
        return None

    def close(self) -> None:
        self._closed = True

    def _find(self, name: str) -> Held:
        check_name(name)
        self._check_open()
        held = self._files.get(name)
        if held is None:
            code = errno.EISDIR if name in self._folders else errno.ENOENT
            raise OSError(code, os.strerror(code), f"{self.path}/{name}")
        return held

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)

    # Writing

    def create(self, name: str) -> WritableFile:
        _refuse(f"{self.path}/{name}")

    def append_to(self, name: str) -> WritableFile:
        _refuse(f"{self.path}/{name}")

    def rename(self, old: str, new: str) -> None:
        _refuse(f"{self.path}/{old}")

    def remove(self, name: str) -> None:
        _refuse(f"{self.path}/{name}")

    def link(self, name: str, target: Directory) -> None:
        _refuse(f"{self.path}/{name}")

    def sync(self) -> None:
        _refuse(self.path)

    def lock(self, name: str) -> FileLock:
        _refuse(f"{self.path}/{name}")


def _prefix_of(path: str) -> str:
    """The prefix of the names of the objects below a path."""
    prefix = path.strip("/")
    return "" if prefix in ("", ".") else check_object_name(prefix) + "/"


def _refuse(path: str) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
