"""The fields of a client in CLIENT LIST."""

from __future__ import annotations

import time

from lsmkv.server.pubsub import CHANNEL, PATTERN, SHARD
from lsmkv.server.session import Session

_SESSION_BYTES = 5400
"""Memory of an idle connection, roughly, as measured: see ``docs/serve.md``."""


def _flags(session: Session) -> str:
    flags = {
        "O": session.monitoring,
        "P": session.subscribed,
        "x": session.queued is not None,
        "b": session.wait is not None or session.postponed,
        "d": session.changed,
        "c": session.closing,
        "U": session.address.endswith(":0"),  # no client has port 0: it is a Unix socket
        "e": session.no_evict,
    }
    return "".join(flag for flag, holds in flags.items() if holds) or "N"


def described(session: Session, request: list[bytes] | None) -> str:
    """A line of CLIENT LIST; ``request`` is the running command, if it is this session's."""
    now = time.monotonic()
    argument_bytes = sum(map(len, request or ()))
    # As received: the figures that a client asks about itself include the request that asks.
    request_bytes = sum(len(b"$%d\r\n%b\r\n" % (len(word), word)) for word in request or ())
    unread = session.unread() + (len(b"*%d\r\n" % len(request)) + request_bytes if request else 0)
    queued = session.queued or []
    queued_bytes = sum(len(word) for _, words in queued for word in words)
    last = session.last_command
    fields = {
        "id": session.id,
        "addr": session.address,
        "laddr": session.local_address,
        "fd": session.descriptor,
        "name": session.name.decode("latin-1"),
        "age": int(now - session.created),
        "idle": int(now - session.last_active),
        "flags": _flags(session),
        "db": session.database.index,
        "sub": len(session.subscriptions[CHANNEL]),
        "psub": len(session.subscriptions[PATTERN]),
        "ssub": len(session.subscriptions[SHARD]),
        "multi": -1 if session.queued is None else len(queued),
        "qbuf": unread,
        "qbuf-free": 0,
        "argv-mem": argument_bytes,
        "multi-mem": queued_bytes,
        "rbs": 0,
        "rbp": 0,
        "obl": 0,
        "oll": len(session.out) + session.held,
        "omem": session.unsent,
        "tot-mem": _SESSION_BYTES + unread + argument_bytes + queued_bytes + session.unsent,
        "events": "rw" if session.unsent else "r",
        "cmd": "NULL" if last is None else last.full_name,
        "user": session.user.name.decode("latin-1"),
        "redir": -1,
        "resp": 3 if session.resp3 else 2,
        "watch": len(session.watching),
        "lib-name": session.library["lib-name"].decode("latin-1"),
        "lib-ver": session.library["lib-ver"].decode("latin-1"),
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())
