"""Sorted sets: members with scores, in the order of the scores, then of the members' bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from lsmkv.server.commands.hashes import MOST_PAIRS, checked_count, choose
from lsmkv.server.commands.lists import clip, mpop_options, seconds_to_wait
from lsmkv.server.commands.sets import checked_limit, split_numbered
from lsmkv.server.cursors import cursor_number
from lsmkv.server.encoding import DOUBLE, SET, SORTED_SET, Entry, element_prefix
from lsmkv.server.numbers import MAX_INT, parse_double, to_float, to_int
from lsmkv.server.registry import command
from lsmkv.server.resp import (
    NO_REPLY,
    NULL_ARRAY,
    CommandError,
    Pairs,
    Reply,
    format_double,
    syntax_error,
    wrong_type,
)
from lsmkv.server.scanning import scan_elements, scan_options
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import Scored, SortedSet, place_behind, place_of

_SMALL = 128
"""The largest sorted set that Redis keeps in one piece: ``zset-max-listpack-entries``."""


def _find(session: Session, key: bytes) -> SortedSet | None:
    entry = session.space.find(session.database, key, SORTED_SET)
    return None if entry is None else SortedSet(session.space.overlay, entry)


def _find_or_make(session: Session, key: bytes) -> tuple[SortedSet, bool]:
    entry, new = session.space.find_or_make(session.database, key, SORTED_SET)
    return SortedSet(session.space.overlay, entry), new


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
    if options.only_if == "XX" and _find(session, args[1]) is None:
        return None if options.increment else 0
    found, new = _find_or_make(session, args[1])
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
    found, new = _find_or_make(session, args[1])
    old = found.score(args[3])
    score = change if old is None else _sum(old, change)
    if old is None or old != score:
        found.put(args[3], score, old)
        session.space.save(session.database, args[1], found.entry, new)
    return score


@command("ZREM", -3, "write fast", group="sorted-set")
def zrem(session: Session, args: list[bytes]) -> Reply:
    """Remove members.  Returns how many existed."""
    found = _find(session, args[1])
    if found is None:
        return 0
    removed = 0
    for member in args[2:]:
        score = found.score(member)
        if score is not None:
            found.remove(member, score)
            removed += 1
    if removed:
        session.space.save(session.database, args[1], found.entry)
    return removed


# One member


@command("ZCARD", 2, "readonly fast", group="sorted-set")
def zcard(session: Session, args: list[bytes]) -> Reply:
    """Return the number of members.  O(1)."""
    found = _find(session, args[1])
    return 0 if found is None else found.entry.size


@command("ZSCORE", 3, "readonly fast", group="sorted-set")
def zscore(session: Session, args: list[bytes]) -> Reply:
    """Return the score of a member."""
    found = _find(session, args[1])
    return None if found is None else found.score(args[2])


@command("ZMSCORE", -3, "readonly fast", group="sorted-set")
def zmscore(session: Session, args: list[bytes]) -> Reply:
    """Return the scores of members."""
    found = _find(session, args[1])
    return [None if found is None else found.score(member) for member in args[2:]]


@command("ZRANK", 3, "readonly fast", group="sorted-set")
def zrank(session: Session, args: list[bytes]) -> Reply:
    """Return the rank of a member, from the lowest.  O(the distance from the nearer end)."""
    found = _find(session, args[1])
    return None if found is None else found.rank(args[2])


@command("ZREVRANK", 3, "readonly fast", group="sorted-set")
def zrevrank(session: Session, args: list[bytes]) -> Reply:
    """Return the rank of a member, from the highest.  O(the distance from the nearer end)."""
    found = _find(session, args[1])
    rank = None if found is None else found.rank(args[2])
    return None if found is None or rank is None else found.entry.size - 1 - rank


# Ranges


class _Range(NamedTuple):
    """A part of the order."""

    start: bytes
    stop: bytes | None


def _score_bound(text: bytes) -> tuple[float, bool]:
    """A score, and whether it is exclusive.  As in Redis, an empty one is 0, and a null byte ends
    it."""
    excluded = text[:1] == b"("
    digits = text[excluded:].partition(b"\0")[0]
    score = parse_double(digits.lstrip()) if digits else 0.0
    if score is None:
        raise CommandError("ERR min or max is not a float")
    return score, excluded


def _score_range(low: bytes, high: bytes) -> _Range:
    least, without_least = _score_bound(low)
    most, without_most = _score_bound(high)
    return _Range(
        place_behind(least) if without_least else place_of(least),
        place_of(most) if without_most else place_behind(most),
    )


def _check_lex(text: bytes) -> None:
    if text not in (b"-", b"+") and text[:1] not in (b"[", b"("):
        raise CommandError("ERR min or max not valid string range item")


def _lex_members(
    found: SortedSet, low: bytes, high: bytes, reverse: bool = False
) -> Iterator[Scored]:
    """The members from one up to another, in a set whose members all have one score.

    With different scores the order of members means little.  As in Redis, the first member in the
    range begins it, and the next member outside ends it.  That costs O(members).
    """
    first, last = next(found.walk(), None), next(found.walk(reverse=True), None)
    if first is None or last is None or low == b"+" or high == b"-":
        return iter(())
    if first[1] == last[1]:
        part = _lex_range(first[1], low, high)
        return found.walk(part.start, part.stop, reverse)

    def behind_low(scored: Scored) -> bool:
        return low == b"-" or scored[0] > low[1:] or (low[:1] == b"[" and scored[0] == low[1:])

    def before_high(scored: Scored) -> bool:
        return high == b"+" or scored[0] < high[1:] or (high[:1] == b"[" and scored[0] == high[1:])

    if not behind_low(last) or not before_high(first):
        return iter(())
    begins, goes_on = (before_high, behind_low) if reverse else (behind_low, before_high)
    return takewhile(goes_on, dropwhile(lambda one: not begins(one), found.walk(reverse=reverse)))


def _lex_range(score: float, low: bytes, high: bytes) -> _Range:
    start, stop = b"", None
    if low != b"-":
        start = place_of(score, low[1:]) + (b"\0" if low[:1] == b"(" else b"")
    if high != b"+":
        stop = place_of(score, high[1:]) + (b"\0" if high[:1] == b"[" else b"")
    return _Range(start, stop)


def _limited(walk: Iterator[Scored], offset: int, count: int) -> list[Scored]:
    if not 0 <= offset < MAX_INT:
        return []
    return list(islice(walk, offset, None if count < 0 else min(offset + count, MAX_INT)))


class _RangeRequest(NamedTuple):
    """The arguments of ZRANGE and its variants."""

    by: str
    """``SCORE``, ``LEX``, or nothing: by rank."""
    reverse: bool
    offset: int
    limit: int
    with_scores: bool


def _range_request(
    words: list[bytes],
    by: str = "",
    reverse: bool = False,
    legacy: bool = False,
    store: bool = False,
) -> _RangeRequest:
    offset, count, limited, with_scores = 0, -1, False, False
    at = 0
    while at < len(words):
        word = words[at].upper()
        if word == b"WITHSCORES" and not store:
            with_scores = True
        elif word == b"LIMIT" and at + 2 < len(words):
            offset, count = to_int(words[at + 1]), to_int(words[at + 2])
            limited = count != -1  # a limit of -1 means none
            at += 2
        elif word == b"REV" and not legacy and not reverse:
            reverse = True
        elif word in (b"BYSCORE", b"BYLEX") and not legacy and not by:
            by = word[2:].decode()
        else:
            raise syntax_error()
        at += 1
    if limited and not by:
        raise CommandError(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
        )
    if with_scores and by == "LEX":
        raise CommandError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
    return _RangeRequest(by, reverse, offset, count, with_scores)


def _members_in(
    session: Session, key: bytes, one: bytes, other: bytes, request: _RangeRequest
) -> list[Scored]:
    """The members in a range.  ``one`` is the end from which it is read."""
    low, high = (other, one) if request.reverse and request.by else (one, other)
    if request.by == "":
        start, end = to_int(one), to_int(other)
        found = _find(session, key)
        if found is None:
            return []
        return found.slice(*clip(start, end, found.entry.size), request.reverse)
    if request.by == "SCORE":
        part = _score_range(low, high)
        found = _find(session, key)
        if found is None:
            return []
        walk = found.walk(part.start, part.stop, request.reverse)
    else:
        _check_lex(low)
        _check_lex(high)
        found = _find(session, key)
        if found is None:
            return []
        walk = _lex_members(found, low, high, request.reverse)
    return _limited(walk, request.offset, request.limit)


def _shown(members: list[Scored], with_scores: bool) -> Reply:
    return Pairs(members) if with_scores else [member for member, _ in members]


def _ranger(by: str, reverse: bool, legacy: bool) -> Callable[[Session, list[bytes]], Reply]:
    def range_(session: Session, args: list[bytes]) -> Reply:
        request = _range_request(args[4:], by, reverse, legacy)
        return _shown(_members_in(session, args[1], args[2], args[3], request), request.with_scores)

    what = {"": "ranks", "SCORE": "scores", "LEX": "members, all of one score"}[by]
    range_.__doc__ = (
        f"Return the members in a range of {what}{', from its end' if reverse else ''}."
    )
    return range_


for _name, _by, _reverse in (
    ("ZREVRANGE", "", True),
    ("ZRANGEBYSCORE", "SCORE", False),
    ("ZREVRANGEBYSCORE", "SCORE", True),
    ("ZRANGEBYLEX", "LEX", False),
    ("ZREVRANGEBYLEX", "LEX", True),
):
    command(_name, -4, "readonly", group="sorted-set")(_ranger(_by, _reverse, legacy=True))
command("ZRANGE", -4, "readonly", group="sorted-set")(_ranger("", reverse=False, legacy=False))


@command("ZRANGESTORE", -5, "write", group="sorted-set")
def zrangestore(session: Session, args: list[bytes]) -> Reply:
    """Store the members in a range of a sorted set as another.  Returns its size."""
    request = _range_request(args[5:], store=True)
    members = _members_in(session, args[2], args[3], args[4], request)
    return _store(session, args[1], members)


@command("ZCOUNT", 4, "readonly fast", group="sorted-set")
def zcount(session: Session, args: list[bytes]) -> Reply:
    """Return how many members have scores in a range.  O(their number)."""
    part = _score_range(args[2], args[3])
    found = _find(session, args[1])
    return 0 if found is None else sum(1 for _ in found.walk(*part))


@command("ZLEXCOUNT", 4, "readonly fast", group="sorted-set")
def zlexcount(session: Session, args: list[bytes]) -> Reply:
    """Return how many members of one score are in a range.  O(their number)."""
    _check_lex(args[2])
    _check_lex(args[3])
    found = _find(session, args[1])
    return 0 if found is None else sum(1 for _ in _lex_members(found, args[2], args[3]))


def _remove(session: Session, key: bytes, found: SortedSet, members: list[Scored]) -> int:
    for member, score in members:
        found.remove(member, score)
    if members:
        session.space.save(session.database, key, found.entry)
    return len(members)


@command("ZREMRANGEBYRANK", 4, "write", group="sorted-set")
def zremrangebyrank(session: Session, args: list[bytes]) -> Reply:
    """Remove the members in a range of ranks.  Returns how many."""
    start, end = to_int(args[2]), to_int(args[3])
    found = _find(session, args[1])
    if found is None:
        return 0
    members = found.slice(*clip(start, end, found.entry.size))
    return _remove(session, args[1], found, members)


@command("ZREMRANGEBYSCORE", 4, "write", group="sorted-set")
def zremrangebyscore(session: Session, args: list[bytes]) -> Reply:
    """Remove the members with scores in a range.  Returns how many."""
    part = _score_range(args[2], args[3])
    found = _find(session, args[1])
    return 0 if found is None else _remove(session, args[1], found, list(found.walk(*part)))


@command("ZREMRANGEBYLEX", 4, "write", group="sorted-set")
def zremrangebylex(session: Session, args: list[bytes]) -> Reply:
    """Remove the members in a range, all of one score.  Returns how many."""
    _check_lex(args[2])
    _check_lex(args[3])
    found = _find(session, args[1])
    if found is None:
        return 0
    return _remove(session, args[1], found, list(_lex_members(found, args[2], args[3])))


# Popping


def _pop(session: Session, key: bytes, found: SortedSet, count: int, highest: bool) -> list[Scored]:
    members = list(islice(found.walk(reverse=highest), count))
    _remove(session, key, found, members)
    return members


def _popper(highest: bool) -> Callable[[Session, list[bytes]], Reply]:
    def pop(session: Session, args: list[bytes]) -> Reply:
        if len(args) > 3:
            raise syntax_error()
        count = 1
        if len(args) == 3:
            error = "ERR value is out of range, must be positive"
            count = to_int(args[2], error)
            if count < 0:
                raise CommandError(error)
        found = _find(session, args[1])
        members = [] if found is None else _pop(session, args[1], found, count, highest)
        if len(args) == 3:
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
                found = _find(session, key)
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
        found = _find(session, key)
        if found is not None:
            members = _pop(session, key, found, count, highest)
            return [key, [[member, score] for member, score in members]]
    return NO_REPLY


@command("ZMPOP", -4, "write", group="sorted-set")
def zmpop(session: Session, args: list[bytes]) -> Reply:
    """Take members from the first sorted set that has any."""
    keys, highest, count = mpop_options(args, 1, (b"MIN", b"MAX"))
    found = _pop_first_of(session, keys, highest, count)
    return NULL_ARRAY if found is NO_REPLY else found


@command("BZMPOP", -5, "write blocking", group="sorted-set")
def bzmpop(session: Session, args: list[bytes]) -> Reply:
    """Take members from the first sorted set that has any, or wait."""
    keys, highest, count = mpop_options(args, 2, (b"MIN", b"MAX"))
    seconds = seconds_to_wait(args[1])

    def attempt(keys: list[bytes]) -> Reply:
        return _pop_first_of(session, keys, highest, count)

    return session.service.waits.wait(session, keys, SORTED_SET, seconds, attempt, NULL_ARRAY)


@command("ZRANDMEMBER", -2, "readonly", group="sorted-set")
def zrandmember(session: Session, args: list[bytes]) -> Reply:
    """Return random members: distinct ones, or with repetitions if the count is negative."""
    count = 1 if len(args) == 2 else checked_count(args[2])
    if len(args) > 4 or (len(args) == 4 and args[3].upper() != b"WITHSCORES"):
        raise syntax_error()
    if len(args) == 4:
        checked_count(args[2], MOST_PAIRS)
    found = _find(session, args[1])
    if found is None:
        return None if len(args) == 2 else []
    chosen = [
        (member, DOUBLE.unpack(score)[0])
        for member, score in (choose(session, found.entry, count) if count else [])
    ]
    return chosen[0][0] if len(args) == 2 else _shown(chosen, len(args) == 4)


@command("ZSCAN", -3, "readonly", group="sorted-set")
def zscan(session: Session, args: list[bytes]) -> Reply:
    """Return some members with scores, and the cursor for the next call.

    A small set is returned as a whole and in its order, as Redis does: clients rely on that.
    """
    if cursor_number(args[2]) == 0:
        found = _find(session, args[1])
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


# Several sorted sets


class _Input(NamedTuple):
    """A sorted set, or a set whose members all have score 1."""

    session: Session
    entry: Entry | None
    weight: float

    def members(self) -> Iterator[Scored]:
        if self.entry is None:
            return
        for member, value in self.session.space.overlay.under(element_prefix(self.entry)):
            yield member, self._score(value)

    def score(self, member: bytes) -> float | None:
        if self.entry is None:
            return None
        value = self.session.space.overlay.get(element_prefix(self.entry) + member)
        return None if value is None else self._score(value)

    def _score(self, value: bytes) -> float:
        score = (DOUBLE.unpack(value)[0] if value else 1.0) * self.weight
        return 0.0 if math.isnan(score) else score


def _set_of_any_kind(session: Session, key: bytes) -> Entry | None:
    entry = session.space.find(session.database, key)
    if entry is not None and entry.kind not in (SET, SORTED_SET):
        raise wrong_type()
    return entry


def _add(one: float, other: float) -> float:
    total = one + other
    return 0.0 if math.isnan(total) else total


_AGGREGATES: dict[bytes, Callable[[float, float], float]] = {b"SUM": _add, b"MIN": min, b"MAX": max}


class _Combination(NamedTuple):
    inputs: list[_Input]
    aggregate: Callable[[float, float], float]
    with_scores: bool


def _combination(session: Session, args: list[bytes], at: int, name: str) -> _Combination:
    if to_int(args[at]) <= 0:
        raise CommandError(f"ERR at least 1 input key is needed for '{name}' command")
    keys, words = split_numbered(args, at)
    entries = [_set_of_any_kind(session, key) for key in keys]
    weights = [1.0] * len(keys)
    aggregate, with_scores = _AGGREGATES[b"SUM"], False
    difference = name.startswith("zdiff")
    place = 0
    while place < len(words):
        word = words[place].upper()
        left = len(words) - place - 1
        if word == b"WEIGHTS" and left >= len(keys) and not difference:
            texts = words[place + 1 : place + 1 + len(keys)]
            weights = [to_float(text, "ERR weight value is not a float") for text in texts]
            place += len(keys)
        elif word == b"AGGREGATE" and left >= 1 and not difference:
            place += 1
            if words[place].upper() not in _AGGREGATES:
                raise syntax_error()
            aggregate = _AGGREGATES[words[place].upper()]
        elif word == b"WITHSCORES" and at == 1:
            with_scores = True
        else:
            raise syntax_error()
        place += 1
    inputs = [_Input(session, *one) for one in zip(entries, weights, strict=True)]
    return _Combination(inputs, aggregate, with_scores)


def _union(combination: _Combination) -> dict[bytes, float]:
    total: dict[bytes, float] = {}
    for one in combination.inputs:
        for member, score in one.members():
            old = total.get(member)
            total[member] = score if old is None else combination.aggregate(old, score)
    return total


def _intersection(combination: _Combination) -> dict[bytes, float]:
    """O(size of the smallest), with a Get for each other set."""
    inputs = combination.inputs
    if any(one.entry is None for one in inputs):
        return {}
    smallest, *others = sorted(inputs, key=lambda one: one.entry.size if one.entry else 0)
    total: dict[bytes, float] = {}
    for member, score in smallest.members():
        for other in others:
            more = other.score(member)
            if more is None:
                break
            score = combination.aggregate(score, more)
        else:
            total[member] = score
    return total


def _difference(combination: _Combination) -> dict[bytes, float]:
    first, *others = combination.inputs
    return {
        member: score
        for member, score in first.members()
        if all(other.score(member) is None for other in others)
    }


_Combine = Callable[[_Combination], dict[bytes, float]]


def _in_order(total: dict[bytes, float]) -> list[Scored]:
    return sorted(total.items(), key=lambda one: (one[1], one[0]))


def _store(session: Session, key: bytes, members: list[Scored]) -> int:
    """Make a key the sorted set of these members, replacing any other value.  No members: remove
    the key."""
    space = session.space
    space.clear(session.database, key)
    if members:
        made, _ = _find_or_make(session, key)
        for member, score in members:
            made.put(member, score, None)
        space.save(session.database, key, made.entry, new=True)
    return len(members)


def _combiner(name: str, combine: _Combine) -> Callable[[Session, list[bytes]], Reply]:
    def run(session: Session, args: list[bytes]) -> Reply:
        combination = _combination(session, args, 1, name)
        return _shown(_in_order(combine(combination)), combination.with_scores)

    return run


def _storer(name: str, combine: _Combine) -> Callable[[Session, list[bytes]], Reply]:
    def run(session: Session, args: list[bytes]) -> Reply:
        combination = _combination(session, args, 2, name)
        return _store(session, args[1], _in_order(combine(combination)))

    return run


for _name, _combine, _what in (
    ("ZUNION", _union, "in at least one of several sorted sets"),
    ("ZINTER", _intersection, "in all of several sorted sets"),
    ("ZDIFF", _difference, "in the first of several sorted sets and in no other"),
):
    _run = _combiner(_name.lower(), _combine)
    _run.__doc__ = f"Return the members that are {_what}."
    command(_name, -3, "readonly", group="sorted-set")(_run)
    _run = _storer(f"{_name.lower()}store", _combine)
    _run.__doc__ = f"Store the members that are {_what} as a sorted set. Returns its size."
    command(f"{_name}STORE", -4, "write", group="sorted-set")(_run)


@command("ZINTERCARD", -3, "readonly", group="sorted-set")
def zintercard(session: Session, args: list[bytes]) -> Reply:
    """Return how many members are in all of several sorted sets, counting up to LIMIT."""
    if to_int(args[1]) <= 0:
        raise CommandError("ERR at least 1 input key is needed for 'zintercard' command")
    keys, words = split_numbered(args, 1)
    entries = [_set_of_any_kind(session, key) for key in keys]
    limit = checked_limit(words)
    inputs = [_Input(session, entry, 1.0) for entry in entries]
    count = len(_intersection(_Combination(inputs, min, False)))
    return min(count, limit) if limit else count
