"""Sets: a key's members, and operations on several sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lsmkv.server.commands.hashes import checked_count, choose, remove_elements
from lsmkv.server.encoding import SET, Entry, element_prefix
from lsmkv.server.options import checked_limit, optional_count, split_numbered
from lsmkv.server.registry import command
from lsmkv.server.resp import Members, Reply, syntax_error
from lsmkv.server.scanning import scan_elements
from lsmkv.server.session import Session


def _entry(session: Session, key: bytes) -> Entry | None:
    return session.space.find(session.database, key, SET)


def _members(session: Session, entry: Entry | None) -> Iterator[bytes]:
    if entry is not None:
        for member, _ in session.space.records.under(element_prefix(entry)):
            yield member


def _is_member(session: Session, entry: Entry | None, member: bytes) -> bool:
    """Costs one Get.  For a non-member a filter usually saves it."""
    if entry is None:
        return False
    return session.space.records.get(element_prefix(entry) + member) is not None


def _add(session: Session, key: bytes, members: list[bytes], event: str = "sadd") -> int:
    space = session.space
    entry, new = space.find_or_make(session.database, key, SET)
    start, added = element_prefix(entry), 0
    for member in members:
        name = start + member
        if space.records.get(name) is None:
            space.records.put(name, b"")
            space.removed_ranges.fill(entry.version, name)
            added += 1
    if added:
        entry.size += added
        space.save(session.database, key, entry, new)
        session.announce("s", event, key)
    return added


@command("SADD", -3, "write fast", group="set")
def sadd(session: Session, args: list[bytes]) -> Reply:
    """Add members.  Returns how many are new."""
    return _add(session, args[1], args[2:])


@command("SREM", -3, "write fast", group="set")
def srem(session: Session, args: list[bytes]) -> Reply:
    """Remove members.  Returns how many existed."""
    return remove_elements(session, args[1], _entry(session, args[1]), args[2:], "srem")


@command("SISMEMBER", 3, "readonly fast", group="set")
def sismember(session: Session, args: list[bytes]) -> Reply:
    """Return whether a value is a member."""
    return int(_is_member(session, _entry(session, args[1]), args[2]))


@command("SMISMEMBER", -3, "readonly fast", group="set")
def smismember(session: Session, args: list[bytes]) -> Reply:
    """Return for each value whether it is a member."""
    entry = _entry(session, args[1])
    return [int(_is_member(session, entry, member)) for member in args[2:]]


@command("SMEMBERS", 2, "readonly", group="set")
def smembers(session: Session, args: list[bytes]) -> Reply:
    """Return the members, sorted by their bytes."""
    return Members(_members(session, _entry(session, args[1])))


@command("SSCAN", -3, "readonly", group="set")
def sscan(session: Session, args: list[bytes]) -> Reply:
    """Return some members, and the cursor for the next call."""
    return scan_elements(session, args, SET, lambda member, _: [member])


@command("SMOVE", 4, "write fast", group="set")
def smove(session: Session, args: list[bytes]) -> Reply:
    """Move a member to another set.  Returns whether it was in the first."""
    source = _entry(session, args[1])
    if source is None:
        return 0
    target = _entry(session, args[2])
    if not _is_member(session, source, args[3]):
        return 0
    if args[1] == args[2]:
        return 1
    remove_elements(session, args[1], source, [args[3]], "srem")
    if not _is_member(session, target, args[3]):
        _add(session, args[2], [args[3]])
    return 1


@command("SPOP", -2, "write fast", group="set")
def spop(session: Session, args: list[bytes]) -> Reply:
    """Remove random members, and return them."""
    count = optional_count(args)
    entry = _entry(session, args[1])
    if entry is None:
        return None if count is None else Members()
    chosen = [member for member, _ in choose(session, entry, 1 if count is None else count)]
    remove_elements(session, args[1], entry, chosen, "spop")
    return chosen[0] if count is None else Members(chosen)


@command("SRANDMEMBER", -2, "readonly", group="set")
def srandmember(session: Session, args: list[bytes]) -> Reply:
    """Return random members: distinct ones, or with repetitions if the count is negative."""
    if len(args) > 3:
        raise syntax_error()
    count = 1 if len(args) == 2 else checked_count(args[2])
    entry = _entry(session, args[1])
    if entry is None:
        return None if len(args) == 2 else []
    chosen = [member for member, _ in choose(session, entry, count)]
    return chosen[0] if len(args) == 2 else chosen


# Several sets


def _intersection(session: Session, keys: list[bytes]) -> Iterator[bytes]:
    """The members that are in every set: O(size of the smallest), with a Get for each other set."""
    entries = [_entry(session, key) for key in keys]
    if any(entry is None for entry in entries):
        return
    smallest, *others = sorted(
        (entry for entry in entries if entry is not None), key=lambda entry: entry.size
    )
    for member in _members(session, smallest):
        if all(_is_member(session, other, member) for other in others):
            yield member


def _union(session: Session, keys: list[bytes]) -> Iterator[bytes]:
    entries = [_entry(session, key) for key in keys]
    yield from {member: None for entry in entries for member in _members(session, entry)}


def _difference(session: Session, keys: list[bytes]) -> Iterator[bytes]:
    """The members of the first set that are in no other: a Get for each member and other set."""
    first, *others = [_entry(session, key) for key in keys]
    for member in _members(session, first):
        if not any(_is_member(session, other, member) for other in others):
            yield member


_Combine = Callable[[Session, list[bytes]], Iterator[bytes]]


def _combined(combine: _Combine, session: Session, args: list[bytes]) -> Reply:
    return Members(combine(session, args[1:]))


def _stored(combine: _Combine, event: str, session: Session, args: list[bytes]) -> Reply:
    """Make a key the set of the members, replacing any other value; none: remove it."""
    key, members = args[1], list(combine(session, args[2:]))
    if session.space.clear(session.database, key) and not members:
        session.announce("g", "del", key)
    return _add(session, key, members, event)


for _name, _combine, _what in (
    ("SINTER", _intersection, "that are in every set"),
    ("SUNION", _union, "that are in at least one set"),
    ("SDIFF", _difference, "of the first set that are in no other"),
):
    _summary = f"Return the members {_what}."
    command(_name, -2, "readonly", group="set", summary=_summary)(partial(_combined, _combine))
    _summary = f"Store the members {_what} as a set.  Returns its size."
    _run = partial(_stored, _combine, f"{_name.lower()}store")
    command(f"{_name}STORE", -3, "write", group="set", summary=_summary)(_run)


@command("SINTERCARD", -3, "readonly", group="set")
def sintercard(session: Session, args: list[bytes]) -> Reply:
    """Return how many members are in every set, counting up to LIMIT."""
    keys, rest = split_numbered(args, 1, "ERR Number of keys can't be greater than number of args")
    limit = checked_limit(rest)
    count = 0
    for _ in _intersection(session, keys):
        count += 1
        if count == limit:
            break
    return count
