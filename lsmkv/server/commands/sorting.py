"""SORT: sorts the elements of a list, set or sorted set."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from heapq import merge
from typing import Any, NamedTuple

from lsmkv.server.command import KeyUse
from lsmkv.server.commands.lists import elements
from lsmkv.server.commands.lists import store as store_list
from lsmkv.server.encoding import HASH, LIST, SET, SORTED_SET, STRING, element_prefix
from lsmkv.server.numbers import overflows, parse_double, to_int, underflows
from lsmkv.server.options import Options
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error, wrong_type
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import SortedSet

_VALUES = {b"BY": 1, b"GET": 1, b"LIMIT": 2, b"STORE": 1}
_PART = 10_000
"""Values that are sorted at a time."""
_DENIED = "ERR {} option of SORT denied due to insufficient ACL permissions."


class _Options(NamedTuple):
    by: bytes | None
    offset: int
    limit: int
    get: list[bytes]
    descending: bool
    alphabetic: bool
    store: bytes | None


def _options(words: list[bytes], may_store: bool, reads_all_keys: bool) -> _Options:
    by: bytes | None = None
    store: bytes | None = None
    offset, count, get, descending, alphabetic = 0, -1, [], False, False
    options = Options(words)
    for word in options:
        if word in (b"ASC", b"DESC"):
            descending = word == b"DESC"
        elif word == b"ALPHA":
            alphabetic = True
        elif word == b"LIMIT":
            offset, count = [to_int(one) for one in options.values(2)]
        elif word == b"STORE" and may_store:
            store = options.value()
        elif word == b"BY":
            by = options.value()
            if b"*" in by and not reads_all_keys:
                raise CommandError(_DENIED.format("BY"))
        elif word == b"GET":
            get.append(options.value())
            if not reads_all_keys:
                raise CommandError(_DENIED.format("GET"))
        else:
            raise syntax_error()
    return _Options(by, offset, count, get, descending, alphabetic, store)


def _looked_up(session: Session, pattern: bytes, element: bytes) -> bytes | None:
    """The value of a pattern for an element: ``#``, ``key_*`` or ``key_*->field``."""
    if pattern == b"#":
        return element
    before, star, behind = pattern.partition(b"*")
    if not star:
        return None
    space, database = session.space, session.database
    name, arrow, field = behind.partition(b"->")
    if not arrow or not field:
        entry = space.find(database, before + element + behind)
        return None if entry is None or entry.kind != STRING else space.content(entry)
    entry = space.find(database, before + element + name)
    if entry is None or entry.kind != HASH:
        return None
    return space.records.get(element_prefix(entry) + field)


def _elements(session: Session, key: bytes, descending: bool, keep_order: bool) -> list[bytes]:
    entry = session.space.find(session.database, key)
    if entry is None:
        return []
    if entry.kind == SORTED_SET:
        found = SortedSet(session.space.records, entry, session.space.ranks)
        return [member for member, _ in found.walk(reverse=descending and keep_order)]
    if entry.kind == LIST:
        values = list(elements(session, entry))
    elif entry.kind == SET:
        values = [member for member, _ in session.space.records.under(element_prefix(entry))]
    else:
        raise wrong_type()
    return values[::-1] if descending and keep_order else values


def _number(text: bytes | None) -> float:
    """A weight.  As in Redis, an empty one is 0, a null byte ends it, and it is 0 or at least
    2^-1022."""
    digits = (text or b"").partition(b"\0")[0]
    if not digits:
        return 0.0
    value = parse_double(digits.lstrip())
    if (
        value is None
        or (math.isinf(value) and overflows(digits))
        or (abs(value) < sys.float_info.min and underflows(digits))
    ):
        raise CommandError("ERR One or more scores can't be converted into double")
    return value


def _sort(session: Session, args: list[bytes], may_store: bool) -> Reply:
    options = _options(args[2:], may_store, session.reads_all_keys(args))
    sorts = options.by is None or b"*" in options.by
    values = _elements(session, args[1], options.descending, not sorts)
    rested = session.space.records.rested
    if sorts:
        by = options.by
        weighed: list[tuple[Any, bytes]] = []
        for value in rested(values):
            text = value if by is None else _looked_up(session, by, value)
            weighed.append(((text or b"") if options.alphabetic else _number(text), value))
        values = [value for _, value in rested(_sorted(session, weighed, options.descending))]
    start = min(max(options.offset, 0), len(values))
    stop = len(values) if options.limit < 0 else min(start + options.limit, len(values))
    found: list[bytes | None] = []
    for value in rested(values[start:stop]):
        found += [_looked_up(session, pattern, value) for pattern in options.get or [b"#"]]
    if options.store is None:
        return found
    return store_list(session, options.store, [value or b"" for value in found])


def _sorted(
    session: Session, weighed: list[tuple[Any, bytes]], descending: bool
) -> Iterable[tuple[Any, bytes]]:
    """Many values are sorted in parts, between which others run."""
    parts = []
    for start in range(0, len(weighed), _PART):
        session.space.records.look_at_time()
        parts.append(sorted(weighed[start : start + _PART], reverse=descending))
    return parts[0] if len(parts) == 1 else merge(*parts, reverse=descending)


def _keys(args: list[bytes]) -> list[KeyUse]:
    uses = [KeyUse(args[1], ("RO", "access"))]
    stored: list[bytes] = []
    at = 2
    while at < len(args) - 1:
        word = args[at].upper()
        if word == b"STORE":
            stored = [args[at + 1]]
        at += 1 + _VALUES.get(word, 0)
    return uses + [KeyUse(key, ("OW", "update")) for key in stored]


@command("SORT", -2, "write", group="generic", find_keys=_keys)
def sort(session: Session, args: list[bytes]) -> Reply:
    """Return the elements of a list or set sorted, or what they point to.  O(n log n)."""
    return _sort(session, args, may_store=True)


@command("SORT_RO", -2, "readonly", group="generic")
def sort_ro(session: Session, args: list[bytes]) -> Reply:
    """Like SORT, without STORE."""
    return _sort(session, args, may_store=False)
