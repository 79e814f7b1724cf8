"""Objects as files in a directory tree, through an :class:`~lsmkv.env.base.Env`.

An object's name is its path below the root.  A new object is written under a temporary name, made
durable there, and moved into place by one call of the system: a rename, which replaces, or a hard
link, which does not.  At no moment, and after no power cut, does a name stand for part of an
object.

Temporary names begin with :data:`TEMPORARY`.  They are never listed, and no object may bear one.
A process that is killed while it writes leaves its temporary file behind, until somebody sweeps.

Left out: two names of which one goes on where the other ends (``a`` and ``a/b``), which a directory
cannot hold: ``OSError`` with ``EINVAL``.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from lsmkv.env.base import Directory, Env
from lsmkv.shards.remote.objects.base import (
    ObjectInfo,
    ObjectStore,
    check_object_name,
    check_prefix,
    check_range,
)
from lsmkv.shards.remote.objects.open_files import OpenFiles

TEMPORARY = ".put-"
"""How the names of files and directories begin that are no objects."""

# A directory into which an object goes may be removed just then, since it was empty.
_ATTEMPTS = 20
# What a file system without hard links answers; between file systems there are none either.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)
# What stands where an object, or a directory on the way to it, is expected.
_IN_THE_WAY = (errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO)


class LocalObjects(ObjectStore):
    """Objects below one directory, which is held open.

    Another client's :meth:`put` over an object, or removal of one, may stay unseen by
    :meth:`get_range` while this store holds the object's file open.

    Cost: reading opens the directories of a name and its file, and a range of a file that was read
    from lately opens nothing.  Writing waits for the disk: once for the content, once for each
    directory of the name.
    """

    def __init__(self, env: Env, path: str, create: bool = False, durable: bool = True) -> None:
        """With ``create`` the directory is made, and those above it that are missing.

        Without ``durable``, a :meth:`put` does not wait for the disk: for objects that are of no
        use after a power cut.  ``FileNotFoundError`` without ``create``, if there is no directory.
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

        Symbolic links, devices and the like are no objects.  Cost: a few calls of the system for
        each object.
        """
        check_prefix(prefix)
        return sorted(info for info in self._find(prefix) if not _is_temporary(info.name))

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, and the directories that this leaves empty, as far as that can be done.

        The removals are durable afterwards.  One sync for each directory that objects were in.
        """
        self._delete([_checked(name) for name in names])

    def sweep(self, before: float) -> None:
        """Remove the temporary files of killed writers: see :meth:`ObjectStore.sweep`."""
        old = [info.name for info in self._find("") if info.modified < before]
        self._delete(filter(_is_temporary, old))

    def close(self) -> None:
        self._files.close()
        self._root.close()

    # Parts of the above

    def _find(self, prefix: str) -> Iterator[ObjectInfo]:
        """What lies below a prefix, temporary files included."""
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
                # A link keeps the name of its file, so the file is made in a directory of its own.
                with self._temporary_directory() as temporary:
                    _write(temporary, own, data)
                    try:
                        _link(temporary, own, parent)
                    finally:
                        _discard(temporary, own)
            except FileExistsError:
                parent.sync()  # its writer may have failed to: what is found taken stays so
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
                return  # the objects are not there
        self._remove_empty(parts)

    def _remove_in(self, directory: Directory, own: str, name: str) -> None:
        """Remove an object, if it is there; ``own`` is its name in its directory."""
        try:
            directory.remove(own)
        except (FileNotFoundError, IsADirectoryError):
            pass
        self._files.forget(name)

    def _remove_empty(self, parts: Sequence[str]) -> None:
        """Remove a directory, then the one that holds it, up to the first that is in use."""
        for end in range(len(parts), 0, -1):
            try:
                self._env.remove_directory(os.path.join(self.url, *parts[:end]))
            except OSError:  # usually ENOTEMPTY; an empty directory does no harm
                return

    @contextmanager
    def _directory(self, parts: Sequence[str], create: bool = False) -> Iterator[Directory]:
        """A directory below the root; the root itself for no parts."""
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
        """Call it, again if the directory was removed meanwhile: see :meth:`_remove_empty`."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return write()
            except FileNotFoundError:
                pass
        return write()

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Errors from inside are about an object, whatever file they met."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), self.url_of(name)) from error

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Check a name; what cannot be an object is not there."""
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
        """Check a name; where something else is in the way, no object can be written."""
        _checked(name)
        with self._naming(name):
            try:
                yield
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                raise OSError(errno.EINVAL, f"in the way: {error.strerror}") from error


def _open_root(env: Env, path: str, create: bool) -> Directory:
    """A directory; ``create`` makes it, and those above it."""
    try:
        return env.open_directory(path, create)
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip("/"))
        if not create or above in ("", path):
            raise
        _open_root(env, above, create).close()
        return env.open_directory(path, create)


def _checked(name: str) -> str:
    """``name`` itself if an object of a directory may bear it; else ``ValueError``."""
    check_object_name(name)
    if _is_temporary(name):
        raise ValueError(f"a temporary name, which no object may bear: {name!r}")
    return name


def _is_temporary(name: str) -> bool:
    return any(part.startswith(TEMPORARY) for part in name.split("/"))


def _temporary_name() -> str:
    return TEMPORARY + uuid.uuid4().hex


@contextmanager
def _temporary_file(directory: Directory, data: bytes, durable: bool) -> Iterator[str]:
    """The name of a new file, which is removed if an error comes from inside."""
    name = _temporary_name()
    _write(directory, name, data, durable)
    try:
        yield name
    except BaseException:
        _discard(directory, name)
        raise


def _write(directory: Directory, name: str, data: bytes, durable: bool = True) -> None:
    """Make a file, and its content durable if that is asked for; or leave none."""
    try:
        with directory.create(name) as file:
            file.append(data)
            if durable:
                file.sync()
    except BaseException:
        _discard(directory, name)
        raise


def _discard(directory: Directory, name: str) -> None:
    """Remove a temporary file.  If that fails it does no harm, and an error before it counts."""
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
        why = f"no hard links are made here, so no object is made exclusively: {error.strerror}"
        raise OSError(errno.ENOTSUP, why) from error


def _walk(directory: Directory, prefix: str) -> Iterator[ObjectInfo]:
    """All files in a directory and below it; ``prefix`` is what their names begin with."""
    for own in directory.names():
        try:
            size = directory.size(own)
            yield ObjectInfo(prefix + own, size, directory.modified(own))
        except IsADirectoryError:
            try:
                inner = directory.subdirectory(own)
            except (FileNotFoundError, NotADirectoryError):  # replaced meanwhile
                continue
            with inner:
                yield from _walk(inner, f"{prefix}{own}/")
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL):
                raise
