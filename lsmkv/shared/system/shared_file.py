"""The file ``SHARED`` of a shared store: its owner, its members, and the versions they lease.

Its content is small and is written by the owner alone, by the holder of ``LOCK``::

    0     8 bytes   MAGIC
    8     fixed64   the epoch: the time of one owner
    16    fixed64   a random number: that of the epoch's page, and part of the socket's name
    24    fixed64   the owner's process id
    32    fixed64   1 once the owner answers; 0 while it recovers the store
    40    fixed64   the owner's network namespace, without which its socket is out of reach
    48    fixed64   the file's device, and
    56    fixed64   its number there: a copy of it has others, and is not valid
    64    64 times  fixed64 epoch, fixed64 the last sequence that its owner has recovered
    1088  2048 x    fixed32 process id, fixed32 descriptor: where a member holds the page
    17472 16 bytes  what a member of this epoch says to its owner, and
    17488 16 bytes  what the owner answers: random, to prove that both can read this file

A member leases a version by a shared lock on one byte, far beyond the content: the byte's offset
says which version.  The kernel ends the lock with the process.  It is a lock of an open file
description (OFD), as that on ``LOCK`` is: it belongs to one descriptor and not to the process.

In the same way a process that reads on in a log leases it, and with it all later ones: the owner
keeps each log if it, or an older one, is leased.  And a member that holds a lease with a name has a
lock on a byte that stands for a number of that name and a moment, at which the lease ends: so the
next owner knows that it is held, and until when.  A process that stores something in several
writes locks a byte for its number.  One more byte is locked by the member that starts a process to
own the store.  A member that may own the store has a lock on a byte that stands for its release;
and one to which the owner hands the store over has another one until it owns the store.

A process that can open the file can lock it, and so keep tables from being removed: its mode is
0600, and an older file gets that mode.  A file with several names, or other content, is refused.

A power cut ends all processes, and with them everything that the content is good for: it is never
synced.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from lsmkv.engine.env import forks
from lsmkv.engine.env.local_file import refuse_links
from lsmkv.engine.env.lock import FIRST_LEASE, OFD_GETLK, OFD_SETLK, pack_flock, unpack_flock
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.signals import deferred
from lsmkv.shared.system.shared_page import SLOTS, fcntl, linux

_MAGIC: Final = b"lsmkvsh1"
_HEAD: Final = struct.Struct("<8sQQQQQQQ")
_EPOCH: Final = struct.Struct("<QQ")
_EPOCHS_AT: Final = 64
_EPOCHS: Final = 64
_MEMBER: Final = struct.Struct("<II")
_MEMBERS_AT: Final = _EPOCHS_AT + _EPOCHS * _EPOCH.size
_PROOF: Final = struct.Struct("<16s16s")
_PROOFS_AT: Final = _MEMBERS_AT + SLOTS * _MEMBER.size
_SIZE: Final = _PROOFS_AT + _PROOF.size
_FIRST_OVER: Final = 1 << 55
"""The offset of epoch 0 of those that are over."""
_FIRST_CANDIDATE: Final = 1 << 56
"""The offset of the candidates of rank 0."""
_FIRST_CLAIM: Final = 1 << 57
"""The offset of the claims of rank 0."""
RANKS: Final = 1 << 30
"""Ranks of releases are numbers below this."""
_FIRST_NAME: Final = 1 << 60
"""The offset of moment 0 of name 0."""
_FIRST_NUMBER: Final = 1 << 59
"""The offset of number 0 of those that a program gives to what is in the store."""
_NUMBERS: Final = 1 << 58
_STARTING: Final = _FIRST_NAME - 1
"""The offset of the byte that is locked by a process which starts an owner."""
NAMES: Final = 1 << 29
"""Names have numbers below this."""
MOMENTS: Final = 1 << 31
"""Moments are numbers below this."""
FIRST_LOG: Final = FIRST_LEASE
"""The offset of log 0.  Every log has a byte after it, before those of the versions."""
_FIRST_VERSION: Final = 1 << 62
"""The offset of version 0.  Every version of every epoch has a byte after it."""
VERSIONS_OF_EPOCH: Final = 1 << 32
"""The versions of epoch ``e`` are numbered from ``e * VERSIONS_OF_EPOCH`` on."""
_LAST_EPOCH: Final = (1 << 29) - 1
_NAMES_HOLDERS: Final[bool] = sys.platform.startswith("linux")
"""True if the system reports which process has which lock, in ``/proc``."""
_WORD: Final = (1 << 64) - 1

Range = tuple[int, int]
"""The offsets of a first and of a last byte."""


def network_namespace() -> int:
    """The number of this process's network namespace; 0 if it is unknown."""
    try:
        return os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return 0


