"""The child's half of ``toured.py``: runs a store, and notes which functions of lsmkv it enters.

A function belongs to the operation during which it is entered, in whatever thread.  So does the
background work that an operation makes: its thread begins when the operation waits or has returned,
and the next operation waits for its end.  So each run enters the same functions.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from lsmkv.testing.interpreted import import_package

_SETTINGS = {"background": "thread", "write_buffer_size": 64 * 1024}


class Trace:
    """The functions that are entered during each operation."""

    def __init__(self, home: str, start_new_thread: Callable[..., None]) -> None:
        """``home`` is the directory of the package."""
        self._home = home + os.sep
        self._start_new_thread = start_new_thread
        self._entered: dict[str, set[CodeType]] = {}
        self._operation = ""
        self._waits = threading.Event()
        self._threads: list[threading.Event] = []

    @contextmanager
    def during(self, operation: str) -> Iterator[None]:
        """Note what is entered for this operation, also by its background work; wait for that."""
        self._operation = operation
        self._waits.clear()
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
        self._waits.set()
        while self._threads:
            self._threads.pop().wait()

    def start_thread(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Start a thread, and note what it enters."""
        ended = threading.Event()
        self._threads.append(ended)

        def run() -> None:
            self._waits.wait()
            sys.setprofile(self._note)
            try:
                function(*arguments)
            finally:
                sys.setprofile(None)
                ended.set()

        self._start_new_thread(run, ())

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self._home):
            return
        if code.co_qualname == "Ticket.acquire":
            self._waits.set()
        # Bodies of classes and modules are entered by imports, and are no functions.
        if code.co_flags & inspect.CO_OPTIMIZED and not self._imports(frame):
            self._entered.setdefault(self._operation, set()).add(code)

    @staticmethod
    def _imports(frame: FrameType | None) -> bool:
        """Whether a module is being imported."""
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def entered(self) -> dict[str, list[tuple[str, str, int]]]:
        """By operation: module, name and first line of each function.

        What is nested in a function counts as that function.
        """
        found: dict[str, list[tuple[str, str, int]]] = {}
        for operation, codes in self._entered.items():
            lines: dict[tuple[str, str], int] = {}
            for code in codes:
                path = os.path.relpath(code.co_filename, os.path.dirname(self._home[:-1]))
                key = path.replace(os.sep, "/"), code.co_qualname.partition(".<locals>")[0]
                lines[key] = min(code.co_firstlineno, lines.get(key, code.co_firstlineno))
            found[operation] = sorted((*key, line) for key, line in lines.items())
        return found


def main(path: str) -> dict[str, Any]:
    """Run a store in a new directory ``path``.

    Returns what was entered, and what is unlike the machines that the list is made for: there, a
    store takes other ways.
    """
    lsmkv = import_package()
    from lsmkv.engine.util import checksum, threads

    trace = Trace(os.path.dirname(os.path.abspath(lsmkv.__file__)), threads.system.start_new_thread)
    threads.system.start_new_thread = trace.start_thread
    mapped = run(lsmkv, path, trace)
    unlike = []
    if not mapped:
        unlike.append("the file system may not map logs")
    if checksum.CRC32C_IMPLEMENTATION not in ("google-crc32c", "crc32c"):
        unlike.append("checksums are computed in Python")
    if sys.version_info >= (3, 14):
        unlike.append("locks are taken by lsmkv/engine/util/reentrant.py")
    return {"entered": trace.entered(), "unlike": unlike}


def run(lsmkv: Any, path: str, trace: Trace) -> bool:
    """Put, get, flush, compact and reopen; returns whether the log is mapped into memory."""
    with trace.during("opening"):
        db = lsmkv.DB(path, create_if_missing=True, **_SETTINGS)
    mapped = bool(db.stats().mapped_log)
    for number in (5, 1, 9):
        with trace.during("put"):
            db.put(b"key:%02d" % number, b"value")
    get(db, trace)
    number = 1
    for operation, event in (("flush", "flushes"), ("compaction", "compactions")):
        while getattr(db.stats(), event) == 0:
            with trace.during(operation):
                db.put(b"key:%02d" % (number % 50), bytes(1024))
            number += 2
        get(db, trace)
    db.close()
    del db
    for _ in range(2):  # the second time there is nothing to recover
        with trace.during("opening"):
            db = lsmkv.DB(path, **_SETTINGS)
        get(db, trace)
        db.close()
        del db
    return mapped


def get(db: Any, trace: Trace) -> None:
    """Get a key that is there, and one that is not, twice."""
    for _ in range(2):
        with trace.during("get"):
            assert db.get(b"key:09") is not None
            assert db.get(b"key:04") is None
