"""Objects in any file system that fsspec knows."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib import metadata
from typing import Any

import fsspec

from lsmkv.shards.remote.objects.base import (
    ObjectInfo,
    ObjectStore,
    check_object_name,
    check_prefix,
    check_range,
)

# File systems whose ``pipe_file(mode="create")`` lets the store decide which writer is first: by
# package, with the first version.  In others fsspec checks whether a file exists and then writes
# it, or does not check at all.
_EXCLUSIVE = {
    "s3": ("s3fs", (2025, 2)),
    "s3a": ("s3fs", (2025, 2)),
    "gs": ("gcsfs", (2025, 2)),
    "gcs": ("gcsfs", (2025, 2)),
    "az": ("adlfs", (2025, 8)),
    "abfs": ("adlfs", (2025, 8)),
    "abfss": ("adlfs", (2025, 8)),
}
_MEMORY = "memory"
_memory_mutex = threading.Lock()  # fsspec has one memory file system per process, without a lock
# The field with a file's modification time differs between file systems.
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


class FsspecObjects(ObjectStore):
    """Objects below a path of an fsspec file system.

    :meth:`put_if_absent` raises ``ENOTSUP`` except in the few file systems that support it.
    Whether others ever show part of an object depends on the file system.
    """

    def __init__(self, system: Any, root: str, url: str) -> None:
        self.url = url
        self._system = system
        self._root = root.rstrip("/")

    def get(self, name: str) -> bytes:
        path = self._path_of(name)
        with self._naming(name):
            return bytes(self._system.cat_file(path))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        path = self._path_of(name)
        check_range(offset, length)
        if length == 0:
            return b""
        with self._naming(name):
            try:
                return bytes(self._system.cat_file(path, start=offset, end=offset + length))
            except Exception as error:
                if getattr(error, "status", None) == 416 or "InvalidRange" in str(error):
                    return b""
                raise

    def put(self, name: str, data: bytes) -> None:
        path = self._path_of(name)
        with self._naming(name):
            try:
                self._pipe(path, data)
            except FileExistsError as error:  # a file where a directory is needed
                raise OSError(errno.EINVAL, f"another file is in the way: {error}") from error

    def put_if_absent(self, name: str, data: bytes) -> None:
        path = self._path_of(name)
        with self._naming(name), self._exclusively():
            self._pipe(path, data, mode="create")

    def list(self, prefix: str) -> list[ObjectInfo]:
        check_prefix(prefix)
        with self._naming(prefix):
            self._system.invalidate_cache()
            path = f"{self._root}/{prefix}".rstrip("/")
            try:
                found = self._system.find(path, detail=True)
            except FileNotFoundError:
                return []
        objects = [
            ObjectInfo(self._name_of(path), int(info["size"] or 0), _time_of(info))
            for path, info in found.items()
            if info["type"] == "file"
        ]
        return sorted(one for one in objects if one.name.startswith(prefix))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            path = self._path_of(name)
            with self._naming(name):
                try:
                    self._system.rm_file(path)
                except FileNotFoundError:
                    pass

    def close(self) -> None:
        """Nothing to do: fsspec shares file systems, and their connections, in a process."""

    def _path_of(self, name: str) -> str:
        return f"{self._root}/{check_object_name(name)}"

    def _name_of(self, path: str) -> str:
        """The name of the object at a path, which fsspec may return without its first slash."""
        root = self._root.lstrip("/")
        own = path.lstrip("/")
        return own.removeprefix(f"{root}/") if root else own

    def _pipe(self, path: str, data: bytes, **mode: str) -> None:
        """Write a file, after making the directories of its path if the file system has
        directories."""
        try:
            self._system.pipe_file(path, data, **mode)
        except FileNotFoundError:
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, data, **mode)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Supports making a file only if there is none; ``ENOTSUP`` if nothing ensures that."""
        protocol = self._system.protocol
        first = protocol if isinstance(protocol, str) else protocol[0]
        if first == _MEMORY:
            with _memory_mutex:
                yield
            return
        package, since = _EXCLUSIVE.get(first, ("", ()))
        if not package or _version_of(package) < since:
            raise OSError(
                errno.ENOTSUP, f"fsspec cannot create an object exclusively here: {first}"
            )
        yield

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Errors inside the block become an ``OSError`` about an object."""
        try:
            yield
        except Exception as error:
            typed = _typed(error, self.url_of(name))
            if typed is None:
                raise
            raise typed from error


def open_fsspec(url: str, options: Mapping[str, object]) -> FsspecObjects:
    """The objects below a URL of a scheme that fsspec knows.

    ``options`` are those of the file system.  Raises ``ValueError`` for a scheme that fsspec does
    not know, ``ImportError`` if the scheme's package is missing.
    """
    try:
        system, root = fsspec.core.url_to_fs(url, **options)
    except OSError as error:
        why = (error.strerror or str(error)).partition("\n")[0]
        raise OSError(error.errno or errno.ENOTSUP, why, url) from error
    return FsspecObjects(system, root, url)


def _typed(error: Exception, url: str) -> OSError | None:
    """An error of a file system as ``OSError``; None if it is a bug in the program.

    Every package has its own exceptions for network failures: those are transient.
    """
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    for kind, number in _ERRNO_OF_KIND:
        if isinstance(error, kind):
            # In many file systems the text of these errors is only a path.
            return OSError(number, os.strerror(number) if text.startswith("/") else text, url)
    if isinstance(error, OSError):
        return OSError(error.errno or errno.EIO, text, url)
    if type(error).__module__ == "builtins":
        return None
    if getattr(error, "status", None) in (401, 403):
        return OSError(errno.EACCES, text, url)
    return OSError(errno.EIO, f"{type(error).__name__}: {text}", url)


_ERRNO_OF_KIND: tuple[tuple[type[Exception], int], ...] = (
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (PermissionError, errno.EACCES),
    (IsADirectoryError, errno.ENOENT),
    (NotADirectoryError, errno.EINVAL),
    (TimeoutError, errno.ETIMEDOUT),
    (NotImplementedError, errno.ENOTSUP),
)


def _time_of(info: Mapping[str, Any]) -> float:
    """The time at which a file was written.  If the file system does not report it, the current
    time: the file is never taken for old."""
    found = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(found, str):
        found = datetime.fromisoformat(found)
    if isinstance(found, datetime):
        return found.timestamp()
    return time.time() if found is None else float(found)


def _version_of(package: str) -> tuple[int, ...]:
    try:
        numbers = metadata.version(package).split(".")[:2]
    except metadata.PackageNotFoundError:
        return ()
    return tuple(int(number) for number in numbers if number.isdigit())