class Proofs(NamedTuple):
    """The proofs that the two ends of a connection send to each other, in one epoch."""

    of_member: str
    of_owner: str


class Head:
    """The beginning of the file."""

    def __init__(self, epoch: int, token: int, pid: int, ready: bool, network: int) -> None:
        self.epoch = epoch
        self.token = token
        self.pid = pid
        self.ready = ready
        self.network = network

    @property
    def is_elsewhere(self) -> bool:
        """True if the owner's socket is in a network namespace that is not this process's."""
        here = network_namespace()
        return 0 not in (here, self.network) and self.network != here


def open_shared(open_file: Callable[[], int], path: str) -> SharedFile:
    """The file of the descriptor that ``open_file`` returns.

    ``OSError`` if it has several names: it may be another store's, or not one of a store.
    """
    with deferred, forks.changing:
        file = SharedFile(open_file(), path)
        try:
            refuse_links(os.fstat(file._fd), path)
        except BaseException:
            file.close()
            raise
        return file


class SharedFile:
    """The open file, by one descriptor of this process.  Any thread may call any method."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path
        self._held: set[int] = set()  # the bytes that are locked through it
        forks.note(self)

    def close(self) -> None:
        """Close it; all leases that were taken through it end."""
        with deferred, forks.changing:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    @property
    def closed(self) -> bool:
        """True if it was closed."""
        return self._fd < 0

    def close_in_child(self) -> None:
        """In a forked child, whose descriptor would keep the leases of the parent alive."""
        self.close()

    def inode(self) -> int:
        """Its number in the file system."""
        return self._identity()[1]

    # Content

    def read_head(self) -> Head | None:
        """The head; None if there is none yet, or this file is a copy, which describes the
        processes that share another store."""
        content = self._read(_HEAD.size, 0)
        if len(content) < _HEAD.size:
            return None
        magic, epoch, token, pid, ready, network, device, number = _HEAD.unpack(content)
        if magic != _MAGIC or epoch > _LAST_EPOCH:
            return None
        if number != 0 and (device, number) != self._identity():  # 0: of an older release
            return None
        return Head(epoch, token, pid, ready == 1, network)

    def begin_epoch(self, reserve: Callable[[int, int], None] | None = None) -> Head:
        """Begin the next epoch, in the name of this process.  Caller holds ``LOCK``.

        ``reserve`` gets the epoch's random number and the epoch before any other process can read
        them; if it raises ``OSError`` with ``EADDRINUSE``, another number is drawn.  Raises
        :class:`CorruptionError`, and changes nothing, if the file is not one of a shared store.
        """
        self._refuse_foreign()
        before = self.read_head()
        epoch = 1 if before is None else before.epoch + 1
        if epoch > _LAST_EPOCH:
            raise OSError(errno.EOVERFLOW, "epoch counter exhausted", self.path)
        token = _drawn(epoch, reserve)
        if before is None:
            self._set_size(0)
        self._set_size(_SIZE)
        head = Head(epoch, token, os.getpid(), False, network_namespace())
        self._write_head(head)
        try:
            self._write(os.urandom(_PROOF.size), _PROOFS_AT)  # before any process looks
        except OSError:
            pass  # on a full disk: the owner asks the system who has the file open
        return head

    def proofs(self) -> Proofs | None:
        """Return the proofs of this epoch; None if its owner has written none.  An owner of an
        older release cuts the file."""
        content = self._read(_PROOF.size, _PROOFS_AT)
        if len(content) < _PROOF.size or not any(content):
            return None
        return Proofs(*(proof.hex() for proof in _PROOF.unpack(content)))

    def _refuse_foreign(self) -> None:
        """Raise :class:`CorruptionError` if the file is not one of a shared store.  A power cut may
        leave the magic, a part of it, or zeros."""
        magic = self._read(len(_MAGIC), 0)
        if not _MAGIC.startswith(magic) and magic.strip(b"\0"):
            raise CorruptionError("not the file of a shared store: move it away", self.path)

    def announce(self, head: Head, recovered: int) -> None:
        """Note what was recovered, and that the owner answers from now on."""
        at = _EPOCHS_AT + head.epoch % _EPOCHS * _EPOCH.size
        self._write(_EPOCH.pack(head.epoch, recovered), at)
        head.ready = True
        self._write_head(head)

    def recovered_after(self, epoch: int) -> int | None:
        """Return the last sequence that the owner after an epoch recovered; None if unknown.

        An epoch that ended before its owner answered does not count: nothing was written in it.
        """
        newest = self.read_head()
        if newest is None or newest.epoch - epoch >= _EPOCHS:
            return None
        records = self._records(_EPOCH, _EPOCHS, _EPOCHS_AT)
        later = [(noted, last) for noted, last in records if noted > epoch]
        return min(later)[1] if later else None

    def note_member(self, slot: int, pid: int, fd: int) -> None:
        """Note where a member holds the page; zeros once it has gone."""
        self._write(_MEMBER.pack(pid, fd), _MEMBERS_AT + slot * _MEMBER.size)

    def members(self) -> list[tuple[int, int]]:
        """The noted process ids and descriptors."""
        return [(pid, fd) for pid, fd in self._records(_MEMBER, SLOTS, _MEMBERS_AT) if pid > 0]

    def _records(self, record: struct.Struct, count: int, offset: int) -> Iterator[Any]:
        """The numbers of each record; a power cut may have left fewer of them."""
        content = self._read(count * record.size, offset)
        return record.iter_unpack(content[: len(content) // record.size * record.size])

    def _write_head(self, head: Head) -> None:
        ready = 1 if head.ready else 0
        self._write(
            _HEAD.pack(
                _MAGIC, head.epoch, head.token, head.pid, ready, head.network, *self._identity()
            ),
            0,
        )

    # Leases

    def lease(self, version: int) -> None:
        """Lease a version, until :meth:`release` or the end of the descriptor.

        The owner may not have noticed: the version is sure to be leased if it is still the newest
        one afterwards.
        """
        self._lock(_FIRST_VERSION + version)

    def release(self, version: int) -> None:
        """End the lease of a version, unless another thread has closed the file, which ends it."""
        self._unlock(_FIRST_VERSION + version)

    def is_leased(self, first: int, last: int) -> bool:
        """Return True if one of the versions from ``first`` to ``last`` is leased, through any
        descriptor except this one."""
        return self._is_locked(_FIRST_VERSION + first, last - first + 1)

    def is_leased_in_epoch(self, epoch: int) -> bool:
        """Return True if a version of that epoch is leased."""
        first = epoch * VERSIONS_OF_EPOCH
        return self.is_leased(first, first + VERSIONS_OF_EPOCH - 1)

    def is_leased_at_all(self) -> bool:
        """Return True if any version or log is leased, through any descriptor except this one."""
        versions = (_LAST_EPOCH + 1) * VERSIONS_OF_EPOCH
        return self._is_locked(FIRST_LOG, _FIRST_VERSION - FIRST_LOG + versions)

    def lease_log(self, number: int) -> None:
        """Lease a log and all later ones."""
        self._lock(FIRST_LOG + number)

    def release_log(self, number: int) -> None:
        """End the lease of a log, unless another thread has closed the file, which ends it."""
        self._unlock(FIRST_LOG + number)

    def is_log_leased(self, number: int) -> bool:
        """True if that log or an older one is leased, through any descriptor except this one."""
        return self._is_locked(FIRST_LOG, number + 1)

    def lease_name(self, name: int, moment: int) -> None:
        """Note that this process holds a name until a moment, by their numbers."""
        self._lock(_FIRST_NAME + name * MOMENTS + moment)

    def release_name(self, name: int, moment: int) -> None:
        """Release the name, unless another thread has closed the file, which releases it."""
        self._unlock(_FIRST_NAME + name * MOMENTS + moment)

    def is_name_leased(self, name: int, since: int) -> bool:
        """Return True if a name is held until ``since`` or later, through any descriptor except
        this one."""
        return self._is_locked(_FIRST_NAME + name * MOMENTS + since, MOMENTS - since)

    def is_any_name_leased(self) -> bool:
        """Return True if any name is held, through any descriptor except this one."""
        return self._is_locked(_FIRST_NAME, NAMES * MOMENTS)

    def lease_number(self, number: int) -> None:
        """Note that this process works at the object with this number, for example a large
        value."""
        self._lock(_FIRST_NUMBER + number % _NUMBERS)

    def release_number(self, number: int) -> None:
        """Release the number, unless another thread has closed the file, which releases it."""
        self._unlock(_FIRST_NUMBER + number % _NUMBERS)

    def is_number_leased(self, number: int) -> bool:
        """Return True if a number is leased, through any descriptor except this one."""
        return self._is_locked(_FIRST_NUMBER + number % _NUMBERS, 1)

    def claim_start(self) -> bool:
        """Claim to be the one that starts an owner; False if another process does.  The claim ends
        with :meth:`end_start` or with this file.  ``OSError``."""
        try:
            self._change_lock(fcntl.F_WRLCK, _STARTING)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def end_start(self) -> None:
        """End the claim, also in children that were forked meanwhile without this module's
        knowledge."""
        self._unlock(_STARTING)

    def note_over(self, epoch: int) -> None:
        """Note that this process has ended the page of an epoch."""
        self._lock(_FIRST_OVER + epoch)

    def forget_over(self, epoch: int) -> None:
        """Remove the note, unless another thread has closed the file, which removes it."""
        self._unlock(_FIRST_OVER + epoch)

    def is_over(self, epoch: int) -> bool:
        """Return True if a process has ended the page of an epoch, through any descriptor except
        this one."""
        return self._is_locked(_FIRST_OVER + epoch, 1)

    def be_candidate(self, rank: int) -> None:
        """Note that this process may own the store, by the rank of its release."""
        self._lock(_FIRST_CANDIDATE + rank)

    def has_candidate(self, rank: int) -> bool:
        """Return True if a process of that rank or a higher one may own the store, by any
        descriptor except this one."""
        return self._is_locked(_FIRST_CANDIDATE + rank, RANKS - rank)

    def claim(self, rank: int) -> None:
        """Claim the store, which its owner hands over, for a process of a release of that rank."""
        self._lock(_FIRST_CLAIM + rank)

    def end_claim(self, rank: int) -> None:
        """End the claim, unless another thread has closed the file, which ends it."""
        self._unlock(_FIRST_CLAIM + rank)

    def is_claimed(self, rank: int) -> bool:
        """Return True if the store is claimed for that rank or a higher one, through any descriptor
        except this one."""
        return self._is_locked(_FIRST_CLAIM + rank, RANKS - rank)

    def leased(self) -> list[Range]:
        """All leases of versions and logs through any descriptor but this one, as ranges of bytes,
        in order."""
        found: list[Range] = []
        open_ranges = [(FIRST_LOG, _FIRST_VERSION + (_LAST_EPOCH + 1) * VERSIONS_OF_EPOCH - 1)]
        while open_ranges:
            first, last = open_ranges.pop()
            if first > last:
                continue
            held = self._first_locked(first, last - first + 1)
            if held is not None:  # one of them, not the first one
                start, end = max(held[0], first), min(held[1], last)
                found.append((start, end))
                open_ranges += [(first, start - 1), (end + 1, last)]
        return sorted(found)

    def held_by(self, pid: int) -> list[Range]:
        """The leases of versions and logs of a process, as ranges of bytes; [] if it has none, or
        has ended.

        Also for other processes than this one where the system does not report it (macOS).
        """
        found: list[Range] = []
        if not _NAMES_HOLDERS:
            ours = os.fstat(self._fd)
            if pid == os.getpid():
                held = {byte for one in forks.noted() for byte in _held_through(one, ours)}
                found += [(byte, byte) for byte in held if byte >= FIRST_LOG]
            return sorted(found)
        for name in self._descriptors_of(pid):
            try:
                with open(f"/proc/{pid}/fdinfo/{name}", "rb") as file:
                    content = file.read()
            except OSError:
                continue  # it has just been closed
            for line in content.splitlines():
                if line.startswith(b"lock:"):
                    start, end = line.split()[-2:]
                    if end != b"EOF" and int(start) >= FIRST_LOG:
                        found.append((int(start), int(end)))
        return sorted(found)

    def is_open_in(self, pid: int) -> bool:
        """True if a process has this file open; False where the system does not report it."""
        return bool(self._descriptors_of(pid))

    def _descriptors_of(self, pid: int) -> list[str]:
        """The descriptors of this file that a process has, as the system says it."""
        found: list[str] = []
        ours = os.fstat(self._fd)
        place = f"/proc/{pid}/fd"
        try:
            for name in os.listdir(place):
                try:
                    if os.path.samestat(os.stat(f"{place}/{name}"), ours):
                        found.append(name)
                except OSError:
                    pass  # it has just been closed
        except OSError:
            pass
        return found

    def leases_in(self, ranges: list[Range]) -> tuple[list[int], int | None]:
        """The versions in such ranges, and the oldest log; None if there is no log."""
        versions: list[int] = []
        log: int | None = None
        for first, last in ranges:
            if first < _FIRST_VERSION:
                log = first - FIRST_LOG if log is None else min(log, first - FIRST_LOG)
            else:
                versions += range(first - _FIRST_VERSION, last - _FIRST_VERSION + 1)
        return versions, log

    def _is_locked(self, start: int, length: int) -> bool:
        return self._first_locked(start, length) is not None

    # Overridden by a simulated file

    def _identity(self) -> tuple[int, int]:
        """The numbers of its device, and of the file there."""
        status = os.fstat(self._fd)
        return status.st_dev & _WORD, status.st_ino & _WORD

    def _read(self, size: int, offset: int) -> bytes:
        content: bytes = linux.pread(self._fd, size, offset)
        return content

    def _write(self, content: bytes, offset: int) -> None:
        linux.pwrite(self._fd, content, offset)

    def _set_size(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def _lock(self, offset: int) -> None:
        """Take a shared lock on a byte."""
        self._change_lock(fcntl.F_RDLCK, offset)
        self._held.add(offset)

    def _unlock(self, offset: int) -> None:
        """End it."""
        self._held.discard(offset)
        try:
            self._change_lock(fcntl.F_UNLCK, offset)
        except (OSError, ValueError):
            if self._fd >= 0:
                raise

    def _change_lock(self, kind: int, offset: int) -> None:
        fcntl.fcntl(self._fd, OFD_SETLK, pack_flock(kind, offset, 1))

    def _first_locked(self, start: int, length: int) -> Range | None:
        """A range in which another descriptor has a lock, of those that overlap this one."""
        asked = pack_flock(fcntl.F_WRLCK, start, length)
        kind, _, first, held = unpack_flock(fcntl.fcntl(self._fd, OFD_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else (first, first + held - 1)


def _drawn(epoch: int, reserve: Callable[[int, int], None] | None) -> int:
    """A random number that no other store uses for that epoch."""
    while True:
        token = int.from_bytes(os.urandom(8), "little") >> 1
        try:
            if reserve is not None:
                reserve(token, epoch)
            return token
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def _held_through(one: Any, file: os.stat_result) -> list[int]:
    """The bytes that are locked through something with a descriptor of that file."""
    try:
        if isinstance(one, SharedFile) and os.path.samestat(os.fstat(one._fd), file):
            return list(one._held)
    except OSError:
        pass  # it has just been closed
    return []


def in_ranges(one: Range, ranges: list[Range]) -> bool:
    """Return True if a range lies in one of others."""
    return any(first <= one[0] and one[1] <= last for first, last in ranges)
