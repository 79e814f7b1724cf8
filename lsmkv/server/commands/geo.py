"""GEOADD, GEOSEARCH and their family: members of a sorted set, whose scores are places."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from lsmkv.server.command import KeyUse
from lsmkv.server.commands.sorted_sets import find_sorted_set, store_members, zadd
from lsmkv.server.geohash import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    Place,
    Shape,
    cells_around,
    distance,
    geohash,
    place_of,
    score_of,
)
from lsmkv.server.numbers import to_float, to_int
from lsmkv.server.options import Options, in_error
from lsmkv.server.registry import command
from lsmkv.server.resp import NULL_ARRAY, CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import Scored, SortedSet
from lsmkv.server.sorted_set import place_of as place_in_order

_METERS = {b"M": 1.0, b"KM": 1000.0, b"FT": 0.3048, b"MI": 1609.34}


def _place(words: list[bytes]) -> Place:
    place = Place(to_float(words[0]), to_float(words[1]))
    if abs(place.longitude) <= MAX_LONGITUDE and abs(place.latitude) <= MAX_LATITUDE:
        return place
    raise CommandError(
        f"ERR invalid longitude,latitude pair {place.longitude:f},{place.latitude:f}"
    )


def _unit(word: bytes) -> float:
    """The meters of a unit."""
    meters = _METERS.get(word.upper())
    if meters is None:
        raise CommandError("ERR unsupported unit provided. please use M, KM, FT, MI")
    return meters


def _shown_distance(meters: float, unit: float) -> bytes:
    return b"%.4f" % (meters / unit)


def _shown_place(session: Session, place: Place) -> Reply:
    """Longitude and latitude: doubles in RESP3, else in decimal."""
    if session.resp3:
        return list(place)
    return [f"{one:.17f}".rstrip("0").rstrip(".").encode() for one in place]


@command("GEOADD", -5, "write", group="geo")
def geoadd(session: Session, args: list[bytes]) -> Reply:
    """Set the places of members.  Returns how many are new (with CH: new or changed)."""
    at = 2
    while at < len(args) and args[at].upper() in (b"NX", b"XX", b"CH"):
        at += 1
    if (len(args) - at) % 3 or {b"NX", b"XX"} <= {word.upper() for word in args[2:at]}:
        raise syntax_error()
    pairs: list[bytes] = []
    for start in range(at, len(args), 3):
        pairs += [b"%d" % score_of(_place(args[start : start + 2])), args[start + 2]]
    return zadd(session, args[:at] + pairs)


def _scores(session: Session, key: bytes, members: list[bytes]) -> list[float | None]:
    found = find_sorted_set(session, key)
    return [None if found is None else found.score(member) for member in members]


@command("GEOPOS", -2, "readonly", group="geo")
def geopos(session: Session, args: list[bytes]) -> Reply:
    """Return the longitude and latitude of members."""
    return [
        NULL_ARRAY if score is None else _shown_place(session, place_of(score))
        for score in _scores(session, args[1], args[2:])
    ]


@command("GEOHASH", -2, "readonly", group="geo")
def geohash_(session: Session, args: list[bytes]) -> Reply:
    """Return the standard geohashes of members, in 11 characters."""
    return [
        None if score is None else geohash(place_of(score)).encode()
        for score in _scores(session, args[1], args[2:])
    ]


@command("GEODIST", -4, "readonly", group="geo")
def geodist(session: Session, args: list[bytes]) -> Reply:
    """Return the distance of two members, in meters or another unit."""
    unit = _unit(args[4]) if len(args) == 5 else 1.0
    if len(args) > 5:
        raise syntax_error()
    one, other = _scores(session, args[1], args[2:4])
    if one is None or other is None:
        return None
    return _shown_distance(distance(place_of(one), place_of(other)), unit)


# Searching


class _Search(NamedTuple):
    """The options of a search."""

    shape: Shape | None
    """None if it is around a member of a set that does not exist."""
    unit: float
    with_distance: bool
    with_hash: bool
    with_place: bool
    order: bytes
    """``ASC``, ``DESC``, or nothing."""
    most: int
    """0 for all."""
    any: bool
    target: bytes | None
    """The key to store under."""
    by_distance: bool
    """True to store distances as scores."""


class _Found(NamedTuple):
    """A member in a shape."""

    member: bytes
    score: float
    meters: float
    place: Place


def _number(word: bytes, name: str) -> float:
    return to_float(word, f"ERR need numeric {name}")


def _radius(words: list[bytes]) -> tuple[float, float, float]:
    """The radius, twice, and its unit."""
    radius = _number(words[0], "radius")
    if radius < 0:
        raise CommandError("ERR radius cannot be negative")
    return radius, radius, _unit(words[1])


def _box(words: list[bytes]) -> tuple[float, float, float]:
    width, height = _number(words[0], "width"), _number(words[1], "height")
    if width < 0 or height < 0:
        raise CommandError("ERR height or width cannot be negative")
    return width, height, _unit(words[2])


def _place_of_member(found: SortedSet | None, member: bytes) -> Place | None:
    if found is None:
        return None
    score = found.score(member)
    if score is None:
        raise CommandError("ERR could not decode requested zset member")
    return place_of(score)


def _search_options(
    words: list[bytes],
    found: SortedSet | None,
    center: Place | None,
    size: tuple[float, float, float] | None,
    *,
    name: str = "",
    target: bytes | None = None,
    stores: bool = False,
) -> _Search:
    """Read the options of a search, from left to right.

    ``name`` is that of GEOSEARCH or GEOSEARCHSTORE, which have the center and size among them;
    ``stores`` says whether those of GEORADIUS may name a target.
    """
    flags: set[bytes] = set()
    order, count, by_distance = b"", 0, False
    origin, shaped, is_box = b"", b"", False
    storing = target is not None
    options = Options(words)
    for word in options:
        if word in (b"WITHDIST", b"WITHHASH", b"WITHCOORD", b"ANY"):
            flags.add(word)
        elif word in (b"ASC", b"DESC"):
            order = word
        elif word == b"COUNT" and options.left:
            count = to_int(options.value())
            if count <= 0:
                raise CommandError("ERR COUNT must be > 0")
        elif stores and word in (b"STORE", b"STOREDIST") and options.left:
            target, by_distance = options.value(), word == b"STOREDIST"
        elif name and word == b"FROMMEMBER" and options.left and origin in (b"", word):
            center, origin = _place_of_member(found, options.value()), word
        elif name and word == b"FROMLONLAT" and options.left > 1 and origin in (b"", word):
            center, origin = _place(options.values(2)), word
        elif name and word == b"BYRADIUS" and options.left > 1 and shaped in (b"", word):
            size, shaped = _radius(options.values(2)), word
        elif name and word == b"BYBOX" and options.left > 2 and shaped in (b"", word):
            size, shaped, is_box = _box(options.values(3)), word, True
        elif storing and word == b"STOREDIST":
            by_distance = True
        else:
            raise syntax_error()
    if target is not None and flags - {b"ANY"}:
        what = "GEOSEARCHSTORE" if name else "STORE option in GEORADIUS"
        raise CommandError(
            f"ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
        )
    if name and not origin:
        raise CommandError(
            f"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
        )
    if name and not shaped:
        raise CommandError(f"ERR exactly one of BYRADIUS and BYBOX can be specified for {name}")
    if b"ANY" in flags and not count:
        raise CommandError("ERR the ANY argument requires COUNT argument")
    shape, unit = None, 1.0
    if center is not None and size is not None:
        unit = size[2]
        shape = Shape(center, size[0] * unit, size[1] * unit, is_box)
    return _Search(
        shape,
        unit,
        b"WITHDIST" in flags,
        b"WITHHASH" in flags,
        b"WITHCOORD" in flags,
        order or (b"ASC" if count and b"ANY" not in flags else b""),
        count,
        b"ANY" in flags,
        target,
        by_distance,
    )


def _members_within(found: SortedSet, shape: Shape, limit: int) -> list[_Found]:
    """The members in a shape, up to ``limit`` unless that is 0.  O(members in nine cells)."""
    members: list[_Found] = []
    for cell in cells_around(shape):
        low, high = cell.scores()
        for member, score in found.walk(place_in_order(low), place_in_order(high)):
            place = place_of(score)
            meters = shape.distance_within(place)
            if meters is not None:
                members.append(_Found(member, score, meters, place))
                if len(members) == limit:
                    return members
    return members


def _meters(one: _Found) -> float:
    return one.meters


def _answer(session: Session, found: SortedSet | None, search: _Search, event: str) -> Reply:
    members: list[_Found] = []
    if found is not None and search.shape is not None:
        members = _members_within(found, search.shape, search.most if search.any else 0)
    if search.order:
        members.sort(key=_meters, reverse=search.order == b"DESC")
    if search.most:
        del members[search.most :]
    if search.target is not None:
        scored: list[Scored] = [
            (one.member, one.meters / search.unit if search.by_distance else one.score)
            for one in members
        ]
        return store_members(session, search.target, scored, event)
    if not (search.with_distance or search.with_hash or search.with_place):
        return [one.member for one in members]
    return [_shown(session, one, search) for one in members]


def _shown(session: Session, one: _Found, search: _Search) -> list[Reply]:
    words: list[Reply] = [one.member]
    if search.with_distance:
        words.append(_shown_distance(one.meters, search.unit))
    if search.with_hash:
        words.append(int(one.score))
    if search.with_place:
        words.append(_shown_place(session, one.place))
    return words


@command("GEOSEARCH", -7, "readonly", group="geo")
def geosearch(session: Session, args: list[bytes]) -> Reply:
    """Return the members in a circle or a rectangle.  O(members near it)."""
    found = find_sorted_set(session, args[1])
    search = _search_options(args[2:], found, None, None, name=in_error(args[0]))
    return _answer(session, found, search, "")


@command("GEOSEARCHSTORE", -8, "write", group="geo")
def geosearchstore(session: Session, args: list[bytes]) -> Reply:
    """Store the members in a circle or a rectangle as another sorted set.  Returns how many."""
    found = find_sorted_set(session, args[2])
    search = _search_options(args[3:], found, None, None, name=in_error(args[0]), target=args[1])
    return _answer(session, found, search, "geosearchstore")


def _radius_keys(args: list[bytes]) -> list[KeyUse]:
    """The source, and what STORE and STOREDIST name.  As in Redis, both count, though only the last
    is written."""
    targets: dict[bytes, KeyUse] = {}
    words = Options(args[5:])
    for word in words:
        if word in (b"STORE", b"STOREDIST") and words.left:
            targets[word] = KeyUse(words.value(), ("OW", "update"))
    return [KeyUse(args[1], ("RO", "access")), *(targets[word] for word in sorted(targets))]


def _georadius(of_member: bool, stores: bool, session: Session, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    end = 5 if of_member else 6
    center = _place_of_member(found, args[2]) if of_member else _place(args[2:4])
    size = None if center is None else _radius(args[end - 2 : end])
    search = _search_options(args[end:], found, center, size, stores=stores)
    return _answer(session, found, search, "georadiusstore")


for _of_member, _name, _arity in ((False, "GEORADIUS", -6), (True, "GEORADIUSBYMEMBER", -5)):
    _summary = f"Return the members in a circle around a {'member' if _of_member else 'place'}."
    _run = partial(_georadius, _of_member, True)
    command(_name, _arity, "write", group="geo", summary=_summary, find_keys=_radius_keys)(_run)
    _run = partial(_georadius, _of_member, False)
    command(f"{_name}_RO", _arity, "readonly", group="geo", summary=_summary)(_run)
