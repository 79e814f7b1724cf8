"""Ranges of sorted sets: by rank, by score, by member."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from lsmkv.server.commands.sorted_sets import (
    find_sorted_set,
    remove_members,
    shown,
    store_members,
)
from lsmkv.server.numbers import MAX_INT, parse_double, to_int
from lsmkv.server.options import Options, clip
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import Scored, SortedSet, place_behind, place_of


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


def _check_lex(low: bytes, high: bytes) -> None:
    for text in (low, high):
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
    options = Options(words)
    for word in options:
        if word == b"WITHSCORES" and not store:
            with_scores = True
        elif word == b"LIMIT":
            offset, count = [to_int(one) for one in options.values(2)]
            limited = count != -1  # a limit of -1 means none
        elif word == b"REV" and not legacy and not reverse:
            reverse = True
        elif word in (b"BYSCORE", b"BYLEX") and not legacy and not by:
            by = word[2:].decode()
        else:
            raise syntax_error()
    if limited and not by:
        raise CommandError(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
        )
    if with_scores and by == "LEX":
        raise CommandError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
    return _RangeRequest(by, reverse, offset, count, with_scores)


def _members_in(
    session: Session, key: bytes, one: bytes, other: bytes, request: _RangeRequest
) -> tuple[SortedSet | None, list[Scored]]:
    """A set, and its members in a range.  ``one`` is the end from which it is read.

    The bounds are checked before the key is looked up.
    """
    low, high = (other, one) if request.reverse and request.by else (one, other)
    part: _Range | None = None
    start = end = 0
    if request.by == "SCORE":
        part = _score_range(low, high)
    elif request.by == "LEX":
        _check_lex(low, high)
    else:
        start, end = to_int(one), to_int(other)
    found = find_sorted_set(session, key)
    if found is None:
        return None, []
    if request.by == "":
        return found, found.slice(*clip(start, end, found.entry.size), request.reverse)
    if part is None:
        walk = _lex_members(found, low, high, request.reverse)
    else:
        walk = found.walk(part.start, part.stop, request.reverse)
    return found, _limited(walk, request.offset, request.limit)


def _ranger(by: str, reverse: bool, legacy: bool) -> Callable[[Session, list[bytes]], Reply]:
    def range_(session: Session, args: list[bytes]) -> Reply:
        request = _range_request(args[4:], by, reverse, legacy)
        _, members = _members_in(session, args[1], args[2], args[3], request)
        return shown(members, request.with_scores)

    return range_


for _name, _by, _reverse, _what in (
    ("ZRANGE", "", False, "ranks"),
    ("ZREVRANGE", "", True, "ranks, from its end"),
    ("ZRANGEBYSCORE", "SCORE", False, "scores"),
    ("ZREVRANGEBYSCORE", "SCORE", True, "scores, from its end"),
    ("ZRANGEBYLEX", "LEX", False, "members, all of one score"),
    ("ZREVRANGEBYLEX", "LEX", True, "members, all of one score, from its end"),
):
    _summary = f"Return the members in a range of {_what}."
    _run = _ranger(_by, _reverse, legacy=_name != "ZRANGE")
    command(_name, -4, "readonly", group="sorted-set", summary=_summary)(_run)


@command("ZRANGESTORE", -5, "write", group="sorted-set")
def zrangestore(session: Session, args: list[bytes]) -> Reply:
    """Store the members in a range of a sorted set as another.  Returns its size."""
    request = _range_request(args[5:], store=True)
    _, members = _members_in(session, args[2], args[3], args[4], request)
    return store_members(session, args[1], members, "zrangestore")


@command("ZCOUNT", 4, "readonly fast", group="sorted-set")
def zcount(session: Session, args: list[bytes]) -> Reply:
    """Return how many members have scores in a range."""
    part = _score_range(args[2], args[3])
    found = find_sorted_set(session, args[1])
    return 0 if found is None else found.count(*part)


@command("ZLEXCOUNT", 4, "readonly fast", group="sorted-set")
def zlexcount(session: Session, args: list[bytes]) -> Reply:
    """Return how many members of one score are in a range."""
    _check_lex(args[2], args[3])
    found = find_sorted_set(session, args[1])
    return 0 if found is None else sum(1 for _ in _lex_members(found, args[2], args[3]))


def _remove_range(by: str, event: str, session: Session, args: list[bytes]) -> Reply:
    request = _RangeRequest(by, False, 0, -1, False)
    found, members = _members_in(session, args[1], args[2], args[3], request)
    return 0 if found is None else remove_members(session, args[1], found, members, event)


for _name, _by, _what in (
    ("ZREMRANGEBYRANK", "", "in a range of ranks"),
    ("ZREMRANGEBYSCORE", "SCORE", "with scores in a range"),
    ("ZREMRANGEBYLEX", "LEX", "in a range, all of one score"),
):
    _summary = f"Remove the members {_what}.  Returns how many."
    _remove = partial(_remove_range, _by, _name.lower())
    command(_name, 4, "write", group="sorted-set", summary=_summary)(_remove)
