"""A cache of pages of objects on the local disk: :class:`DiskCache`.

It saves requests to an object store, in this process and in later ones.  Each page is a file
(``disk_page.py``) in one of 256 directories, chosen by the first byte of its name.  There is no
index and no database: the files are the cache's whole state.  A page is written under a temporary
name and renamed.  Nothing is synced: a power cut may damage a page, and its checksum shows that.  A
damaged page is removed and counts as a miss.

Any number of processes and threads may use one directory.  Reading takes no lock.  Writing takes
the lock of ``SIZE``, the file with the total size of the pages.  The total is raised before a page
is renamed, so it is never too low.  Before it would exceed the capacity, the writer measures the
directory and removes the least recently used pages, down to 90%.  So the pages never exceed the
capacity.  In addition there is one unfinished page for each thread that writes.  Those of killed
processes stay until an eviction finds them more than an hour old.  The capacity does not count that
the file system rounds up each file.

The time of a page's last use is the modification time of its file.  It is set at most once a
minute, so a read seldom writes.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import encode_fixed32
from lsmkv.engine.util.signals import deferred
from lsmkv.shards.remote.disk_page import check_page, decode_page, encode_page, page_key, page_name

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # POSIX
    msvcrt = None  # type: ignore[assignment]

_BINARY: int = getattr(os, "O_BINARY", 0)
_OWN: int = _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""No link is followed, and no FIFO waited for."""
_LARGEST = 1 << 20
"""The most bytes that are read of a page's file."""

PAGE_SIZE = 32 << 10
"""The size of a page in bytes; pages begin at its multiples.  A store takes as long for 4 KiB as
for 32 KiB, and the neighbors of a block come with it.  Smaller pages would cost more system calls
per byte, and larger pages fetch more than a point read needs."""

_log = logging.getLogger("lsmkv")
_SIZE = "SIZE"
_SIZE_BYTES = 12
_TEMPORARY = ".new-"
_TEMPORARY_AGE = 3600.0  # seconds after which the writer of a temporary file is presumed dead
_TOUCH_AGE = 60.0  # seconds between two updates of a page's time of use
_KEPT = 0.9
_NAME_LENGTH = 62
_PATIENCE = 500
_PAUSE = 0.002  # seconds; with _PATIENCE: as long as an eviction takes, and no longer
_LOCKED_BYTE = 1 << 30
_TRANSIENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class _PageFile(NamedTuple):
    used: float
    size: int
    path: str


