"""The process in which a student's store runs: the engine, interpreted, with the student's parts.

:mod:`lsmkv.course.store.session` starts it through :mod:`lsmkv.testing.interpreted`.  A request
that takes too long ends it: it writes where it is, and the session reads that.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import sys
from collections.abc import Callable
from typing import IO, Any

from lsmkv.testing.interpreted import import_package

_HERE = "lsmkv.course.store"

_STATE: dict[str, Any] = {}
"""The store that is open."""


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request of the session.  The answer has the failures of parts since the last
    one."""
    if not _STATE:
        _begin(request)
    faulthandler.dump_traceback_later(request["seconds"], exit=True, file=_STATE["traces"])
    try:
        answer = _STATE["store"].answer(request)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return answer  # type: ignore[no-any-return]


def _begin(request: dict[str, Any]) -> None:
    gc.enable()
    sys.dont_write_bytecode = True
    import_package()
    _STATE["traces"] = open(request["traces"], "wb")  # noqa: SIM115 - as long as the process
    note = _noting(open(request["running"], "wb", buffering=0))  # noqa: SIM115
    guard = importlib.import_module(f"{_HERE}.guard").Guard(request["folder"], note)
    opened = importlib.import_module(f"{_HERE}.opened")
    _STATE["store"] = opened.Opened(guard, request["folder"])


def _noting(file: IO[bytes]) -> Callable[[str], None]:
    """Record the running part in a file, so that it is known if the process ends."""
    descriptor = file.fileno()

    def note(part: str) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        file.write(part.encode().ljust(40))

    return note
