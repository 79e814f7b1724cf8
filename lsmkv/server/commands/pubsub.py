"""SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and their opposites, PUBLISH, SPUBLISH and PUBSUB."""

from __future__ import annotations

from functools import partial

from lsmkv.server.globs import matcher
from lsmkv.server.pubsub import CHANNEL, PATTERN, SHARD
from lsmkv.server.registry import command, container
from lsmkv.server.resp import NO_REPLY, CommandError, Reply, wrong_subcommand
from lsmkv.server.session import Session

_MARKS = {CHANNEL: b"", PATTERN: b"p", SHARD: b"s"}


def _count(session: Session, kind: int) -> int:
    kinds = (SHARD,) if kind == SHARD else (CHANNEL, PATTERN)
    return sum(len(session.subscriptions[one]) for one in kinds)


def _subscribe(kind: int, session: Session, args: list[bytes]) -> Reply:
    if kind == SHARD and session.running:  # as in Redis, where a transaction allows the others
        raise CommandError("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
    for name in args[1:]:
        session.service.channels.join(session, name, kind)
        session.confirm([_MARKS[kind] + b"subscribe", name, _count(session, kind)])
    return NO_REPLY


def _unsubscribe(kind: int, session: Session, args: list[bytes]) -> Reply:
    names: list[Reply] = list(args[1:] or sorted(session.subscriptions[kind]))
    for name in names or [None]:
        if name is not None:
            session.service.channels.leave(session, name, kind)
        session.confirm([_MARKS[kind] + b"unsubscribe", name, _count(session, kind)])
    return NO_REPLY


for _kind, _what, _which in (
    (CHANNEL, "channels", ""),
    (PATTERN, "all channels that match patterns", "patterns"),
    (SHARD, "shard channels", ""),
):
    _name = _MARKS[_kind].decode().upper() + "SUBSCRIBE"
    _summary = f"Subscribe to {_what}."
    command(_name, -2, "subscribed", group="pubsub", summary=_summary)(partial(_subscribe, _kind))
    _name = _MARKS[_kind].decode().upper() + "UNSUBSCRIBE"
    _summary = f"End the subscription to some {_which or _what}, or to all."
    command(_name, -1, "subscribed", group="pubsub", summary=_summary)(partial(_unsubscribe, _kind))


@command("PUBLISH", 3, "fast", group="pubsub")
def publish(session: Session, args: list[bytes]) -> Reply:
    """Send a message.  Returns how many subscribers get it."""
    return session.service.channels.publish(args[1], args[2])


@command("SPUBLISH", 3, "fast", group="pubsub")
def spublish(session: Session, args: list[bytes]) -> Reply:
    """Send a message to a shard channel.  Returns how many subscribers get it."""
    return session.service.channels.publish_to_shard(args[1], args[2])


container("PUBSUB", group="pubsub")


def _channels(kind: int, session: Session, args: list[bytes]) -> Reply:
    names = session.service.channels.subscribers[kind]
    if len(args) > 3:
        raise wrong_subcommand(args)
    if len(args) == 2:
        return list(names)
    return list(filter(matcher(args[2]), names))


def _numbers(kind: int, session: Session, args: list[bytes]) -> Reply:
    channels = session.service.channels.subscribers[kind]
    return [one for name in args[2:] for one in (name, len(channels.get(name, ())))]


for _kind, _mark, _which in ((CHANNEL, "", ""), (SHARD, "SHARD", "shard ")):
    _summary = f"Return the {_which}channels with subscribers, all or those that match a pattern."
    _name, _usage = f"PUBSUB {_mark}CHANNELS", "[<pattern>]"
    _run = partial(_channels, _kind)
    command(_name, -2, group="pubsub", usage=_usage, summary=_summary)(_run)
    _summary = f"Return the number of subscribers of each {_which}channel."
    _name, _usage = f"PUBSUB {_mark}NUMSUB", f"[<{_mark.lower()}channel> ...]"
    _run = partial(_numbers, _kind)
    command(_name, -2, group="pubsub", usage=_usage, summary=_summary)(_run)


@command("PUBSUB NUMPAT", 2, "", group="pubsub")
def pubsub_numpat(session: Session, args: list[bytes]) -> Reply:
    """Return the number of patterns with subscribers."""
    return len(session.service.channels.subscribers[PATTERN])
