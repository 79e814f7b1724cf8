"""HEXPIRE, HTTL, HPERSIST and their variants: fields of a hash that expire, as in Redis 7.4."""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.server.encoding import HASH, element_prefix
from lsmkv.server.field_times import FieldTimes
from lsmkv.server.numbers import to_int, to_int_from
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply
from lsmkv.server.session import Session

_MOST = 0xFFFFFFFFFFFE
"""The latest time, in milliseconds since 1970."""
_NO_FIELD, _NEVER = -2, -1
_REFUSED, _SET, _DELETED = 0, 1, 2
"""Results of HEXPIRE for each field."""


def _fields(args: list[bytes], at: int) -> list[bytes]:
    """``FIELDS n field ...``, from an argument on."""
    if at + 1 >= len(args) or args[at].upper() != b"FIELDS":
        raise CommandError("ERR Mandatory argument FIELDS is missing or not at the right position")
    count = to_int_from(1, args[at + 1], "ERR Parameter `numFields` should be greater than 0")
    if count != len(args) - at - 2:
        raise CommandError("ERR The `numfields` parameter must match the number of arguments")
    return args[at + 2 :]


def _expirer(name: str, unit: int, relative: bool) -> Callable[[Session, list[bytes]], Reply]:
    def expire(session: Session, args: list[bytes]) -> Reply:
        space, database, key = session.space, session.database, args[1]
        number = to_int(args[2])
        if number < 0:
            raise CommandError("ERR invalid expire time, must be >= 0")
        now = space.now()
        time = number * unit + (now if relative else 0)
        if time > _MOST:
            raise CommandError(f"ERR invalid expire time in '{name.lower()}' command")
        condition = args[3].upper()
        has_condition = condition in (b"NX", b"XX", b"GT", b"LT")
        fields = _fields(args, 4 if has_condition else 3)
        entry = space.find(database, key, HASH)
        if entry is None:
            return [_NO_FIELD] * len(fields)
        times, start = FieldTimes(space.records, entry), element_prefix(entry)
        replies: list[Reply] = []
        for field in fields:
            if space.records.get(start + field) is None:
                replies.append(_NO_FIELD)
                continue
            old = times.get(field)
            if (
                (condition == b"NX" and old)
                or (condition == b"XX" and not old)
                or (condition == b"GT" and (not old or time <= old))
                or (condition == b"LT" and old and time >= old)
            ):
                replies.append(_REFUSED)
            elif time <= now:
                times.set(field, 0)
                space.records.delete(start + field)
                entry.size -= 1
                entry.removed += 1
                replies.append(_DELETED)
            else:
                times.set(field, time)
                replies.append(_SET)
        if _SET in replies or _DELETED in replies:
            space.note_field_times(database, key, entry)
            if _SET in replies:
                session.announce("h", "hexpire", key)
            if _DELETED in replies:
                session.announce("h", "hdel", key)
            space.save(database, key, entry)
        return replies

    return expire


for _name, _unit, _relative, _when in (
    ("HEXPIRE", 1000, True, "after some seconds"),
    ("HPEXPIRE", 1, True, "after some milliseconds"),
    ("HEXPIREAT", 1000, False, "at a Unix time in seconds"),
    ("HPEXPIREAT", 1, False, "at a Unix time in milliseconds"),
):
    _run = _expirer(_name, _unit, _relative)
    _summary = f"Make fields of a hash expire {_when}."
    command(_name, -6, "write fast", group="hash", summary=_summary)(_run)


def _remaining(unit: int, relative: bool) -> Callable[[Session, list[bytes]], Reply]:
    def remaining(session: Session, args: list[bytes]) -> Reply:
        fields = _fields(args, 2)
        space = session.space
        entry = space.find(session.database, args[1], HASH)
        if entry is None:
            return [_NO_FIELD] * len(fields)
        times, start = FieldTimes(space.records, entry), element_prefix(entry)
        replies: list[Reply] = []
        for field in fields:
            time = times.get(field)
            if not time:
                there = space.records.get(start + field) is not None
                replies.append(_NEVER if there else _NO_FIELD)
            else:
                left = max(0, time - space.now()) if relative else time
                replies.append((left + unit - 1) // unit)
        return replies

    return remaining


for _name, _unit, _relative, _what in (
    ("HTTL", 1000, True, "remaining life of fields, in seconds"),
    ("HPTTL", 1, True, "remaining life of fields, in milliseconds"),
    ("HEXPIRETIME", 1000, False, "expiry of fields as Unix time, in seconds"),
    ("HPEXPIRETIME", 1, False, "expiry of fields as Unix time, in milliseconds"),
):
    _summary = f"Return the {_what}; -1 for one that does not expire, -2 if it is not there."
    _run = _remaining(_unit, _relative)
    command(_name, -5, "readonly fast", group="hash", summary=_summary)(_run)


@command("HPERSIST", -5, "write fast", group="hash")
def hpersist(session: Session, args: list[bytes]) -> Reply:
    """Remove the expiry of fields.  Returns 1 for each that had one."""
    fields = _fields(args, 2)
    space, database, key = session.space, session.database, args[1]
    entry = space.find(database, key, HASH)
    if entry is None:
        return [_NO_FIELD] * len(fields)
    times, start = FieldTimes(space.records, entry), element_prefix(entry)
    replies: list[Reply] = []
    for field in fields:
        if times.set(field, 0):
            replies.append(1)
        else:
            there = space.records.get(start + field) is not None
            replies.append(_NEVER if there else _NO_FIELD)
    if 1 in replies:
        space.note_field_times(database, key, entry)
        session.announce("h", "hpersist", key)
        space.save(database, key, entry)
    return replies
