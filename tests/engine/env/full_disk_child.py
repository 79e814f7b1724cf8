"""Fills a real file system: ``full_disk_child.py CASE PLACE DEVICE``, where PLACE is mounted.

Run in a mount namespace of its own, since it mounts DEVICE again (``-``: there is none, and what
was written is read without that).  Prints one line of JSON: what was seen.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lsmkv
from lsmkv import DB
from lsmkv.engine.env.local import LocalEnv

KIB = 1024
MIB = 1024 * KIB
ROOM = 3 * MIB
"""That a larger file system is left with before anything is tried."""
_PIECES = (MIB, 64 * KIB, 4 * KIB, 512, 1)
_LOG = {"write_buffer_size": 64 * MIB}  # the log alone grows
_TABLES = {"write_buffer_size": 64 * KIB, "max_file_size": 64 * KIB}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def unless_full(kind: type[OSError] = OSError) -> Iterator[None]:
    """Go on behind the block if it raises an error of this kind because the disk is full."""
    try:
        yield
    except kind as error:
        if error.errno not in _FULL:
            raise


class Place:
    """A mounted file system, or a directory of one."""

    def __init__(self, path: str, device: str) -> None:
        self.path = path
        self.store = f"{path}/store"
        self._device = device
        self._ballast = f"{path}/ballast"

    def leave(self, room: int) -> None:
        """Take all but so many bytes of what is free."""
        status = os.statvfs(self.path)
        taken = status.f_bavail * status.f_frsize - room
        if taken > 0:
            fd = os.open(self._ballast, os.O_WRONLY | os.O_CREAT)
            os.posix_fallocate(fd, 0, taken)
            os.close(fd)

    def fill(self) -> None:
        """Take every byte that is free, with another file."""
        # There may not even be room for a name.
        with unless_full(), open(f"{self.path}/filler", "ab", buffering=0) as file:
            for piece in _PIECES:
                with unless_full():
                    while True:
                        file.write(os.urandom(piece))
            os.fsync(file.fileno())

    def make_room(self) -> None:
        """Give back what was taken."""
        for name in (self._ballast, f"{self.path}/filler"):
            if os.path.exists(name):
                os.remove(name)
        if self._device == "-":
            subprocess.run(["mount", "-o", "remount,size=32m", self.path], check=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def mount_again(self) -> None:
        """What is read after that is what the device has."""
        if self._device != "-":
            subprocess.run(["umount", self.path], check=True)
            subprocess.run(["mount", "-o", "loop", self._device, self.path], check=True)


def value(number: int) -> bytes:
    """Of 0 to 4 KiB, which no file system can make smaller."""
    return (b"%08d" % number + bytes(range(256)) * 2)[: number * 37 % 521] * 8


class Writer:
    """Puts numbered keys, and knows which were acknowledged."""

    def __init__(self, db: DB) -> None:
        self.db = db
        self.written: set[int] = set()
        self.refused = 0
        self._next = 0

    def put(self, sync: bool = False) -> bool:
        """Whether the next key was taken.  Every error must be a full disk's."""
        number, self._next = self._next, self._next + 1
        with unless_full(lsmkv.IOError):
            self.db.put(b"%08d" % number, value(number), sync=sync)
            self.written.add(number)
            return True
        self.refused += 1
        return False

    def check(self, db: DB) -> None:
        """All of what was acknowledged is there, and nothing else."""
        found = dict(db)
        expected = {b"%08d" % number: value(number) for number in self.written}
        wrong = [key for key in expected if found.get(key) != expected[key]]
        more = [key for key in found if key not in expected]
        assert not wrong, f"missing or wrong: {wrong[:5]}"
        assert not more, f"refused, and there: {more[:5]}"


def is_mapped(store: str) -> bool:
    """Whether this process has a log of the store mapped."""
    with open("/proc/self/maps") as maps:
        return any(store in line and line.rstrip().endswith(".log") for line in maps)


def reserved_room_can_be_written(place: Place) -> dict[str, Any]:
    """Not a byte is free, and each byte that a log has reserved takes what is stored into it."""
    with LocalEnv().open_directory(place.store, create=True) as directory:
        log = directory.create_log("000001.log")
        content = bytearray()
        while len(content) < MIB:  # moves the window several times
            more = os.urandom(50_001)
            log.append(more)
            content += more
        reserved = os.stat(f"{place.store}/000001.log").st_size
        place.fill()
        refused = ""
        while not refused:
            more = os.urandom(997)
            try:
                log.append(more)
            except OSError as error:
                refused = errno.errorcode[error.errno or 0]
            else:
                content += more
        rest = reserved - len(content)
        if directory.maps_logs:
            assert 0 <= rest < 997
            log.append(more[:rest])
            content += more[:rest]
            log.sync()
        else:
            log.truncate(len(content))  # a write may have done a part of its work
        assert log.size() == len(content)
        seen = {"mapped": directory.maps_logs, "refused": refused}
        log.close()
    place.mount_again()
    with open(f"{place.store}/000001.log", "rb") as file:
        assert file.read() == content
    return seen


