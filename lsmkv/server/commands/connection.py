"""The connection: HELLO, AUTH, SELECT, RESET, QUIT."""

from __future__ import annotations

import time

from lsmkv.server.acl_log import Refusal
from lsmkv.server.client_info import described
from lsmkv.server.commands.keys import database_at
from lsmkv.server.info import REDIS_VERSION
from lsmkv.server.numbers import to_int
from lsmkv.server.options import Options, in_error
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, PONG, CommandError, Reply, Simple, syntax_error
from lsmkv.server.session import Session

_WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled."


@command("PING", -1, "fast subscribed", group="connection")
def ping(session: Session, args: list[bytes]) -> Reply:
    """Return PONG, or the message that was sent."""
    if len(args) > 2:
        raise CommandError("ERR wrong number of arguments for 'ping' command")
    if session.subscribed and not session.resp3:
        return [b"pong", args[1] if len(args) > 1 else b""]
    return args[1] if len(args) > 1 else PONG


@command("ECHO", 2, "fast", group="connection")
def echo(session: Session, args: list[bytes]) -> Reply:
    """Return the message that was sent."""
    return args[1]


@command("QUIT", -1, "fast no_auth subscribed control", group="connection")
def quit_(session: Session, args: list[bytes]) -> Reply:
    """Close the connection."""
    session.closing = True
    return OK


@command("RESET", 1, "fast no_auth subscribed control", group="connection")
def reset(session: Session, args: list[bytes]) -> Reply:
    """Reset the connection to its initial state."""
    session.leave_transaction()
    session.service.channels.leave_all(session)
    session.service.monitors.discard(session)
    session.monitoring = False
    session.resp3 = False
    session.silent = False
    session.skips &= 1
    session.name = b""
    session.database = session.space.databases[0]
    default = session.service.users.default
    session.become(default, default.open)
    return Simple("RESET")


@command("SELECT", 2, "fast", group="connection")
def select(session: Session, args: list[bytes]) -> Reply:
    """Select one of the 16 databases."""
    session.database = database_at(session, args[1])
    return OK


def _authenticate(session: Session, args: list[bytes], name: bytes, password: bytes) -> None:
    service = session.service
    user = service.users.find(name)
    if user is None or not user.accepts(password):
        context = "toplevel" if session.queued is None else "multi"
        service.acl_log.add(Refusal("auth", context, args[0], name), described(session, args))
        raise CommandError(_WRONG_PASSWORD)
    session.become(user)


@command("AUTH", -2, "fast no_auth", group="connection")
def auth(session: Session, args: list[bytes]) -> Reply:
    """Authenticate with a password, as the user default or as another one."""
    if len(args) > 3:
        raise syntax_error()
    if len(args) == 2 and session.service.users.default.any_password:
        raise CommandError(
            "ERR AUTH <password> called without any password configured for the default user."
            " Are you sure your configuration is correct?"
        )
    _authenticate(session, args, args[1] if len(args) == 3 else b"default", args[-1])
    return OK


@command("HELLO", -1, "fast no_auth", group="connection")
def hello(session: Session, args: list[bytes]) -> Reply:
    """Choose the version of the protocol, 2 or 3.  May also authenticate."""
    resp3 = session.resp3
    if len(args) > 1:
        version = to_int(args[1], "ERR Protocol version is not an integer or out of range")
        if version not in (2, 3):
            raise CommandError("NOPROTO unsupported protocol version")
        resp3 = version == 3
    name: bytes | None = None
    options = Options(args[2:])
    for word in options:
        if word == b"AUTH" and options.left >= 2:
            user, password = options.values(2)
            _authenticate(session, args, user, password)
        elif word == b"SETNAME" and options.left:
            name = checked_name(options.value())
        else:
            raise CommandError(f"ERR Syntax error in HELLO option '{in_error(options.given)}'")
    if session.must_authenticate:
        raise CommandError(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the"
            " HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and"
            " select the RESP protocol version at the same time"
        )
    session.resp3 = resp3
    if name is not None:
        session.name = name
    return {
        b"server": b"redis",
        b"version": REDIS_VERSION.encode(),
        b"proto": 3 if resp3 else 2,
        b"id": session.id,
        b"mode": b"standalone",
        b"role": b"master" if session.space.writable else b"slave",
        b"modules": [],
    }


def checked_name(name: bytes) -> bytes:
    """A name for a connection.  Raises :class:`CommandError` if it would break CLIENT LIST."""
    if any(not 33 <= byte <= 126 for byte in name):
        raise CommandError(
            "ERR Client names cannot contain spaces, newlines or special characters."
        )
    return name


@command("TIME", 1, "fast", group="server")
def time_(session: Session, args: list[bytes]) -> Reply:
    """Return the server's time: seconds since 1970, and microseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return [b"%d" % seconds, b"%d" % (nanoseconds // 1000)]
