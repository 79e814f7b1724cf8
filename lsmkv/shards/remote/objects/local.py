"""Objects as files in a directory tree, through an :class:`~lsmkv.engine.env.base.Env`.

An object's name is its path below the root.  A new object is written under a temporary name and
made durable.  One system call then moves it into place: a rename, which replaces, or a hard link,
which does not.  So a name never refers to part of an object, not even after a power cut.

Temporary names begin with :data:`TEMPORARY`.  They are never listed, and no object may have one.  A
process that is killed while it writes leaves its temporary file, until :meth:`LocalObjects.sweep`
removes it.

Not supported: two names of which one is a directory of the other (``a`` and ``a/b``).  They raise
``OSError`` with ``EINVAL``.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from lsmkv.engine.env.base import Directory, Env
from lsmkv.shards.remote.objects.base import (
    ObjectInfo,
    ObjectStore,
    check_object_name,
    check_prefix,
    check_range,
)
from lsmkv.shards.remote.objects.open_files import OpenFiles

TEMPORARY = ".put-"
"""The prefix of names of files and directories that are not objects."""

# An empty directory may be removed just before an object is written into it.
_ATTEMPTS = 20
# The errors of a file system without hard links, which are also impossible between file systems.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)
# Errors for something else where an object, or a directory on its path, is expected.
_IN_THE_WAY = (errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO)


class LocalObjects(ObjectStore):
    """Objects below one directory, whose descriptor stays open.

    :meth:`get_range` may miss another client's :meth:`put` or removal while this store has the
    object's file open.

    Cost: a read opens the directories of a name and its file, unless that file was read recently.
    A write waits for the disk: once for the content, once for each directory of the name.
    """

    def __init__(self, env: Env, path: str, create: bool = False, durable: bool = True) -> None:
        """With ``create`` the directory and its missing parents are made.

        Without ``durable``, :meth:`put` does not wait for the disk: for objects that are useless
        after a power cut.  Raises ``FileNotFoundError`` without ``create`` if there is no
        directory.
        """
        self.url = path.rstrip("/") or "/"
        self._env = env
        self._durable = durable
        self._root = _open_root(env, path, create)
        self._files = OpenFiles()

    def get(self, name: str) -> bytes:
        with self._reading(name), self._parent(name) as (parent, own):  # noqa: SIM117
            with parent.open(own) as file:
                return file.read(0, file.size)

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        check_range(offset, length)
        with self._reading(name):
            if length == 0:
                return b""
            file, changes = self._files.find(name)
            if file is None:
                with self._parent(name) as (parent, own):
                    file = parent.open(own)
                self._files.add(name, file, changes)
            return file.read(offset, length)

    def put(self, name: str, data: bytes) -> None:
        with self._writing(name):
            self._again_if_removed(lambda: self._put(name, data))
        self._files.forget(name)

    def put_if_absent(self, name: str, data: bytes) -> None:
        with self._writing(name):
            self._again_if_removed(lambda: self._put_if_absent(name, data))

    def list(self, prefix: str) -> list[ObjectInfo]:
        """The objects below ``prefix``: see :meth:`ObjectStore.list`.

        Symbolic links, devices and other special files are not objects.  Cost: a few system calls
        per object.
        """
        check_prefix(prefix)
        return sorted(info for info in self._find(prefix) if not _is_temporary(info.name))

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, and the directories that are then empty, if possible.

        The removals are durable afterwards.  One sync for each directory that contained the
        objects.
        """
        self._delete([_checked(name) for name in names])

    def sweep(self, before: float) -> None:
        """Remove the temporary files of killed writers: see :meth:`ObjectStore.sweep`."""
        old = [info.name for info in self._find("") if info.modified < before]
        self._delete(filter(_is_temporary, old))

    def close(self) -> None:
        self._files.close()
        self._root.close()

    # Helpers

    def _find(self, prefix: str) -> Iterator[ObjectInfo]:
        """The files below a prefix, temporary files included."""
        with self._naming(prefix):
            try:
                with self._directory(prefix.split("/")[:-1]) as directory:
                    yield from _walk(directory, prefix)
            except (FileNotFoundError, NotADirectoryError):
                pass

    def _delete(self, names: Iterable[str]) -> None:
        folders: dict[str, list[str]] = {}
        for name in names:
            folder, _, own = name.rpartition("/")
            folders.setdefault(folder, []).append(own)
        for folder, own_names in folders.items():
            self._delete_in(folder, own_names)

    def _put(self, name: str, data: bytes) -> None:
        with self._parent(name, create=True) as (parent, own):
            with _temporary_file(parent, data, self._durable) as temporary:
                parent.rename(temporary, own)
            if self._durable:
                parent.sync()

    def _put_if_absent(self, name: str, data: bytes) -> None:
        with self._parent(name, create=True) as (parent, own):
            try:
                if parent.exists(own):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                # A hard link has the name of its file, so the file is made in a directory of its
                # own.
                with self._temporary_directory() as temporary:
                    _write(temporary, own, data)
                    try:
                        _link(temporary, own, parent)
                    finally:
                        _discard(temporary, own)
            except FileExistsError:
                parent.sync()  # the writer may have failed to sync it: what is found must stay
                raise
            parent.sync()

    def _delete_in(self, folder: str, names: Sequence[str]) -> None:
        parts = folder.split("/") if folder else []
        with self._naming(folder):
            try:
                with self._directory(parts) as directory:
                    for own in names:
                        self._remove_in(directory, own, f"{folder}/{own}" if folder else own)
                    directory.sync()
            except (FileNotFoundError, NotADirectoryError):
                return  # the objects do not exist
        self._remove_empty(parts)

    def _remove_in(self, directory: Directory, own: str, name: str) -> None:
        """Remove an object, if it exists; ``own`` is its name in its directory."""
        try:
            directory.remove(own)
        except (FileNotFoundError, IsADirectoryError):
            pass
        self._files.forget(name)

    def _remove_empty(self, parts: Sequence[str]) -> None:
        """Remove an empty directory and its empty parents."""
        for end in range(len(parts), 0, -1):
            try:
                self._env.remove_directory(os.path.join(self.url, *parts[:end]))
            except OSError:  # usually ENOTEMPTY; an empty directory does no harm
                return

    @contextmanager
    def _directory(self, parts: Sequence[str], create: bool = False) -> Iterator[Directory]:
        """A directory below the root; without parts, the root itself."""
        directory = self._root
        try:
            for part in parts:
                inner = directory.subdirectory(part, create)
                if directory is not self._root:
                    directory.close()
                directory = inner
            yield directory
        finally:
            if directory is not self._root:
                directory.close()

    @contextmanager
    def _parent(self, name: str, create: bool = False) -> Iterator[tuple[Directory, str]]:
        """The directory of an object, and the object's name in it."""
        *parts, own = name.split("/")
        with self._directory(parts, create) as directory:
            yield directory, own

    @contextmanager
    def _temporary_directory(self) -> Iterator[Directory]:
        name = _temporary_name()
        with self._root.subdirectory(name, create=True) as directory:
            try:
                yield directory
            finally:
                self._remove_empty([name])

    def _again_if_removed(self, write: Callable[[], None]) -> None:
        """Call it; repeat it if the directory was removed during the call: see
        :meth:`_remove_empty`."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return write()
            except FileNotFoundError:
                pass
        return write()

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Report errors inside the block for an object, for any file that caused them."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), self.url_of(name)) from error

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Check a name; what cannot be an object does not exist."""
        _checked(name)
        with self._naming(name):
            try:
                yield
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                raise FileNotFoundError(errno.ENOENT, error.strerror) from error

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Check a name; if something else is in the way, no object can be written."""
        _checked(name)
        with self._naming(name):
            try:
                yield
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                raise OSError(
                    errno.EINVAL, f"another file is in the way: {error.strerror}"
                ) from error


def _open_root(env: Env, path: str, create: bool) -> Directory:
    """Open a directory; ``create`` makes it, and its parents."""
    try:
        return env.open_directory(path, create)
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip("/"))
        if not create or above in ("", path):
            raise
        _open_root(env, above, create).close()
        return env.open_directory(path, create)


def _checked(name: str) -> str:
    """Return ``name`` if an object in a directory may have it; otherwise raise ``ValueError``."""
    check_object_name(name)
    if _is_temporary(name):
        raise ValueError(f"no object may have a temporary name: {name!r}")
    return name


def _is_temporary(name: str) -> bool:
    return any(part.startswith(TEMPORARY) for part in name.split("/"))


def _temporary_name() -> str:
    return TEMPORARY + uuid.uuid4().hex


@contextmanager
def _temporary_file(directory: Directory, data: bytes, durable: bool) -> Iterator[str]:
    """The name of a new file, which is removed if the block raises an error."""
    name = _temporary_name()
    _write(directory, name, data, durable)
    try:
        yield name
    except BaseException:
        _discard(directory, name)
        raise


def _write(directory: Directory, name: str, data: bytes, durable: bool = True) -> None:
    """Write a file and, if required, sync it; after an error leave none."""
    try:
        with directory.create(name) as file:
            file.append(data)
            if durable:
                file.sync()
    except BaseException:
        _discard(directory, name)
        raise


def _discard(directory: Directory, name: str) -> None:
    """Remove a temporary file.  A failure is harmless, and must not hide an earlier error."""
    try:
        directory.remove(name)
    except OSError:
        pass


def _link(source: Directory, name: str, target: Directory) -> None:
    try:
        source.link(name, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        why = (
            "this file system has no hard links, so no object can be created exclusively: "
            f"{error.strerror}"
        )
        raise OSError(errno.ENOTSUP, why) from error


def _walk(directory: Directory, prefix: str) -> Iterator[ObjectInfo]:
    """All files in a directory and below it, with names that begin with ``prefix``."""
    for own in directory.names():
        try:
            size = directory.size(own)
            yield ObjectInfo(prefix + own, size, directory.modified(own))
        except IsADirectoryError:
            try:
                inner = directory.subdirectory(own)
            except (FileNotFoundError, NotADirectoryError):  # replaced during the walk
                continue
            with inner:
                yield from _walk(inner, f"{prefix}{own}/")
        except FileNotFoundError:  # removed during the walk
            continue
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL):
                raise
