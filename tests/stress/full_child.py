"""A disk that is really full, in a process of its own: ``full_child.py KIND PLACE LOG``.

KIND is ``log``, ``table`` or ``disk``; LOG is ``mapped`` or ``written``.

``log``: no file may become longer than a limit, and the log would (``RLIMIT_FSIZE``).  ``table``:
so it is, and a compaction's output would.  ``disk``: PLACE is a small file system, which is filled.
Prints what went wrong, a line each, and ``counts`` at the end.
"""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import lsmkv

_LIMIT = 256 * 1024
_VALUE = bytes(range(256)) * 4
_RESTED = 0.3  # seconds without a call
_WORKED = 0.15  # seconds of a processor, which spinning would take in that time
_MOST_WRITES = 20_000

OPTIONS: dict[str, dict[str, object]] = {
    "log": {"write_buffer_size": 16 << 20},
    "table": {"write_buffer_size": 64 << 10, "max_file_size": 2 << 20},
    "disk": {"write_buffer_size": 64 << 10, "max_file_size": 64 << 10},
}
EXPECTED = {"log": errno.EFBIG, "table": errno.EFBIG, "disk": errno.ENOSPC}


class FullDisk:
    """What happens to one store when it gets no more room."""

    def __init__(self, kind: str, place: str, log: str) -> None:
        self._kind = kind
        self._path = f"{place}/store"
        self._place = place
        self._mapped_log = log == "mapped"
        self._acknowledged = 0

    def complain(self, what: str) -> None:
        """Say what is wrong."""
        print(f"wrong {self._kind}: {what}", flush=True)

    def make_room(self) -> None:
        """The disk has space again."""
        if self._kind == "disk":
            command = ["mount", "-o", "remount,size=64m", self._place]
            subprocess.run(command, check=True)
        else:
            most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    def run(self) -> None:
        """Fill it, look what still works, make room, go on."""
        if self._kind != "disk":
            most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, most))
        db = self._opened()
        refused = self._fill(db)
        self._look(db)
        attempts = db._open_store().versions.next_file_number
        before = time.process_time()
        time.sleep(_RESTED)
        if time.process_time() - before > _WORKED:
            self.complain("it is busy though nobody asks for anything")
        failed_before = self._background_failed(db)
        refused_later = sum(self._refused(lambda: self._put(db)) for _ in range(100))
        if failed_before and refused_later < 100:
            self.complain("a write was taken though background work had failed")
        if failed_before and self._kind == "disk":
            self.complain("a full disk has ended background work for good")
        # A write that is taken may have begun a flush, and another log.
        tried = db._open_store().versions.next_file_number - attempts
        if tried > 2 and refused_later == 100:
            self.complain("it tries again and again")
        background_failed = self._background_failed(db)
        if self._kind == "table" and not background_failed:
            self.complain("the compaction did not fail")
        if background_failed:
            self.make_room()
            if not self._refused(lambda: self._put(db)):
                self.complain("a failure of background work was forgotten")
            self._refused(db.close)
        else:
            self.make_room()
            try:
                for _ in range(300):
                    self._put(db)
                db.compact_range()
            except lsmkv.IOError as error:
                self.complain(f"there is room, and {error!r} is raised")
            self._look(db)
            self._refused(db.close)
        if not db.closed:
            self.complain("it is not closed")
        with self._opened() as db:
            self._look(db)
            for _ in range(300):
                self._put(db)
            db.compact_range()
            self._look(db)
            db.check()
        print(f"counts {self._acknowledged} {refused + refused_later}", flush=True)

    def _opened(self) -> lsmkv.DB:
        return lsmkv.DB(
            self._path,
            create_if_missing=True,
            compression=None,
            background="thread",
            mapped_log=self._mapped_log,
            **OPTIONS[self._kind],  # type: ignore[arg-type]
        )

    def _background_failed(self, db: lsmkv.DB) -> bool:
        return db._background is not None and db._background.error is not None

    def _put(self, db: lsmkv.DB) -> None:
        """One write; for compactions to merge, half of them are of keys that are there."""
        number = self._acknowledged
        key = number // 2 if number % 2 and self._kind == "table" else number
        db.put(b"%08d" % key, b"%08d" % number + _VALUE)
        self._acknowledged = number + 1

    def _fill(self, db: lsmkv.DB) -> int:
        """Write until that fails.  How many writes were refused."""
        for _ in range(_MOST_WRITES):
            if self._refused(lambda: self._put(db)):
                return 1
            if self._kind == "table" and self._acknowledged % 500 == 0:
                self._refused(db.compact_range)
        self.complain(f"{_MOST_WRITES} writes, and no end of the space")
        return 0

    def _refused(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except lsmkv.IOError as error:
            if error.errno != EXPECTED[self._kind]:
                self.complain(f"it raises {error!r}")
            return True
        return False

    def _look(self, db: lsmkv.DB) -> None:
        """Everything that was acknowledged can be read, and nothing else."""
        expected: dict[bytes, bytes] = {}
        for number in range(self._acknowledged):
            key = number // 2 if number % 2 and self._kind == "table" else number
            expected[b"%08d" % key] = b"%08d" % number + _VALUE
        found = dict(db)
        if found != expected:
            missing = [key for key in expected if found.get(key) != expected[key]]
            more = [key for key in found if key not in expected]
            self.complain(f"missing or old: {missing[:3]}, more: {more[:3]}")


if __name__ == "__main__":
    FullDisk(*sys.argv[1:]).run()
