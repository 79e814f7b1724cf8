"""The process that owns a store for others: ``owner="process"``.

A member that finds no owner starts it (``starting.py``).  It opens the store with that member's
options, serves the members, and ends with the last of them.  It may be killed at any moment: the
next member that needs an owner starts another one.
"""

from __future__ import annotations

import pickle
import time
import warnings
from typing import Any, Final

from mypy_extensions import mypyc_attr

from lsmkv.engine.errors import Error
from lsmkv.shared.shared_db import SharedDB
from lsmkv.shared.starting import FAILED, OWNED, OWNS
from lsmkv.shared.system import detached

_GRACE: Final = 2.0
"""Seconds without any member after which it ends."""
_LOOK_EVERY: Final = 0.5


@mypyc_attr(native_class=False)
class OnlyOwner(SharedDB):
    """The store, in a process that does nothing but own it."""

    _only_owns = True


def main() -> None:
    """Own the store that the request names, as long as a process needs it."""
    db = _open(detached.request())
    if db is None:
        return
    needed = time.monotonic()
    while not detached.is_ended(_LOOK_EVERY) and not db.closed:
        now = time.monotonic()
        if db.members:
            needed = now
        elif now - needed > _GRACE:
            break
    db.close()


def _open(request: bytes) -> SharedDB | None:
    """Open the store, and answer the starter; None unless this process owns it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            path, arguments = _decoded(request)
            db = OnlyOwner(path, **arguments)
        except Exception as error:
            detached.answer(_encoded(FAILED, error, []))
            return None
    warned = [one.message for one in caught]
    if db.role == "owner":
        detached.answer(_encoded(OWNS, None, warned))
        return db
    db.close()
    detached.answer(_encoded(OWNED, None, []))
    return None


def _decoded(request: bytes) -> Any:
    try:
        return pickle.loads(request)
    except Exception as error:
        raise ValueError(
            f"owner='process': an option cannot be loaded in another process: {error}"
        ) from error


def _encoded(outcome: str, error: BaseException | None, warned: list[Any]) -> bytes:
    try:
        return pickle.dumps((outcome, error, warned))
    except Exception:
        return pickle.dumps((outcome, Error(f"{type(error).__name__}: {error}"), []))
