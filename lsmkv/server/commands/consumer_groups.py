"""Consumer groups: XGROUP, and what becomes of entries that were delivered."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.server.commands.streams import find_stream, save
from lsmkv.server.consumer_group import (
    Consumer,
    Delivery,
    Group,
    decode_delivery,
    find_group,
    make_group,
    remove_group,
)
from lsmkv.server.encoding import STREAM
from lsmkv.server.numbers import MAX_INT, NOT_AN_INTEGER, to_int, to_int_from
from lsmkv.server.options import Options, in_error
from lsmkv.server.registry import command, container
from lsmkv.server.resp import NULL_ARRAY, OK, CommandError, Reply, syntax_error, wrong_subcommand
from lsmkv.server.session import Session
from lsmkv.server.stream import UNKNOWN, Stream, shown
from lsmkv.server.stream_ids import NO_ID, id_text, parse_id, parse_range, parse_start

_MOST_CLAIMED = MAX_INT // 16
_NEW_CONSUMER = "xgroup-createconsumer"
_ATTEMPTS = 10
"""Deliveries that XAUTOCLAIM looks at for each entry that it may return."""


def no_group(key: bytes, name: bytes) -> CommandError:
    return CommandError(
        f"NOGROUP No such consumer group '{in_error(name)}' for key name '{in_error(key)}'"
    )


def _find(session: Session, key: bytes, name: bytes) -> tuple[Stream | None, Group | None]:
    stream = find_stream(session, key)
    if stream is None:
        return None, None
    return stream, find_group(session.space.records, stream.entry, name)


# Groups and consumers

container("XGROUP", group="stream")


def _stream_and_group(session: Session, args: list[bytes]) -> tuple[Stream, Group | None]:
    stream, group = _find(session, args[2], args[3])
    if stream is None:
        raise CommandError(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want"
            " to use the MKSTREAM option to create an empty stream automatically."
        )
    return stream, group


def _existing(session: Session, args: list[bytes]) -> tuple[Stream, Group]:
    stream, group = _stream_and_group(session, args)
    if group is None:
        raise no_group(args[2], args[3])
    return stream, group


def _group_options(args: list[bytes], creating: bool) -> tuple[bool, int]:
    """``[MKSTREAM] [ENTRIESREAD n]``."""
    make, read = False, UNKNOWN
    options = Options(args[5:], wrong_subcommand(args))
    for word in options:
        if creating and word == b"MKSTREAM":
            make = True
        elif word == b"ENTRIESREAD":
            error = "ERR value for ENTRIESREAD must be positive or -1"
            read = to_int_from(UNKNOWN, options.value(), error, NOT_AN_INTEGER)
        else:
            raise wrong_subcommand(args)
    return make, read


@command(
    "XGROUP CREATE",
    -5,
    "write",
    group="stream",
    usage="<key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <n>]",
)
def xgroup_create(session: Session, args: list[bytes]) -> Reply:
    """Make a consumer group, which gets the entries after an id.  O(1)."""
    make, read = _group_options(args, creating=True)
    if make:
        stream, group = _find(session, args[2], args[3])
    else:
        stream, group = _stream_and_group(session, args)
    if len(args) > 8:
        raise wrong_subcommand(args)
    if args[4] == b"$":
        last = NO_ID if stream is None else stream.last
    else:
        last = parse_id(args[4])
    if group is not None:
        raise CommandError("BUSYGROUP Consumer Group name already exists")
    if stream is None:
        stream = Stream(session.space.records, session.space.make(STREAM))
        save(session, args[2], stream, new=True)
    make_group(session.space, stream.entry, args[3], last, read)
    session.announce("t", "xgroup-create", args[2])
    return OK


@command(
    "XGROUP SETID", -5, "write", group="stream", usage="<key> <group> <id|$> [ENTRIESREAD <n>]"
)
def xgroup_setid(session: Session, args: list[bytes]) -> Reply:
    """Set the id after which a group gets entries.  O(1)."""
    _, read = _group_options(args, creating=False)
    stream, group = _existing(session, args)
    if len(args) not in (5, 7):
        raise wrong_subcommand(args)
    group.last = stream.last if args[4] == b"$" else parse_id(args[4], special=True)
    group.read = read
    group.save()
    session.announce("t", "xgroup-setid", args[2])
    return OK


@command("XGROUP DESTROY", 4, "write", group="stream", usage="<key> <group>")
def xgroup_destroy(session: Session, args: list[bytes]) -> Reply:
    """Remove a group.  Returns whether it existed.  O(1): it is swept later."""
    stream, group = _stream_and_group(session, args)
    if group is None:
        return 0
    remove_group(session.space, stream.entry, group)
    session.announce("t", "xgroup-destroy", args[2])
    session.space.wake(session.database, args[2])
    return 1


@command("XGROUP CREATECONSUMER", 5, "write", group="stream", usage="<key> <group> <consumer>")
def xgroup_createconsumer(session: Session, args: list[bytes]) -> Reply:
    """Make a consumer.  Returns whether it is new.  O(1)."""
    _, group = _existing(session, args)
    if group.consumer(args[4]) is not None:
        return 0
    group.use_consumer(args[4], session.space.now())
    group.save()
    session.announce("t", _NEW_CONSUMER, args[2])
    return 1


@command("XGROUP DELCONSUMER", 5, "write", group="stream", usage="<key> <group> <consumer>")
def xgroup_delconsumer(session: Session, args: list[bytes]) -> Reply:
    """Remove a consumer.  Returns how many deliveries it has not acknowledged.  O(their number)."""
    _, group = _existing(session, args)
    consumer = group.consumer(args[4])
    if consumer is None:
        return 0
    removed = group.remove_consumer(consumer)
    group.save()
    session.announce("t", "xgroup-delconsumer", args[2])
    return removed


# Deliveries


@command("XACK", -4, "write fast", group="stream")
def xack(session: Session, args: list[bytes]) -> Reply:
    """Acknowledge deliveries.  Returns how many were pending.  O(1) for each."""
    _, group = _find(session, args[1], args[2])
    if group is None:
        return 0
    acknowledged = 0
    for id_ in [parse_id(text) for text in args[3:]]:
        delivery = group.delivery(id_)
        if delivery is not None:
            group.acknowledge(id_, delivery)
            acknowledged += 1
    if acknowledged:
        group.save()
    return acknowledged


def _group_of(session: Session, key: bytes, name: bytes) -> tuple[Stream, Group]:
    stream, group = _find(session, key, name)
    if stream is None or group is None:
        raise CommandError(
            f"NOGROUP No such key '{in_error(key)}' or consumer group '{in_error(name)}'"
        )
    return stream, group


@command("XPENDING", -3, "readonly", group="stream")
def xpending(session: Session, args: list[bytes]) -> Reply:
    """Return how many deliveries of a group are not acknowledged, or those in a range of ids."""
    if len(args) == 3:
        return _summary(_group_of(session, args[1], args[2])[1])
    if not 6 <= len(args) <= 9:
        raise syntax_error()
    at, idle = 3, 0
    if args[3].upper() == b"IDLE":
        idle = to_int(args[4])
        if len(args) < 8:
            raise syntax_error()
        at = 5
    count = to_int(args[at + 2])
    start, end = parse_range(args[at], args[at + 1])
    _, group = _group_of(session, args[1], args[2])
    consumer = None
    if at + 3 < len(args):
        consumer = group.consumer(args[at + 3])
        if consumer is None:
            return []
    now = session.space.now()
    found: list[Reply] = []
    ids = group.pending if consumer is None else consumer.pending
    if count <= 0:
        return found
    for id_, record in ids.walk(start, end):
        delivery = decode_delivery(record) if consumer is None else group.delivery(id_)
        if delivery is None or (idle and now - delivery.time < idle):
            continue
        elapsed = max(0, now - delivery.time)
        found.append([id_text(id_), delivery.consumer, elapsed, delivery.deliveries])
        if len(found) == count:
            break
    return found


def _summary(group: Group) -> Reply:
    """The number of deliveries, the first and last id, and the number of each consumer."""
    if group.pending.count == 0:
        return [0, None, None, NULL_ARRAY]
    first = next(group.pending.walk())[0]
    last = next(group.pending.walk(reverse=True))[0]
    consumers = [
        [consumer.name, b"%d" % consumer.pending.count]
        for consumer in group.consumers()
        if consumer.pending.count
    ]
    return [group.pending.count, id_text(first), id_text(last), consumers]


class _ClaimOptions(NamedTuple):
    time: int
    """The delivery time to record for the entries, in milliseconds since 1970."""
    deliveries: int
    """RETRYCOUNT; -1 to count on."""
    force: bool
    just_ids: bool
    last: bytes


def _claim_options(words: list[bytes], now: int) -> _ClaimOptions:
    time = count = -1
    force = just_ids = False
    last = NO_ID
    options = Options(words)
    for word in options:
        if word == b"FORCE":
            force = True
        elif word == b"JUSTID":
            just_ids = True
        elif word in (b"IDLE", b"TIME", b"RETRYCOUNT") and options.left:
            error = f"ERR Invalid {word.decode()} option argument for XCLAIM"
            number = to_int(options.value(), error)
            if word == b"RETRYCOUNT":
                count = number
            else:
                time = now - number if word == b"IDLE" else number
        elif word == b"LASTID" and options.left:
            last = parse_id(options.value())
        else:
            raise CommandError(f"ERR Unrecognized XCLAIM option '{in_error(options.given)}'")
    return _ClaimOptions(time if 0 <= time <= now else now, count, force, just_ids, last)


def _ids_at_start(words: list[bytes]) -> list[bytes]:
    """The ids before the first word that is not an id."""
    ids: list[bytes] = []
    for text in words:
        try:
            ids.append(parse_id(text))
        except CommandError:
            break
    return ids


@command("XCLAIM", -6, "write fast", group="stream")
def xclaim(session: Session, args: list[bytes]) -> Reply:
    """Give deliveries to another consumer.  Returns the entries.  O(1) for each."""
    stream, group = _group_of(session, args[1], args[2])
    least_idle = to_int(args[4], "ERR Invalid min-idle-time argument for XCLAIM")
    ids = _ids_at_start(args[5:])
    now = session.space.now()
    options = _claim_options(args[5 + len(ids) :], now)
    consumers = group.size
    changed = options.last > group.last
    group.last = max(group.last, options.last)
    found: list[Reply] = []
    consumer: Consumer | None = None
    for id_ in ids:
        delivery, record = group.delivery(id_), stream.get(id_)
        if record is None:
            if delivery is not None:
                group.acknowledge(id_, delivery)
                changed = True
            continue
        if delivery is None and not options.force:
            continue
        if delivery is not None and least_idle > 0 and now - delivery.time < least_idle:
            continue
        if consumer is None:
            consumer = group.use_consumer(args[3], now)
        count = options.deliveries
        if count < 0:
            count = 1 if delivery is None else delivery.deliveries
            count += not options.just_ids
        group.deliver(id_, consumer, options.time, count, delivery)
        found.append(id_text(id_) if options.just_ids else shown(id_, record))
    if found or changed:
        group.save()
    if group.size > consumers:
        session.announce("t", _NEW_CONSUMER, args[1])
    return found


@command("XAUTOCLAIM", -6, "write fast", group="stream")
def xautoclaim(session: Session, args: list[bytes]) -> Reply:
    """Give deliveries that are idle for long to another consumer.

    Returns an id to continue from, the entries, and the ids of those that were removed.
    """
    least_idle = to_int(args[4], "ERR Invalid min-idle-time argument for XAUTOCLAIM")
    start = parse_start(args[5])
    count, just_ids = 100, False
    options = Options(args[6:])
    for word in options:
        if word == b"COUNT":
            count = to_int(options.value(), "ERR COUNT must be > 0")
            if not 1 <= count <= _MOST_CLAIMED:
                raise CommandError("ERR COUNT must be > 0")
        elif word == b"JUSTID":
            just_ids = True
        else:
            raise syntax_error()
    stream, group = _group_of(session, args[1], args[2])
    now = session.space.now()
    following, found, removed = NO_ID, [], []
    consumers = group.size
    consumer: Consumer | None = None
    attempts = count * _ATTEMPTS
    for id_, value in group.pending.walk(start):
        if attempts == 0 or count == 0:
            following = id_
            break
        attempts -= 1
        delivery: Delivery = decode_delivery(value)
        record = stream.get(id_)
        if record is None:
            group.acknowledge(id_, delivery)
            removed.append(id_text(id_))
            count -= 1
            continue
        if least_idle > 0 and now - delivery.time < least_idle:
            continue
        if consumer is None:
            consumer = group.use_consumer(args[3], now)
        group.deliver(id_, consumer, now, delivery.deliveries + (not just_ids), delivery)
        found.append(id_text(id_) if just_ids else shown(id_, record))
        count -= 1
    if found or removed:
        group.save()
    if group.size > consumers:
        session.announce("t", _NEW_CONSUMER, args[1])
    return [id_text(following), found, removed]
