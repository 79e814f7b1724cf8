"""Sorted sets: members with scores, in the order of the scores, then of the members' bytes.

``sorted_set_ranges.py`` has the commands for ranges, ``sorted_set_algebra.py`` those for several
sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from lsmkv.server.commands.hashes import choose, random_count
from lsmkv.server.commands.lists import seconds_to_wait
from lsmkv.server.cursors import cursor_number
from lsmkv.server.encoding import DOUBLE, SORTED_SET
from lsmkv.server.numbers import to_float
from lsmkv.server.options import optional_count, pop_options
from lsmkv.server.registry import command
from lsmkv.server.resp import (
    NO_REPLY,
    NULL_ARRAY,
    CommandError,
    Pairs,
    Reply,
    format_double,
    syntax_error,
)
from lsmkv.server.scanning import scan_elements, scan_options
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import Scored, SortedSet

_SMALL = 128
"""The largest sorted set that Redis keeps in one piece: ``zset-max-listpack-entries``."""


def find_sorted_set(session: Session, key: bytes) -> SortedSet | None:
    entry = session.space.find(session.database, key, SORTED_SET)
    return None if entry is None else SortedSet(session.space.records, entry, session.space.ranks)


def find_or_make_sorted_set(session: Session, key: bytes) -> tuple[SortedSet, bool]:
    entry, new = session.space.find_or_make(session.database, key, SORTED_SET)
    return SortedSet(session.space.records, entry, session.space.ranks), new


def shown(members: list[Scored], with_scores: bool) -> Reply:
    return Pairs(members) if with_scores else [member for member, _ in members]


def remove_members(
    session: Session, key: bytes, found: SortedSet, members: list[Scored], event: str
) -> int:
    for member, score in members:
        found.remove(member, score)
    if members:
        session.announce("z", event, key)
        session.space.save(session.database, key, found.entry)
    return len(members)


def store_members(session: Session, key: bytes, members: list[Scored], event: str) -> int:
    """Make a key the sorted set of these members, replacing any other value.  No members: remove
    the key."""
    space = session.space
    if space.clear(session.database, key) and not members:
        session.announce("g", "del", key)
    if members:
        made, _ = find_or_make_sorted_set(session, key)
        for member, score in members:
            made.put(member, score, None)
        space.save(session.database, key, made.entry, new=True)
        session.announce("z", event, key)
    return len(members)


# Adding

_ADD_WORDS = (b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR")


class _AddOptions(NamedTuple):
    only_if: str
    """``NX``, ``XX``, or nothing."""
    than: str
    """``GT``, ``LT``, or nothing."""
    changed: bool
    increment: bool
    end: int
    """The index of the first argument after the options."""


def _add_options(args: list[bytes]) -> _AddOptions:
    words: set[bytes] = set()
    at = 2
    while at < len(args) and args[at].upper() in _ADD_WORDS:
        words.add(args[at].upper())
        at += 1
    if len(args) == at or (len(args) - at) % 2:
        raise syntax_error()
    if {b"NX", b"XX"} <= words:
        raise CommandError("ERR XX and NX options at the same time are not compatible")
    if {b"GT", b"LT"} <= words or (b"NX" in words and words & {b"GT", b"LT"}):
        raise CommandError("ERR GT, LT, and/or NX options at the same time are not compatible")
    if b"INCR" in words and len(args) - at > 2:
        raise CommandError("ERR INCR option supports a single increment-element pair")
    return _AddOptions(
        "NX" if b"NX" in words else "XX" if b"XX" in words else "",
        "GT" if b"GT" in words else "LT" if b"LT" in words else "",
        b"CH" in words,
        b"INCR" in words,
        at,
    )


@command("ZADD", -4, "write fast", group="sorted-set")
def zadd(session: Session, args: list[bytes]) -> Reply:
    """Set the scores of members.  Returns how many are new (with CH: new or changed)."""
    options = _add_options(args)
    pairs = [(args[at + 1], to_float(args[at])) for at in range(options.end, len(args), 2)]
    if options.only_if == "XX" and find_sorted_set(session, args[1]) is None:
        return None if options.increment else 0
    found, new = find_or_make_sorted_set(session, args[1])
    added = updated = 0
    result: float | None = None
    for member, score in pairs:
        old = found.score(member)
        if (old is None and options.only_if == "XX") or (
            old is not None and options.only_if == "NX"
        ):
            continue
        if options.increment and old is not None:
            score = _sum(old, score)
        if old is not None and (
            (options.than == "GT" and score <= old) or (options.than == "LT" and score >= old)
        ):
            continue
        result = score
        if old is None:
            added += 1
        elif old != score:
            updated += 1
        else:
            continue
        found.put(member, score, old)
    if added or updated:
        session.space.save(session.database, args[1], found.entry, new)
        session.announce("z", "zincr" if options.increment else "zadd", args[1])
    if options.increment:
        return result
    return added + updated if options.changed else added


def _sum(one: float, other: float) -> float:
    total = one + other
    if math.isnan(total):
        raise CommandError("ERR resulting score is not a number (NaN)")
    return total


@command("ZINCRBY", 4, "write fast", group="sorted-set")
def zincrby(session: Session, args: list[bytes]) -> Reply:
    """Add to the score of a member.  Returns the new score."""
    if args[2].upper() in _ADD_WORDS:  # as in ZADD it is an option, and the score is missing
        raise syntax_error()
    change = to_float(args[2])
    found, new = find_or_make_sorted_set(session, args[1])
    old = found.score(args[3])
    score = change if old is None else _sum(old, change)
    if old is None or old != score:
        found.put(args[3], score, old)
        session.space.save(session.database, args[1], found.entry, new)
        session.announce("z", "zincr", args[1])
    return score


@command("ZREM", -3, "write fast", group="sorted-set")
def zrem(session: Session, args: list[bytes]) -> Reply:
    """Remove members.  Returns how many existed."""
    found = find_sorted_set(session, args[1])
    if found is None:
        return 0
    removed = 0
    for member in args[2:]:
        score = found.score(member)
        if score is not None:
            found.remove(member, score)
            removed += 1
    if removed:
        session.announce("z", "zrem", args[1])
        session.space.save(session.database, args[1], found.entry)
    return removed


# One member


@command("ZSCORE", 3, "readonly fast", group="sorted-set")
def zscore(session: Session, args: list[bytes]) -> Reply:
    """Return the score of a member."""
    found = find_sorted_set(session, args[1])
    return None if found is None else found.score(args[2])


@command("ZMSCORE", -3, "readonly fast", group="sorted-set")
def zmscore(session: Session, args: list[bytes]) -> Reply:
    """Return the scores of members."""
    found = find_sorted_set(session, args[1])
    return [None if found is None else found.score(member) for member in args[2:]]


@command("ZRANK", 3, "readonly fast", group="sorted-set")
def zrank(session: Session, args: list[bytes]) -> Reply:
    """Return the rank of a member, from the lowest.  O(the distance from the nearer end)."""
    found = find_sorted_set(session, args[1])
    return None if found is None else found.rank(args[2])


@command("ZREVRANK", 3, "readonly fast", group="sorted-set")
def zrevrank(session: Session, args: list[bytes]) -> Reply:
    """Return the rank of a member, from the highest.  O(the distance from the nearer end)."""
    found = find_sorted_set(session, args[1])
    rank = None if found is None else found.rank(args[2])
    return None if found is None or rank is None else found.entry.size - 1 - rank


# Popping


def _pop(session: Session, key: bytes, found: SortedSet, count: int, highest: bool) -> list[Scored]:
    members = list(islice(found.walk(reverse=highest), count))
    remove_members(session, key, found, members, "zpopmax" if highest else "zpopmin")
    return members


def _popper(highest: bool) -> Callable[[Session, list[bytes]], Reply]:
    def pop(session: Session, args: list[bytes]) -> Reply:
        count = optional_count(args)
        most = 1 if count is None else count
        found = find_sorted_set(session, args[1])
        members = [] if found is None else _pop(session, args[1], found, most, highest)
        if count is not None:
            return Pairs(members)
        return [one for pair in members for one in pair]

    pop.__doc__ = f"Take the members with the {'highest' if highest else 'lowest'} scores."
    return pop


command("ZPOPMIN", -2, "write fast", group="sorted-set")(_popper(highest=False))
command("ZPOPMAX", -2, "write fast", group="sorted-set")(_popper(highest=True))


def _blocking_popper(highest: bool) -> Callable[[Session, list[bytes]], Reply]:
    def pop(session: Session, args: list[bytes]) -> Reply:
        keys, seconds = args[1:-1], seconds_to_wait(args[-1])

        def attempt(keys: list[bytes]) -> Reply:
            for key in keys:
                found = find_sorted_set(session, key)
                if found is not None:
                    ((member, score),) = _pop(session, key, found, 1, highest)
                    return [key, member, score]
            return NO_REPLY

        return session.service.waits.wait(session, keys, SORTED_SET, seconds, attempt, NULL_ARRAY)

    which = "highest" if highest else "lowest"
    pop.__doc__ = f"Take the member with the {which} score of the first set that has any, or wait."
    return pop


command("BZPOPMIN", -3, "write blocking fast", group="sorted-set")(_blocking_popper(highest=False))
command("BZPOPMAX", -3, "write blocking fast", group="sorted-set")(_blocking_popper(highest=True))


def _pop_first_of(session: Session, keys: list[bytes], highest: bool, count: int) -> Reply:
    for key in keys:
        found = find_sorted_set(session, key)
        if found is not None:
            members = _pop(session, key, found, count, highest)
            return [key, [[member, score] for member, score in members]]
    return NO_REPLY


@command("ZMPOP", -4, "write", group="sorted-set")
def zmpop(session: Session, args: list[bytes]) -> Reply:
    """Take members from the first sorted set that has any."""
    keys, highest, count = pop_options(args, 1, (b"MIN", b"MAX"))
    found = _pop_first_of(session, keys, highest, count)
    return NULL_ARRAY if found is NO_REPLY else found


@command("BZMPOP", -5, "write blocking", group="sorted-set")
def bzmpop(session: Session, args: list[bytes]) -> Reply:
    """Take members from the first sorted set that has any, or wait."""
    keys, highest, count = pop_options(args, 2, (b"MIN", b"MAX"))
    seconds = seconds_to_wait(args[1])

    def attempt(keys: list[bytes]) -> Reply:
        return _pop_first_of(session, keys, highest, count)

    return session.service.waits.wait(session, keys, SORTED_SET, seconds, attempt, NULL_ARRAY)


@command("ZRANDMEMBER", -2, "readonly", group="sorted-set")
def zrandmember(session: Session, args: list[bytes]) -> Reply:
    """Return random members: distinct ones, or with repetitions if the count is negative."""
    count, with_scores = random_count(args, b"WITHSCORES")
    found = find_sorted_set(session, args[1])
    if found is None:
        return None if count is None else []
    elements = choose(session, found.entry, 1 if count is None else count)
    chosen = [(member, DOUBLE.unpack(score)[0]) for member, score in elements]
    return chosen[0][0] if count is None else shown(chosen, with_scores)


@command("ZSCAN", -3, "readonly", group="sorted-set")
def zscan(session: Session, args: list[bytes]) -> Reply:
    """Return some members with scores, and the cursor for the next call.

    A small set is returned as a whole and in its order, as Redis does: clients rely on that.
    """
    if cursor_number(args[2]) == 0:
        found = find_sorted_set(session, args[1])
        if found is not None and found.entry.size <= _SMALL:
            matches = scan_options(args[3:]).matches
            items: list[Reply] = []
            for member, score in found.walk():
                if matches(member):
                    items += [member, format_double(score)]
            return [b"0", items]
    return scan_elements(
        session,
        args,
        SORTED_SET,
        lambda member, score: [member, format_double(DOUBLE.unpack(score)[0])],
    )
