"""The messages between an owner and its members, over a Unix socket.

A frame is the ``fixed32`` length of its content, a byte for its kind, the ``fixed64`` number of the
request, and the content.  A connection carries one request at a time: the owner answers it before
the member sends the next one.

========  ===================  ================================================================
kind      content              sense
========  ===================  ================================================================
HELLO     JSON                 the member's protocol, the names that its options give, and a proof
                               that it can read ``SHARED`` (none of revision 1)
GREETING  JSON, and a page     the owner's epoch, the slot of this connection, and its own proof
READY     JSON, and perhaps    where the member holds the page, and what it counts in the memory
          memory               that comes with it; answered by DONE
WRITE     flag, batch          a batch as the log has it (``engine/format/batch.py``); 1: synced
BEGIN     fixed64 each         a transaction begins, and these are over; DONE has its number
END       fixed64              that transaction is over; not answered
COMMIT    :func:`commit_frame` a transaction's batch, and what it depends on
CALL      JSON                 a method of the store that its owner runs
WAIT      fixed64, fixed64     answer after a write beyond that sequence, or so many milliseconds
DONE      fixed64              carried out: the last sequence
PROGRESS  JSON                 of a call, before its answer
RESULT    JSON                 what a call has returned
FAILED    JSON                 an error: nothing was written
LEAVING   none                 the owner closes its store and has done nothing: ask the next one
HOLD      JSON                 a lease with a name; answered by RESULT, once it is granted.  From
                               revision 2 on it says who asks, and which leases that caller holds
RELEASE   none                 the lease of this connection is over; DONE: 1 if it was held
TURN      fixed64, fixed64     a turn for a group of keys; answered by DONE within so many
                               milliseconds: for how many the turn lasts, 0 if it has not come
TURN_OVER none                 that turn is over; not answered
========  ===================  ================================================================

A member that gives up waiting hangs up first.  An owner of revision 2 begins no request that it has
not read by then, if the member has waited for :data:`LEAST_PATIENCE`.

The header is checked before anything else is read: a wrong byte there ends the connection.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.errors import (
    ComparatorMismatchError,
    ConflictError,
    CorruptionError,
    DeadlockError,
    Error,
    IOError,
    NestedCallError,
    ReadOnlyError,
    errno_of,
)
from lsmkv.engine.format.key_order import Position

PROTOCOL: Final = 1
"""Processes of one protocol understand each other, whatever their releases."""
REVISION: Final = 2
"""The revision of this process beyond that: HELLO and GREETING have it.  1 of those without it.
From 2 on members hold a part of ``LOCK`` (:mod:`lsmkv.engine.env.lock`), and owners hand over."""
(HELLO, GREETING, READY, WRITE, BEGIN, END, COMMIT, CALL, WAIT, DONE, PROGRESS, RESULT, FAILED) = (
    range(1, 14)
)
LEAVING: Final = 14
HOLD: Final = 15
RELEASE: Final = 16
TURN: Final = 17
TURN_OVER: Final = 18
NOT_ANSWERED: Final = frozenset((END, TURN_OVER))
LEAST_PATIENCE: Final = 0.1
"""Seconds."""
HEADER: Final = struct.Struct("<IBQ")
NUMBER: Final = struct.Struct("<Q")
NUMBERS: Final = struct.Struct("<QQ")
_COUNT: Final = struct.Struct("<I")
MOST_ENDED: Final = 4096
LARGEST_FRAME: Final = (1 << 32) - 1
_LARGEST_REQUEST: Final = {
    HELLO: 65536,
    READY: 4096,
    BEGIN: 8 * MOST_ENDED,
    END: 8,
    CALL: 1 << 24,
    WAIT: 16,
    HOLD: 1 << 18,
    RELEASE: 0,
    TURN: 16,
    TURN_OVER: 0,
    WRITE: LARGEST_FRAME,
    COMMIT: LARGEST_FRAME,
}
"""The kinds of frames that a member sends, and the bytes that their content may have."""


def frame(kind: int, request: int, content: bytes = b"") -> bytes:
    """The bytes of a frame.  ``ValueError`` if it is too large."""
    if len(content) > LARGEST_FRAME:
        raise ValueError(f"{len(content):,} bytes are too many for one write to a shared store")
    return HEADER.pack(len(content), kind, request) + content


def json_frame(kind: int, request: int, value: dict[str, Any]) -> bytes:
    """A frame with JSON in it."""
    return frame(kind, request, json.dumps(value).encode())


_LARGEST_ANSWER: Final = {
    GREETING: 4096,
    DONE: NUMBER.size,
    PROGRESS: 65536,
    RESULT: 1 << 24,
    FAILED: 1 << 20,
    LEAVING: 0,
}
"""The kinds of frames that an owner sends, and the bytes that their content may have."""
_LONGEST_TEXT: Final = 65536
"""Characters of an error's text; one of them may take twelve bytes in JSON."""


def check_request(size: int, kind: int, greeted: bool) -> None:
    """Raise :class:`CorruptionError` unless a member may send such a frame."""
    most = _LARGEST_REQUEST.get(kind)
    if most is None:
        raise CorruptionError(f"a message of kind {kind} is invalid from a member")
    if size > most:
        raise CorruptionError(f"a message of kind {kind} has an invalid size: {size:,} bytes")
    if not greeted and kind not in (HELLO, READY):
        raise CorruptionError("a request before the greeting")


