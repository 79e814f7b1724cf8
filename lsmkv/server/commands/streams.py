"""Streams: adding, reading and removing entries."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.server.encoding import STREAM
from lsmkv.server.numbers import NOT_AN_INTEGER, to_int, to_int_from
from lsmkv.server.options import Options
from lsmkv.server.registry import command
from lsmkv.server.resp import NULL_ARRAY, OK, CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.stream import Stream
from lsmkv.server.stream_ids import (
    LAST_ID,
    MAX_U64,
    NO_ID,
    id_text,
    parse_id,
    parse_new_id,
    parse_range,
    to_id,
)

_NODES_AT_ONCE = 100
"""The most nodes that ``~`` removes if no LIMIT is given."""
_MOST_AT_ONCE = 1_000_000


def find_stream(session: Session, key: bytes) -> Stream | None:
    """The stream of a key, or None."""
    entry = session.space.find(session.database, key, STREAM)
    return None if entry is None else Stream(session.space.records, entry)


def save(session: Session, key: bytes, stream: Stream, new: bool = False) -> None:
    """Save a stream whose entries have changed."""
    session.space.save(session.database, key, stream.store(), new)


# Adding and trimming


class _Trim(NamedTuple):
    """MAXLEN or MINID."""

    most: int
    before: bytes | None
    """MINID."""
    approximate: bool
    limit: int
    """-1 if none is given."""

    def apply(self, session: Session, stream: Stream) -> int:
        node, limit = 1, self.limit
        if self.approximate:
            entries = session.service.settings.stream_node
            node = entries or _MOST_AT_ONCE
            if limit < 0:
                limit = min(_NODES_AT_ONCE * (entries or _NODES_AT_ONCE), _MOST_AT_ONCE)
        if self.before is None:
            return stream.trim_to_size(self.most, node, max(0, limit))
        return stream.trim_before(self.before, node, max(0, limit))


class _Options(NamedTuple):
    """Options of XADD and XTRIM before an id."""

    trim: _Trim | None
    only_if_there: bool
    end: int
    """The index of the id, or the number of arguments."""


_BOTH = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"


def _options(args: list[bytes], adding: bool) -> _Options:
    """Read options up to an id.  The arguments are checked from left to right."""
    most, before = -1, None
    approximate = only_if_there = False
    limit, at, last = -1, 2, len(args) - 1
    while at <= last:
        word = args[at].upper()
        if adding and word == b"*":
            break
        if word in (b"MAXLEN", b"MINID") and at < last:
            if most >= 0 or before is not None:
                raise CommandError(_BOTH)
            approximate = False
            if at + 1 < last and args[at + 1] in (b"~", b"="):
                approximate = args[at + 1] == b"~"
                at += 1
            at += 1
            if word == b"MINID":
                before = parse_id(args[at])
            else:
                error = "ERR The MAXLEN argument must be >= 0."
                most = to_int_from(0, args[at], error, NOT_AN_INTEGER)
        elif word == b"LIMIT" and at < last:
            at += 1
            error = "ERR The LIMIT argument must be >= 0."
            limit = to_int_from(0, args[at], error, NOT_AN_INTEGER)
        elif adding and word == b"NOMKSTREAM":
            only_if_there = True
        elif adding:
            parse_new_id(args[at])
            break
        else:
            raise syntax_error()
        at += 1
    trims = most >= 0 or before is not None
    if limit > 0 and not trims:
        raise CommandError(
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
        )
    if not adding and not trims:
        raise CommandError("ERR syntax error, XTRIM must be called with a trimming strategy")
    if limit >= 0 and not approximate:
        raise CommandError("ERR syntax error, LIMIT cannot be used without the special ~ option")
    return _Options(_Trim(most, before, approximate, limit) if trims else None, only_if_there, at)


@command("XADD", -5, "write fast", group="stream")
def xadd(session: Session, args: list[bytes]) -> Reply:
    """Add an entry to a stream.  Returns its id.  O(1)."""
    trim, only_if_there, at = None, False, 2
    if args[2] != b"*":
        trim, only_if_there, at = _options(args, adding=True)
    words = args[at + 1 :]
    if not words or len(words) % 2:
        raise CommandError("ERR wrong number of arguments for 'xadd' command")
    milliseconds, sequence = -1, None
    if args[at] != b"*":
        milliseconds, sequence = parse_new_id(args[at])
        if milliseconds == 0 and sequence == 0:
            raise CommandError("ERR The ID specified in XADD must be greater than 0-0")
    if only_if_there:
        entry, new = session.space.find(session.database, args[1], STREAM), False
        if entry is None:
            return None
    else:
        entry, new = session.space.find_or_make(session.database, args[1], STREAM)
    stream = Stream(session.space.records, entry)
    id_ = _next_id(stream, milliseconds, sequence, session.space.now())
    stream.add(id_, words)
    trimmed = 0 if trim is None else trim.apply(session, stream)
    save(session, args[1], stream, new)
    session.announce("t", "xadd", args[1])
    if trimmed:
        session.announce("t", "xtrim", args[1])
    return id_text(id_)


def _next_id(stream: Stream, milliseconds: int, sequence: int | None, now: int) -> bytes:
    """The id of a new entry; -1 milliseconds for the time, no sequence for the next one."""
    last = stream.last
    if last == LAST_ID:
        raise CommandError(
            "ERR The stream has exhausted the last possible ID, unable to add more items"
        )
    last_time, last_sequence = int.from_bytes(last[:8], "big"), int.from_bytes(last[8:], "big")
    if milliseconds < 0:
        milliseconds = max(now, last_time)
        if milliseconds == last_time and last_sequence == MAX_U64:
            milliseconds += 1  # as in Redis, the next id
            last_time = -1
    if sequence is None:
        sequence = last_sequence + 1 if milliseconds == last_time else 0
    id_ = to_id(milliseconds, sequence) if sequence <= MAX_U64 else NO_ID
    if id_ <= last:
        raise CommandError(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item"
        )
    return id_


@command("XTRIM", -4, "write", group="stream")
def xtrim(session: Session, args: list[bytes]) -> Reply:
    """Remove the oldest entries.  Returns how many.  O(their number)."""
    trim = _options(args, adding=False).trim
    stream = find_stream(session, args[1])
    if stream is None or trim is None:
        return 0
    removed = trim.apply(session, stream)
    if removed:
        save(session, args[1], stream)
        session.announce("t", "xtrim", args[1])
    return removed


@command("XDEL", -3, "write fast", group="stream")
def xdel(session: Session, args: list[bytes]) -> Reply:
    """Remove entries by their ids.  Returns how many existed."""
    stream = find_stream(session, args[1])
    if stream is None:
        return 0
    removed = stream.delete([parse_id(text) for text in args[2:]])
    if removed:
        save(session, args[1], stream)
        session.announce("t", "xdel", args[1])
    return removed


@command("XSETID", -3, "write fast", group="stream")
def xsetid(session: Session, args: list[bytes]) -> Reply:
    """Set the last id of a stream, and perhaps what it remembers of removed entries."""
    last, added, deleted = parse_id(args[2]), -1, NO_ID
    options = Options(args[3:])
    for word in options:
        if word == b"ENTRIESADDED":
            error = "ERR entries_added must be positive"
            added = to_int_from(0, options.value(), error, NOT_AN_INTEGER)
        elif word == b"MAXDELETEDID":
            deleted = parse_id(options.value())
            if last < deleted:
                raise CommandError(
                    "ERR The ID specified in XSETID is smaller than the provided"
                    " max_deleted_entry_id"
                )
        else:
            raise syntax_error()
    stream = find_stream(session, args[1])
    if stream is None:
        raise CommandError("ERR no such key")
    if stream.entry.size:
        if last < stream.top():
            raise CommandError(
                "ERR The ID specified in XSETID is smaller than the target stream top item"
            )
        if 0 <= added < stream.entry.size:
            raise CommandError(
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            )
    stream.last = last
    session.space.read_ahead.forget()
    if added >= 0:
        stream.added = added
    stream.deleted = deleted if deleted != NO_ID else stream.deleted
    session.space.rewrite(session.database, args[1], stream.store())
    session.announce("t", "xsetid", args[1])
    return OK


# Reading


def _range(session: Session, args: list[bytes], low: bytes, high: bytes, reverse: bool) -> Reply:
    start, end = parse_range(low, high)
    count = -1
    options = Options(args[4:])
    for word in options:
        if word != b"COUNT":
            raise syntax_error()
        count = max(0, to_int(options.value()))
    stream = find_stream(session, args[1])
    if stream is None:
        return []
    if count == 0:
        return NULL_ARRAY
    return stream.shown(start, end, max(0, count), reverse)


@command("XRANGE", -4, "readonly", group="stream")
def xrange(session: Session, args: list[bytes]) -> Reply:
    """Return the entries in a range of ids, both ends included.  O(their number)."""
    return _range(session, args, args[2], args[3], reverse=False)


@command("XREVRANGE", -4, "readonly", group="stream")
def xrevrange(session: Session, args: list[bytes]) -> Reply:
    """Return the entries in a range of ids, from the last one.  O(their number)."""
    return _range(session, args, args[3], args[2], reverse=True)
