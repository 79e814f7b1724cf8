"""SUBSCRIBE, PSUBSCRIBE, UNSUBSCRIBE, PUNSUBSCRIBE, PUBLISH and PUBSUB."""

from __future__ import annotations

from functools import partial

from lsmkv.server.globs import matcher
from lsmkv.server.registry import command, container
from lsmkv.server.resp import NO_REPLY, Reply, wrong_subcommand
from lsmkv.server.session import Session


def _count(session: Session) -> int:
    return len(session.channels) + len(session.patterns)


def _subscribe(pattern: bool, session: Session, args: list[bytes]) -> Reply:
    word = b"psubscribe" if pattern else b"subscribe"
    for name in args[1:]:
        session.service.channels.join(session, name, pattern)
        session.confirm([word, name, _count(session)])
    return NO_REPLY


def _unsubscribe(pattern: bool, session: Session, args: list[bytes]) -> Reply:
    word = b"punsubscribe" if pattern else b"unsubscribe"
    names = args[1:] or sorted(session.patterns if pattern else session.channels)
    for name in names:
        session.service.channels.leave(session, name, pattern)
        session.confirm([word, name, _count(session)])
    if not names:
        session.confirm([word, None, _count(session)])
    return NO_REPLY


for _name, _arity, _run, _pattern, _summary in (
    ("SUBSCRIBE", -2, _subscribe, False, "Subscribe to channels."),
    ("PSUBSCRIBE", -2, _subscribe, True, "Subscribe to all channels that match patterns."),
    ("UNSUBSCRIBE", -1, _unsubscribe, False, "End the subscription to some channels, or to all."),
    ("PUNSUBSCRIBE", -1, _unsubscribe, True, "End the subscription to some patterns, or to all."),
):
    command(_name, _arity, "subscribed", group="pubsub", summary=_summary)(partial(_run, _pattern))


@command("PUBLISH", 3, "fast", group="pubsub")
def publish(session: Session, args: list[bytes]) -> Reply:
    """Send a message.  Returns how many subscribers get it."""
    return session.service.channels.publish(args[1], args[2])


container("PUBSUB", group="pubsub")


@command("PUBSUB CHANNELS", -2, group="pubsub", usage="[<pattern>]")
def pubsub_channels(session: Session, args: list[bytes]) -> Reply:
    """Return the channels with subscribers, all or those that match a pattern."""
    names = session.service.channels.channels
    if len(args) > 3:
        raise wrong_subcommand(args)
    if len(args) == 2:
        return list(names)
    return list(filter(matcher(args[2]), names))


@command("PUBSUB NUMSUB", -2, group="pubsub", usage="[<channel> ...]")
def pubsub_numsub(session: Session, args: list[bytes]) -> Reply:
    """Return the number of subscribers of each channel."""
    channels = session.service.channels.channels
    return [one for name in args[2:] for one in (name, len(channels.get(name, ())))]


@command("PUBSUB NUMPAT", 2, "", group="pubsub")
def pubsub_numpat(session: Session, args: list[bytes]) -> Reply:
    """Return the number of patterns with subscribers."""
    return len(session.service.channels.patterns)