def check_answer(size: int, kind: int) -> None:
    """Raise :class:`CorruptionError` unless an owner may send such a frame."""
    most = _LARGEST_ANSWER.get(kind)
    if most is None:
        raise CorruptionError(f"a message of kind {kind} is invalid from an owner")
    if size > most or (size < most and kind == DONE):
        raise CorruptionError(f"a message of kind {kind} has an invalid size: {size:,} bytes")


def decoded(content: bytes) -> dict[str, Any]:
    """The JSON object of a frame; :class:`CorruptionError` for anything else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CorruptionError("malformed message: not a JSON object")
    return value


# Errors


def error_frame(request: int, error: BaseException) -> bytes:
    """A frame that raises the error again at the other end."""
    kind = type(error).__name__
    value: dict[str, Any] = {"kind": kind, "text": str(error)[:_LONGEST_TEXT]}
    if isinstance(error, OSError):
        text = (error.strerror or str(error))[:_LONGEST_TEXT]
        path = error.filename if isinstance(error.filename, str) else None
        value |= {"errno": errno_of(error), "text": text, "path": path}
    elif isinstance(error, CorruptionError):
        value |= {"text": error.reason, "path": error.path, "offset": error.offset}
    elif isinstance(error, ComparatorMismatchError):
        value |= {"path": error.path, "stored": error.stored, "given": error.given}
    elif isinstance(error, DeadlockError):
        value |= {"waits": error.waits}
    return json_frame(FAILED, request, value)


def error_in(content: bytes) -> Exception:
    """The error of :func:`error_frame`."""
    value = decoded(content)
    kind, text, path = (_text(value.get(name)) for name in ("kind", "text", "path"))
    number, offset = value.get("errno"), value.get("offset")
    if isinstance(number, int):
        return IOError(number, text, path or None)
    if kind == "CorruptionError":
        return CorruptionError(text, path or None, offset if isinstance(offset, int) else None)
    if kind == "ComparatorMismatchError":
        return ComparatorMismatchError(path, _text(value.get("stored")), _text(value.get("given")))
    if kind == "DeadlockError":
        waits = value.get("waits")
        pairs = [one for one in waits if _is_wait(one)] if isinstance(waits, list) else []
        return DeadlockError([(pid, key) for pid, key in pairs])
    known = _BY_TEXT.get(kind)
    return Error(f"{kind}: {text}") if known is None else known(text)


def _is_wait(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(("pid", "key"))
        and isinstance(value[0], int)
        and isinstance(value[1], str)
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_BY_TEXT: Final[dict[str, type[Exception]]] = {
    kind.__name__: kind
    for kind in (ConflictError, Error, NestedCallError, ReadOnlyError, TypeError, ValueError)
}
"""Errors that are made from their text."""


# Transactions


def commit_frame(
    request: int,
    transaction: int,
    sequence: int,
    sync: bool,
    keys: set[bytes],
    ranges: list[Bounds],
    batch: bytes,
) -> bytes:
    """The commit of a transaction: its number, its sequence, ``sync``; then keys, ranges, batch.

    With number 0 it is a write that depends on its keys, without a transaction and without ranges.

    Each list has its ``fixed32`` count first, each key its ``fixed32`` length; a bound is a byte
    (0: none, 1: before the key, 2: after it), and the key if there is one.
    """
    parts = [NUMBERS.pack(transaction, sequence), b"\1" if sync else b"\0", _COUNT.pack(len(keys))]
    for key in keys:
        parts += (_COUNT.pack(len(key)), key)
    parts.append(_COUNT.pack(len(ranges)))
    for bounds in ranges:
        for position in (bounds.lower, bounds.upper):
            if position is None:
                parts.append(b"\0")
            else:
                key = position.user_key
                parts += (b"\2" if position.after else b"\1", _COUNT.pack(len(key)), key)
    parts.append(batch)
    return frame(COMMIT, request, b"".join(parts))


class CommitRequest:
    """The content of a frame of :func:`commit_frame`."""

    def __init__(self, content: bytes) -> None:
        """Raises :class:`CorruptionError` for other bytes."""
        self._content = content
        self._at = 0
        self.transaction, self.sequence = NUMBERS.unpack(self._take(NUMBERS.size))
        self.sync = self._take(1) != b"\0"
        self.keys = {self._key() for _ in range(self._count())}
        self.ranges = [Bounds(self._position(), self._position()) for _ in range(self._count())]
        self.batch = content[self._at :]

    def _take(self, size: int) -> bytes:
        part = self._content[self._at : self._at + size]
        if len(part) < size:
            raise CorruptionError("truncated commit")
        self._at += size
        return part

    def _count(self) -> int:
        count: int = _COUNT.unpack(self._take(_COUNT.size))[0]
        if count > len(self._content):
            raise CorruptionError("truncated commit")
        return count

    def _key(self) -> bytes:
        return self._take(self._count())

    def _position(self) -> Position | None:
        kind = self._take(1)
        if kind == b"\0":
            return None
        if kind > b"\2":
            raise CorruptionError(f"a commit with an invalid kind of bound: {kind[0]}")
        return Position(self._key(), kind == b"\2")
