"""Lists: elements by index, with push and pop at both ends in O(1).

An element is stored under a 64-bit index.  The first element has 2^63.  A push in front takes the
number below the first; a push at the end takes the number after the last.  So the numbers have no
gaps.  A Get finds each element, however many were popped before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lsmkv.server.encoding import LIST, U64, Entry, element_prefix
from lsmkv.server.numbers import MAX_INT, to_decimal, to_int, to_int_from
from lsmkv.server.options import Options, clip, pop_options, positive
from lsmkv.server.registry import command
from lsmkv.server.resp import NO_REPLY, NULL_ARRAY, OK, CommandError, Reply, syntax_error
from lsmkv.server.session import Session


def _entry(session: Session, key: bytes) -> Entry | None:
    return session.space.find(session.database, key, LIST)


def elements(
    session: Session, entry: Entry, start: int = 0, stop: int | None = None
) -> Iterator[bytes]:
    """The elements from position ``start`` up to ``stop``."""
    prefix = element_prefix(entry)
    stop = entry.size if stop is None else stop
    if stop <= start:
        return
    first, last = entry.head + start, entry.head + stop - 1
    for _, value in session.space.records.scan(
        prefix + U64.pack(first), prefix + U64.pack(last) + b"\0"
    ):
        yield value


def _push(session: Session, key: bytes, values: list[bytes], front: bool, event: str = "") -> int:
    """Push values one after another.  Returns the new length."""
    space = session.space
    entry, new = space.find_or_make(session.database, key, LIST)
    prefix = element_prefix(entry)
    for value in values:
        if front:
            entry.head -= 1
            index = entry.head
        else:
            index = entry.head + entry.size
        entry.size += 1
        space.records.put(prefix + U64.pack(index), value)
    space.save(session.database, key, entry, new)
    session.announce("l", event or ("lpush" if front else "rpush"), key)
    return entry.size


def _pop(session: Session, key: bytes, entry: Entry, count: int, front: bool) -> list[bytes]:
    """Take up to ``count`` elements from an end, the outermost first."""
    values = _take(session, entry, count, front)
    if values:
        _save_popped(session, key, entry, front)
    return values


def _save_popped(session: Session, key: bytes, entry: Entry, front: bool) -> None:
    session.announce("l", "lpop" if front else "rpop", key)
    session.space.save(session.database, key, entry)


def _take(session: Session, entry: Entry, count: int, front: bool) -> list[bytes]:
    """Take elements, without saving the entry."""
    space = session.space
    count = min(count, entry.size)
    values = []
    prefix = element_prefix(entry)
    for _ in range(count):
        index = entry.head if front else entry.head + entry.size - 1
        name = prefix + U64.pack(index)
        value = space.records.get(name)
        assert value is not None
        values.append(value)
        space.records.delete(name)
        entry.head += front
        entry.size -= 1
    return values


def _pusher(front: bool, only_if_there: bool) -> Callable[[Session, list[bytes]], Reply]:
    def push(session: Session, args: list[bytes]) -> Reply:
        if only_if_there and _entry(session, args[1]) is None:
            return 0
        return _push(session, args[1], args[2:], front)

    where = "to the front of a list" if front else "to the end of a list"
    push.__doc__ = f"Push elements {where}{', if it exists' if only_if_there else ''}."
    return push


for _name, _front, _there in (
    ("LPUSH", True, False),
    ("RPUSH", False, False),
    ("LPUSHX", True, True),
    ("RPUSHX", False, True),
):
    command(_name, -3, "write fast", group="list")(_pusher(_front, _there))


def _popper(name: str, front: bool) -> Callable[[Session, list[bytes]], Reply]:
    def pop(session: Session, args: list[bytes]) -> Reply:
        if len(args) > 3:
            raise CommandError(f"ERR wrong number of arguments for '{name}' command")
        count = 1 if len(args) == 2 else positive(args[2])
        entry = _entry(session, args[1])
        if entry is None:
            return None if len(args) == 2 else NULL_ARRAY
        values = _pop(session, args[1], entry, count, front)
        return values[0] if len(args) == 2 else values

    pop.__doc__ = f"Take elements from the {'front' if front else 'end'} of a list."
    return pop


command("LPOP", -2, "write fast", group="list")(_popper("lpop", front=True))
command("RPOP", -2, "write fast", group="list")(_popper("rpop", front=False))


@command("LRANGE", 4, "readonly", group="list")
def lrange(session: Session, args: list[bytes]) -> Reply:
    """Return the elements in a range of positions, both ends included.  O(elements returned)."""
    start, end = to_int(args[2]), to_int(args[3])
    entry = _entry(session, args[1])
    if entry is None:
        return []
    return list(elements(session, entry, *clip(start, end, entry.size)))


@command("LINDEX", 3, "readonly", group="list")
def lindex(session: Session, args: list[bytes]) -> Reply:
    """Return the element at a position.  O(1)."""
    entry = _entry(session, args[1])
    if entry is None:
        return None
    name = _name_at(entry, to_int(args[2]))
    return None if name is None else session.space.records.get(name)


def _name_at(entry: Entry, position: int) -> bytes | None:
    position += entry.size if position < 0 else 0
    if not 0 <= position < entry.size:
        return None
    return element_prefix(entry) + U64.pack(entry.head + position)


@command("LSET", 4, "write", group="list")
def lset(session: Session, args: list[bytes]) -> Reply:
    """Replace the element at a position.  O(1)."""
    entry = _entry(session, args[1])
    if entry is None:
        raise CommandError("ERR no such key")
    name = _name_at(entry, to_int(args[2]))
    if name is None:
        raise CommandError("ERR index out of range")
    session.space.records.put(name, args[3])
    session.space.touch(session.database, args[1])
    session.announce("l", "lset", args[1])
    return OK


@command("LTRIM", 4, "write", group="list")
def ltrim(session: Session, args: list[bytes]) -> Reply:
    """Keep only the elements in a range of positions.  O(elements removed)."""
    start, end = to_int(args[2]), to_int(args[3])
    entry = _entry(session, args[1])
    if entry is None:
        return OK
    start, stop = clip(start, end, entry.size)
    if stop == start:
        session.space.remove(session.database, args[1], entry)
        session.announce("l", "ltrim", args[1])
        session.announce("g", "del", args[1])
        return OK
    prefix = element_prefix(entry)
    for position in (*range(start), *range(stop, entry.size)):
        session.space.records.delete(prefix + U64.pack(entry.head + position))
    entry.head += start
    entry.size = stop - start
    session.space.save(session.database, args[1], entry)
    session.announce("l", "ltrim", args[1])
    return OK


def store(session: Session, key: bytes, values: list[bytes]) -> int:
    """Make a key the list of these elements, replacing any other value.  No elements: remove the
    key."""
    if session.space.clear(session.database, key) and not values:
        session.announce("g", "del", key)
    return _push(session, key, values, front=False, event="sortstore") if values else 0


def _rewrite(
    session: Session, key: bytes, entry: Entry, first: int, values: list[bytes], event: str
) -> None:
    """Replace everything in a list from position ``first`` on with these values."""
    space, prefix = session.space, element_prefix(entry)
    for at, value in enumerate(values):
        space.records.put(prefix + U64.pack(entry.head + first + at), value)
    for position in range(first + len(values), entry.size):
        space.records.delete(prefix + U64.pack(entry.head + position))
    entry.size = first + len(values)
    session.announce("l", event, key)
    space.save(session.database, key, entry)


@command("LINSERT", 5, "write", group="list")
def linsert(session: Session, args: list[bytes]) -> Reply:
    """Insert an element before or after another.  Returns the length or -1.  O(elements after)."""
    where = args[2].upper()
    if where not in (b"BEFORE", b"AFTER"):
        raise syntax_error()
    entry = _entry(session, args[1])
    if entry is None:
        return 0
    position = next(
        (at for at, value in enumerate(elements(session, entry)) if value == args[3]), None
    )
    if position is None:
        return -1
    position += where == b"AFTER"
    rest = list(elements(session, entry, position))
    _rewrite(session, args[1], entry, position, [args[4], *rest], "linsert")
    return entry.size


@command("LREM", 4, "write", group="list")
def lrem(session: Session, args: list[bytes]) -> Reply:
    """Remove elements equal to a value: the first COUNT, the last if negative, or all.
    O(elements)."""
    count = to_int(args[2])
    entry = _entry(session, args[1])
    if entry is None:
        return 0
    values = list(elements(session, entry))
    places = [at for at, value in enumerate(values) if value == args[3]]
    if count > 0:
        places = places[:count]
    elif count < 0:
        places = places[count:]
    if places:
        gone = set(places)
        first = places[0]
        kept = [value for at, value in enumerate(values[first:], first) if at not in gone]
        _rewrite(session, args[1], entry, first, kept, "lrem")
    return len(places)


@command("LPOS", -3, "readonly", group="list")
def lpos(session: Session, args: list[bytes]) -> Reply:
    """Return the positions of a value.  O(elements looked at)."""
    rank, count, longest = 1, None, 0
    options = Options(args[3:])
    for word in options:
        text = options.value()
        match word:
            case b"RANK":
                rank = to_int(text)
                if rank == 0:
                    raise CommandError(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the"
                        " second ... or use negative to start from the end of the list"
                    )
                if not rank >= -MAX_INT:
                    raise CommandError(
                        "ERR value is out of range, value must between"
                        " -9223372036854775807 and 9223372036854775807"
                    )
            case b"COUNT":
                count = to_int_from(0, text, "ERR COUNT can't be negative")
            case b"MAXLEN":
                longest = to_int_from(0, text, "ERR MAXLEN can't be negative")
            case _:
                raise syntax_error()
    entry = _entry(session, args[1])
    found: list[Reply] = []
    if entry is not None:
        found = _positions(session, entry, args[2], rank, 1 if count is None else count, longest)
    if count is None:
        return found[0] if found else None
    return found


def _positions(
    session: Session, entry: Entry, value: bytes, rank: int, count: int, longest: int
) -> list[Reply]:
    found: list[Reply] = []
    places: Iterator[tuple[int, bytes]]
    longest = longest or entry.size
    if rank > 0:
        places = iter(enumerate(elements(session, entry, 0, min(longest, entry.size))))
    else:
        start = max(0, entry.size - longest)
        places = iter(list(enumerate(elements(session, entry, start), start))[::-1])
    skip = abs(rank) - 1
    for place, element in places:
        if element == value:
            if skip:
                skip -= 1
                continue
            found.append(place)
            if len(found) == count:
                break
    return found


# From list to list


def _side(word: bytes) -> bool:
    """True for LEFT, the front."""
    side = word.upper()
    if side not in (b"LEFT", b"RIGHT"):
        raise syntax_error()
    return side == b"LEFT"


def _move(session: Session, source: bytes, target: bytes, front: bool, to_front: bool) -> Reply:
    """Move an element; ``NO_REPLY`` if there is none."""
    entry = _entry(session, source)
    if entry is None:
        return NO_REPLY
    _entry(session, target)  # check for WRONGTYPE before taking anything
    if source == target and entry.size == 1:  # the key stays, with its expiry
        session.space.touch(session.database, source)
        session.announce("l", "lpush" if to_front else "rpush", source)
        session.announce("l", "lpop" if front else "rpop", source)
        return next(elements(session, entry))
    value = _take(session, entry, 1, front)[0]
    if source == target:
        session.space.rewrite(session.database, source, entry)
        _push(session, target, [value], to_front)
        session.announce("l", "lpop" if front else "rpop", source)
    else:
        _push(session, target, [value], to_front)
        _save_popped(session, source, entry, front)
    return value


@command("LMOVE", 5, "write", group="list")
def lmove(session: Session, args: list[bytes]) -> Reply:
    """Move an element from an end of a list to an end of another."""
    moved = _move(session, args[1], args[2], _side(args[3]), _side(args[4]))
    return None if moved is NO_REPLY else moved


@command("RPOPLPUSH", 3, "write", group="list")
def rpoplpush(session: Session, args: list[bytes]) -> Reply:
    """Move the last element of a list to the front of another."""
    moved = _move(session, args[1], args[2], False, True)
    return None if moved is NO_REPLY else moved


# Blocking commands


def seconds_to_wait(text: bytes) -> float:
    """Parse the timeout of a blocking command; 0 means no timeout."""
    seconds = to_decimal(text, "ERR timeout is not a float or out of range")
    # Redis also calls an overflow negative.
    if seconds * 1000 <= -1 or seconds * 1000 > MAX_INT:
        raise CommandError("ERR timeout is negative")
    return max(0.0, float(seconds))


def _blocking_popper(front: bool) -> Callable[[Session, list[bytes]], Reply]:
    def pop(session: Session, args: list[bytes]) -> Reply:
        keys, seconds = args[1:-1], seconds_to_wait(args[-1])

        def attempt(keys: list[bytes]) -> Reply:
            for key in keys:
                entry = _entry(session, key)
                if entry is not None:
                    return [key, _pop(session, key, entry, 1, front)[0]]
            return NO_REPLY

        return session.service.waits.wait(session, keys, LIST, seconds, attempt, NULL_ARRAY)

    pop.__doc__ = f"Take an element from the {'front' if front else 'end'} of a list, or wait."
    return pop


command("BLPOP", -3, "write blocking", group="list")(_blocking_popper(front=True))
command("BRPOP", -3, "write blocking", group="list")(_blocking_popper(front=False))


def _blocking_move(session: Session, args: list[bytes], front: bool, to_front: bool) -> Reply:
    seconds = seconds_to_wait(args[-1])

    def attempt(keys: list[bytes]) -> Reply:
        return _move(session, args[1], args[2], front, to_front)

    otherwise = None if session.running else NULL_ARRAY
    return session.service.waits.wait(session, [args[1]], LIST, seconds, attempt, otherwise)


@command("BLMOVE", 6, "write blocking", group="list")
def blmove(session: Session, args: list[bytes]) -> Reply:
    """Move an element from one list to another, or wait for one."""
    return _blocking_move(session, args, _side(args[3]), _side(args[4]))


@command("BRPOPLPUSH", 4, "write blocking", group="list")
def brpoplpush(session: Session, args: list[bytes]) -> Reply:
    """Move the last element of a list to the front of another, or wait for one."""
    return _blocking_move(session, args, False, True)


def _pop_first_of(session: Session, keys: list[bytes], front: bool, count: int) -> Reply:
    """Elements of the first list that has any; ``NO_REPLY`` if none does."""
    for key in keys:
        entry = _entry(session, key)
        if entry is not None:
            return [key, _pop(session, key, entry, count, front)]
    return NO_REPLY


@command("LMPOP", -4, "write", group="list")
def lmpop(session: Session, args: list[bytes]) -> Reply:
    """Take elements from the first list that has any."""
    keys, front, count = pop_options(args, 1, (b"RIGHT", b"LEFT"))
    found = _pop_first_of(session, keys, front, count)
    return NULL_ARRAY if found is NO_REPLY else found


@command("BLMPOP", -5, "write blocking", group="list")
def blmpop(session: Session, args: list[bytes]) -> Reply:
    """Take elements from the first list that has any, or wait."""
    keys, front, count = pop_options(args, 2, (b"RIGHT", b"LEFT"))
    seconds = seconds_to_wait(args[1])

    def attempt(keys: list[bytes]) -> Reply:
        return _pop_first_of(session, keys, front, count)

    return session.service.waits.wait(session, keys, LIST, seconds, attempt, NULL_ARRAY)