class DiskCache:
    """Pages of immutable objects in a local directory, bounded in size.

    A cache never makes a read fail.  If a page cannot be written (a full disk, a read-only
    directory), it adds no more pages.  If a page cannot be read, it turns itself off.  The logger
    ``lsmkv`` warns of that once.  Costs on Linux: 20 us for a hit, 80 us for adding a page.
    Evicting takes 0.2 s per GiB, once for each tenth of the capacity that is added.
    """

    def __init__(self, path: str | os.PathLike[str], capacity: int = 1 << 30) -> None:
        """``path`` is made if it does not exist, accessible only to its owner.  ``capacity`` is in
        bytes.

        Processes that share a directory should use the same capacity: each enforces its own.
        """
        if capacity < 0:
            raise ValueError(f"the capacity must be at least one page, not {capacity} bytes")
        self.path = os.fsdecode(path)
        self.capacity = capacity
        self.hits = 0
        """Pages that were found."""
        self.misses = 0
        """Pages that were not found."""
        self.puts = 0
        """Pages that were written."""
        self.puts_skipped = 0
        """Pages that were not written because another writer held the lock too long."""
        self.evictions = 0
        """Pages that were removed to make room."""
        self.damaged = 0
        """Pages that were removed because of damage."""
        self._counting = threading.Lock()
        self._writing = threading.Lock()  # for the descriptor of SIZE
        self._fd = -1
        self._fd_pid = 0
        self._token = secrets.token_hex(8)
        self._serial = itertools.count()
        self._reads = True
        self._writes = True
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as error:
            self._turn_off(error)

    def get(self, identity: str, number: int) -> bytes | None:
        """The page of an object with this identity; None if the cache lacks it.

        Four system calls.
        """
        if not self._reads:
            return None
        key = page_key(identity, number)
        path = self._path_of(key)
        try:
            content = _read_used(path)
        except FileNotFoundError:
            content = None
        except OSError as error:
            if error.errno not in _TRANSIENT:
                self._turn_off(error)
            content = None
        data = None if content is None else self._decoded(content, key, path)
        with self._counting:
            if data is None:
                self.misses += 1
            else:
                self.hits += 1
        return data

    def has(self, identity: str, number: int) -> bool:
        """True if a page is in the cache, possibly damaged, by its name.  One system call."""
        return self._reads and os.path.exists(self._path_of(page_key(identity, number)))

    def put(self, identity: str, number: int, data: bytes) -> None:
        """Add a page, unless the cache is off, busy, or too small."""
        if not self._writes:
            return
        key = page_key(identity, number)
        content = encode_page(key, data)
        if len(content) > self.capacity * _KEPT:
            return
        path = self._path_of(key)
        own = f"{_TEMPORARY}{os.getpid()}-{self._token}-{next(self._serial)}"
        temporary = f"{os.path.dirname(path)}/{own}"
        try:
            _write_new(temporary, content)
            try:
                self._commit(temporary, path, len(content))
            except BaseException:
                _remove(temporary)
                raise
        except OSError as error:
            if error.errno not in _TRANSIENT:
                self._stop_writing(error)

    def check(self) -> None:
        """Assert the invariants that hold while no process writes.  Every page is sound and has its
        own name.  Their total exceeds neither the value in ``SIZE`` nor the capacity.

        Raises :class:`~lsmkv.errors.CorruptionError`, and ``OSError``.  Reads every page.
        """
        total = 0
        for page in self._page_files():
            with open(page.path, "rb") as file:
                content = file.read()
            try:
                check_page(content, page.path[-_NAME_LENGTH - 3 :].replace("/", ""))
            except CorruptionError as error:
                raise error.located(page.path) from None
            total += len(content)
        with self._writing:
            stated = _read_size(self._size_file())
        if stated is not None and total > stated:
            reason = f"SIZE states {stated} bytes, but the pages have {total}"
            raise CorruptionError(reason, f"{self.path}/{_SIZE}", 0)
        if total > self.capacity:
            raise CorruptionError(
                f"the pages have {total} bytes, more than the capacity of {self.capacity}",
                self.path,
            )

    def close(self) -> None:
        """Turn the cache off; the pages stay.  A second close has no effect."""
        self._reads = False
        self._writes = False
        with self._writing:
            self._close_size_file()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self._close_size_file()

    def _path_of(self, key: bytes) -> str:
        name = page_name(key)
        return f"{self.path}/{name[:2]}/{name[2:]}"

    def _decoded(self, content: bytes, key: bytes, path: str) -> bytes | None:
        """A page's bytes; None for a damaged page, which is removed."""
        try:
            return decode_page(content, key)
        except CorruptionError:
            with self._counting:
                self.damaged += 1
            _remove(path)
            return None

    def _turn_off(self, error: OSError) -> None:
        with self._counting:
            was_on, self._reads, self._writes = self._reads and self._writes, False, False
        if was_on:
            _log.warning("the cache in %s is turned off: %s", self.path, error)

    def _stop_writing(self, error: OSError) -> None:
        with self._counting:
            wrote, self._writes = self._writes, False
        if wrote:
            _log.warning("no more pages are added to the cache in %s: %s", self.path, error)

    # Writing

    def _commit(self, temporary: str, path: str, size: int) -> None:
        """Rename a page after making room for it, or remove it if the cache is busy."""
        if self._writing.acquire(timeout=_PATIENCE * _PAUSE):
            try:
                if self._writes and self._commit_locked(temporary, path, size):
                    self.puts += 1
                    return
            finally:
                self._writing.release()
        with self._counting:
            self.puts_skipped += 1
        _remove(temporary)

    def _commit_locked(self, temporary: str, path: str, size: int) -> bool:
        """Rename the page and return True; False if another process holds the lock for long."""
        fd = self._size_file()
        if not _lock(fd):
            return False
        try:
            total = _read_size(fd)
            if total is None or total + size > self.capacity:
                total = self._evict(size)
            _write_size(fd, total + max(0, size - _length_of(path)))
            os.replace(temporary, path)
        except PermissionError:
            if sys.platform != "win32":
                raise
            return False  # another process is reading the old page of this name
        finally:
            _unlock(fd)
        return True

    def _evict(self, size: int) -> int:
        """Measure the pages, and remove the oldest until ``size`` more bytes fit within 90%.
        Returns the bytes of the pages that are left."""
        pages = sorted(self._page_files())
        total = sum(page.size for page in pages)
        most = int(self.capacity * _KEPT) - size
        for page in pages:
            if total <= most:
                break
            if _remove(page.path):
                total -= page.size
                self.evictions += 1
        return total

    def _page_files(self) -> Iterator[_PageFile]:
        """Every page.  Removes the temporary files of dead writers."""
        before = time.time() - _TEMPORARY_AGE
        for number in range(256):
            try:
                entries = os.scandir(f"{self.path}/{number:02x}")
            except FileNotFoundError:
                continue
            with entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed by a reader that found it damaged
                    if entry.name.startswith(_TEMPORARY):
                        if status.st_mtime < before:
                            _remove(entry.path)
                    elif len(entry.name) == _NAME_LENGTH and stat.S_ISREG(status.st_mode):
                        yield _PageFile(status.st_mtime, status.st_size, entry.path)

    # SIZE: fixed64 total of the pages' bytes, fixed32 masked CRC-32C of it.  The caller holds
    # self._writing.

    def _size_file(self) -> int:
        """The descriptor of ``SIZE``.  Each process has its own: a lock belongs to an open file,
        and a forked child would share its parent's."""
        if self._fd_pid != os.getpid():
            self._close_size_file()
        if self._fd < 0:
            with deferred:
                self._fd = os.open(f"{self.path}/{_SIZE}", os.O_RDWR | os.O_CREAT | _OWN, 0o600)
                self._fd_pid = os.getpid()
        return self._fd

    def _close_size_file(self) -> None:
        with deferred:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)


