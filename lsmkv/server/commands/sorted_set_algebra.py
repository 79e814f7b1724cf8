"""Unions, intersections and differences of sorted sets, and of sets, whose members have score 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from lsmkv.server.commands.sorted_sets import shown, store_members
from lsmkv.server.encoding import DOUBLE, SET, SORTED_SET, Entry, element_prefix
from lsmkv.server.numbers import to_float, to_int
from lsmkv.server.options import Options, checked_limit, split_numbered
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error, wrong_type
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import Scored


class _Input(NamedTuple):
    """A sorted set, or a set whose members all have score 1."""

    session: Session
    entry: Entry | None
    weight: float

    def members(self) -> Iterator[Scored]:
        if self.entry is None:
            return
        for member, value in self.session.space.records.under(element_prefix(self.entry)):
            score = self._score(value)
            yield member, 0.0 if math.isnan(score) else score

    def score(self, member: bytes) -> float | None:
        """The score of a member times the weight: NaN for infinity times 0, as in Redis."""
        if self.entry is None:
            return None
        value = self.session.space.records.get(element_prefix(self.entry) + member)
        return None if value is None else self._score(value)

    def _score(self, value: bytes) -> float:
        score: float = DOUBLE.unpack(value)[0] if value else 1.0
        return score * self.weight


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
    options = Options(words)
    for word in options:
        if word == b"WEIGHTS" and not difference:
            texts = options.values(len(keys))
            weights = [to_float(text, "ERR weight value is not a float") for text in texts]
        elif word == b"AGGREGATE" and not difference:
            chosen = _AGGREGATES.get(options.value().upper())
            if chosen is None:
                raise syntax_error()
            aggregate = chosen
        elif word == b"WITHSCORES" and at == 1:
            with_scores = True
        else:
            raise syntax_error()
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


def _combined(name: str, combine: _Combine, session: Session, args: list[bytes]) -> Reply:
    combination = _combination(session, args, 1, name)
    return shown(_in_order(combine(combination)), combination.with_scores)


def _stored(name: str, combine: _Combine, session: Session, args: list[bytes]) -> Reply:
    combination = _combination(session, args, 2, name)
    return store_members(session, args[1], list(combine(combination).items()), name)


for _name, _combine, _what in (
    ("ZUNION", _union, "in at least one of several sorted sets"),
    ("ZINTER", _intersection, "in all of several sorted sets"),
    ("ZDIFF", _difference, "in the first of several sorted sets and in no other"),
):
    _summary = f"Return the members that are {_what}."
    _run = partial(_combined, _name.lower(), _combine)
    command(_name, -3, "readonly", group="sorted-set", summary=_summary)(_run)
    _summary = f"Store the members that are {_what} as a sorted set. Returns its size."
    _run = partial(_stored, f"{_name.lower()}store", _combine)
    command(f"{_name}STORE", -4, "write", group="sorted-set", summary=_summary)(_run)


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