def fills_while_writing(
    place: Place, options: dict[str, Any], background: str = "thread"
) -> dict[str, Any]:
    """A store that meets a full disk goes on when there is room."""
    place.leave(ROOM)
    db = DB(place.store, create_if_missing=True, compression=None, background=background, **options)
    writer = Writer(db)
    assert writer.put()
    mapped = is_mapped(place.store)
    while writer.put():
        assert len(writer.written) < 100_000
    place.fill()
    for number in range(300):
        writer.put(sync=number % 50 == 0)
    writer.check(db)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.15, "it is busy though no call is made"
    place.make_room()
    failed = db._background is not None and db._background.error is not None
    if failed:  # by the MANIFEST, which is final until the store is opened again
        assert db._background is not None
        assert "MANIFEST" in str(db._background.error), db._background.error
        with unless_full(lsmkv.IOError):
            db.close()
    else:
        for _ in range(300):
            assert writer.put()
        db.sync()
        writer.check(db)
        db.close()
    for _ in range(2):
        with DB(place.store, paranoid_checks=True, background="thread", **options) as db:
            writer.db = db
            writer.check(db)
            for _ in range(300):
                assert writer.put(), "there is room"
            writer.check(db)
            db.compact_range()
            assert db.verify() == []
        place.mount_again()
    return {
        "mapped": mapped,
        "written": len(writer.written),
        "refused": writer.refused,
        "reopened": failed,
    }


def killed_on_a_full_disk(place: Place) -> dict[str, Any]:
    """All that the process acknowledged is there, once there is room."""
    place.leave(ROOM)
    reader, tell = os.pipe()
    child = os.fork()
    if child == 0:
        db = DB(place.store, create_if_missing=True, compression=None, **_LOG)
        writer = Writer(db)
        while writer.put():
            pass
        place.fill()
        for _ in range(300):
            writer.put()
        os.write(tell, b"%d\n" % is_mapped(place.store))
        os.write(tell, json.dumps(sorted(writer.written)).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(tell)
    with open(reader, "rb") as pipe:
        mapped = pipe.readline() == b"1\n"
        written = json.loads(pipe.read())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with DB(place.store, read_only=True) as view:
        writer = Writer(view)
        writer.written = set(written)
        writer.check(view)
    with unless_full(lsmkv.IOError):
        DB(place.store).close()  # recovery needs room for a table
    place.make_room()
    place.mount_again()
    with DB(place.store, paranoid_checks=True) as db:
        writer.check(db)
    return {"mapped": mapped, "written": len(written)}


def limited_file_size(place: Place) -> dict[str, Any]:
    """No file may become longer than a limit: ``EFBIG``."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200 * KIB, resource.RLIM_INFINITY))
    db = DB(place.store, create_if_missing=True, compression=None, **_LOG)
    writer = Writer(db)
    assert writer.put()
    mapped = is_mapped(place.store)
    while writer.put():
        assert len(writer.written) < 10_000
    for _ in range(50):
        writer.put()
    writer.check(db)
    place.make_room()
    for _ in range(300):
        assert writer.put()
    db.close()
    with DB(place.store, paranoid_checks=True) as db:
        writer.check(db)
    return {"mapped": mapped, "written": len(writer.written), "refused": writer.refused}


CASES: dict[str, Callable[[Place], dict[str, Any]]] = {
    "reserved": reserved_room_can_be_written,
    "log": lambda place: fills_while_writing(place, _LOG),
    "written log": lambda place: fills_while_writing(place, {**_LOG, "mapped_log": False}),
    "tables": lambda place: fills_while_writing(place, _TABLES),
    "tables of workers": lambda place: fills_while_writing(place, _TABLES, "process"),
    "killed": killed_on_a_full_disk,
    "limit": limited_file_size,
}

if __name__ == "__main__":
    case, path, device = sys.argv[1:]
    sys.stdout.write(json.dumps(CASES[case](Place(path, device))))