def _read_used(path: str) -> bytes:
    """The content of a page's file; empty if it is not a regular one.  Updates its time of use."""
    with deferred:
        fd = os.open(path, os.O_RDONLY | _OWN)
        try:
            status = os.fstat(fd)
            content = b""
            if stat.S_ISREG(status.st_mode):
                content = os.read(fd, min(status.st_size, _LARGEST))
            if abs(time.time() - status.st_mtime) > _TOUCH_AGE:
                try:
                    os.utime(path if sys.platform == "win32" else fd)
                except OSError:
                    pass  # on a read-only file system; the page then seems older than it is
        finally:
            os.close(fd)
    return content


def _write_new(path: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    with deferred:
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
        except BaseException:
            _remove(path)
            raise
        finally:
            os.close(fd)


def _remove(path: str) -> bool:
    """Remove a file.  Returns whether it is gone.  A failure leaves it for the next eviction."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _lock(fd: int) -> bool:
    """Lock ``SIZE``; False if another writer has held it too long."""
    for _ in range(_PATIENCE):
        try:
            _try_lock(fd)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return True
    return False


def _try_lock(fd: int) -> None:
    if sys.platform == "win32":
        # Far after the content, because Windows lets no other process read or write a locked byte.
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(fd: int) -> None:
    if sys.platform == "win32":
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _read_size(fd: int) -> int | None:
    """The total in ``SIZE``; 0 if it is missing or damaged."""
    os.lseek(fd, 0, os.SEEK_SET)  # only the caller uses the descriptor
    content = os.read(fd, _SIZE_BYTES + 1)
    if len(content) != _SIZE_BYTES or content[8:] != encode_fixed32(masked_crc32c(content[:8])):
        return None
    return int.from_bytes(content[:8], "little")


def _write_size(fd: int, total: int) -> None:
    content = total.to_bytes(8, "little")
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, content + encode_fixed32(masked_crc32c(content)))


def _length_of(path: str) -> int:
    """A file's length; 0 if it does not exist."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
