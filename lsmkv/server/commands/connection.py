"""The connection itself: HELLO, AUTH, SELECT, CLIENT, and what is asked about commands."""

from __future__ import annotations

import hmac
import time

from lsmkv.server.command import Command, Table
from lsmkv.server.commands.keys import database_at
from lsmkv.server.info import REDIS_VERSION
from lsmkv.server.numbers import to_int
from lsmkv.server.registry import command, container
from lsmkv.server.resp import (
    NO_REPLY,
    OK,
    PONG,
    CommandError,
    Members,
    Reply,
    Simple,
    Verbatim,
    syntax_error,
)
from lsmkv.server.session import Session

_WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled."


@command("PING", -1, "fast pubsub", group="connection")
def ping(session: Session, args: list[bytes]) -> Reply:
    """PONG, or the message that was sent."""
    if len(args) > 2:
        raise CommandError("ERR wrong number of arguments for 'ping' command")
    if session.subscribed and not session.resp3:
        return [b"pong", args[1] if len(args) > 1 else b""]
    return args[1] if len(args) > 1 else PONG


@command("ECHO", 2, "fast", group="connection")
def echo(session: Session, args: list[bytes]) -> Reply:
    """The message that was sent."""
    return args[1]


@command("QUIT", -1, "fast noauth pubsub control", group="connection")
def quit_(session: Session, args: list[bytes]) -> Reply:
    """Close the connection."""
    session.closing = True
    return OK


@command("RESET", 1, "fast noauth pubsub control", group="connection")
def reset(session: Session, args: list[bytes]) -> Reply:
    """Make the connection as it was at first."""
    session.leave_transaction()
    session.service.channels.leave_all(session)
    session.service.monitors.discard(session)
    session.monitoring = False
    session.resp3 = False
    session.silent = False
    session.name = b""
    session.database = session.space.databases[0]
    session.authenticated = not session.service.settings.password
    return Simple("RESET")


@command("SELECT", 2, "fast", group="connection")
def select(session: Session, args: list[bytes]) -> Reply:
    """Use another of the 16 databases."""
    session.database = database_at(session, args[1])
    return OK


def _authenticate(session: Session, user: bytes, password: bytes) -> None:
    expected = session.service.settings.password
    right = not expected or hmac.compare_digest(
        password, expected.encode("utf-8", "surrogateescape")
    )
    if user != b"default" or not right:
        raise CommandError(_WRONG_PASSWORD)
    session.authenticated = True


@command("AUTH", -2, "fast noauth", group="connection")
def auth(session: Session, args: list[bytes]) -> Reply:
    """Say the password."""
    if len(args) > 3:
        raise syntax_error()
    if len(args) == 2 and not session.service.settings.password:
        raise CommandError(
            "ERR AUTH <password> called without any password configured for the default user."
            " Are you sure your configuration is correct?"
        )
    _authenticate(session, args[1] if len(args) == 3 else b"default", args[-1])
    return OK


@command("HELLO", -1, "fast noauth", group="connection")
def hello(session: Session, args: list[bytes]) -> Reply:
    """Choose the protocol's version, 2 or 3, and perhaps say the password."""
    resp3 = session.resp3
    if len(args) > 1:
        version = to_int(args[1], "ERR Protocol version is not an integer or out of range")
        if version not in (2, 3):
            raise CommandError("NOPROTO unsupported protocol version")
        resp3 = version == 3
    name: bytes | None = None
    at = 2
    while at < len(args):
        word = args[at].upper()
        if word == b"AUTH" and at + 2 < len(args):
            _authenticate(session, args[at + 1], args[at + 2])
            at += 3
        elif word == b"SETNAME" and at + 1 < len(args):
            name = _checked_name(args[at + 1])
            at += 2
        else:
            shown = args[at].partition(b"\0")[0].decode("utf-8", "surrogateescape")
            raise CommandError(f"ERR Syntax error in HELLO option '{shown}'")
    if not session.authenticated:
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


def _checked_name(name: bytes) -> bytes:
    if any(not 33 <= byte <= 126 for byte in name):
        raise CommandError(
            "ERR Client names cannot contain spaces, newlines or special characters."
        )
    return name


@command("TIME", 1, "fast", group="server")
def time_(session: Session, args: list[bytes]) -> Reply:
    """The time of the server: seconds since 1970, and microseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return [b"%d" % seconds, b"%d" % (nanoseconds // 1000)]


# CLIENT

container("CLIENT", "noauth", group="connection")


@command("CLIENT ID", 2, "fast", group="connection")
def client_id(session: Session, args: list[bytes]) -> Reply:
    """The number of this connection, which no other had."""
    return session.id


@command("CLIENT GETNAME", 2, "fast", group="connection")
def client_getname(session: Session, args: list[bytes]) -> Reply:
    """The name that this connection was given."""
    return session.name or None


@command("CLIENT SETNAME", 3, "fast", group="connection")
def client_setname(session: Session, args: list[bytes]) -> Reply:
    """Give this connection a name, for CLIENT LIST."""
    session.name = _checked_name(args[2])
    return OK


@command("CLIENT SETINFO", 4, "fast noauth", group="connection")
def client_setinfo(session: Session, args: list[bytes]) -> Reply:
    """Note which library the client is, for CLIENT LIST."""
    attribute = args[2].decode("latin-1").lower()
    if attribute not in session.library:
        raise CommandError(f"ERR Unrecognized option '{attribute}'")
    if any(not 33 <= byte <= 126 for byte in args[3]):
        raise CommandError(
            f"ERR {attribute} cannot contain spaces, newlines or special characters."
        )
    session.library[attribute] = args[3]
    return OK


def _described(session: Session) -> str:
    now = time.monotonic()
    kind = "P" if session.subscribed else "O" if session.monitoring else "N"
    flags = kind if kind != "N" else "x" if session.queued is not None else "N"
    fields = {
        "id": session.id,
        "addr": session.address,
        "laddr": session.local_address,
        "name": session.name.decode("latin-1"),
        "age": int(now - session.created),
        "idle": int(now - session.last_active),
        "flags": "b" if session.wait is not None else flags,
        "db": session.database.index,
        "sub": len(session.channels),
        "psub": len(session.patterns),
        "multi": -1 if session.queued is None else len(session.queued),
        "watch": len(session.watching),
        "obl": session.unsent,
        "cmd": session.last_command.lower().replace(" ", "|"),
        "user": "default",
        "resp": 3 if session.resp3 else 2,
        "lib-name": session.library["lib-name"].decode("latin-1"),
        "lib-ver": session.library["lib-ver"].decode("latin-1"),
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())


@command("CLIENT LIST", -2, "admin", group="connection")
def client_list(session: Session, args: list[bytes]) -> Reply:
    """The connections, one a line."""
    chosen = list(session.service.sessions.values())
    if len(args) >= 4 and args[2].upper() == b"ID":
        wanted = {to_int(word, "ERR Invalid client ID") for word in args[3:]}
        chosen = [one for one in chosen if one.id in wanted]
    elif len(args) == 4 and args[2].upper() == b"TYPE":
        kind = args[3].lower()
        if kind not in (b"normal", b"pubsub", b"master", b"replica", b"slave"):
            raise CommandError(f"ERR Unknown client type '{kind.decode('latin-1')}'")
        chosen = [one for one in chosen if (b"pubsub" if one.subscribed else b"normal") == kind]
    elif len(args) != 2:
        raise syntax_error()
    return Verbatim("".join(_described(one) + "\n" for one in chosen).encode())


@command("CLIENT INFO", 2, "", group="connection")
def client_info(session: Session, args: list[bytes]) -> Reply:
    """This connection, as CLIENT LIST has it."""
    return Verbatim(_described(session).encode() + b"\n")


@command("CLIENT KILL", -3, "admin", group="connection")
def client_kill(session: Session, args: list[bytes]) -> Reply:
    """Close connections: by address, or by ID, ADDR, LADDR, TYPE, USER, SKIPME."""
    sessions = list(session.service.sessions.values())
    if len(args) == 3:
        for one in sessions:
            if one.address == args[2].decode("latin-1"):
                _kill(session, one)
                return OK
        raise CommandError("ERR No such client")
    if len(args) % 2:
        raise syntax_error()
    skip_me = True
    for name, value in zip(args[2::2], args[3::2], strict=True):
        text = value.decode("latin-1")
        match name.upper():
            case b"ID":
                number = to_int(value, "ERR client-id should be greater than 0")
                sessions = [one for one in sessions if one.id == number]
            case b"ADDR":
                sessions = [one for one in sessions if one.address == text]
            case b"LADDR":
                sessions = [one for one in sessions if one.local_address == text]
            case b"TYPE" if text.lower() in ("normal", "pubsub"):
                kind = text.lower() == "pubsub"
                sessions = [one for one in sessions if one.subscribed == kind]
            case b"USER":
                sessions = sessions if text == "default" else []
            case b"SKIPME" if text.lower() in ("yes", "no"):
                skip_me = text.lower() == "yes"
            case _:
                raise syntax_error()
    count = 0
    for one in sessions:
        if one is not session or not skip_me:
            _kill(session, one)
            count += 1
    return count


def _kill(session: Session, other: Session) -> None:
    if other is session:
        session.closing = True
    else:
        other.closing = True
        session.service.waits.remove(other)  # what comes in this tick is not for it any more
        other.disconnect()


@command("CLIENT REPLY", 3, "nomulti", group="connection")
def client_reply(session: Session, args: list[bytes]) -> Reply:
    """Whether commands are answered: ON, OFF, or SKIP for the next one."""
    match args[2].upper():
        case b"ON":
            session.silent = False
            return OK
        case b"OFF":
            session.silent = True
        case b"SKIP":
            if not session.silent:
                session.skip_replies = 1
        case _:
            raise syntax_error()
    return NO_REPLY


@command("CLIENT UNBLOCK", -3, "admin", group="connection")
def client_unblock(session: Session, args: list[bytes]) -> Reply:
    """Let a blocked client go on, as after its time or (ERROR) with an error."""
    number = to_int(args[2])
    mode = args[3].upper() if len(args) == 4 else b"TIMEOUT"
    if len(args) > 4 or mode not in (b"TIMEOUT", b"ERROR"):
        raise CommandError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    other = session.service.sessions.get(number)
    if other is None:
        return 0
    return int(session.service.waits.unblock(other, error=mode == b"ERROR"))


@command("CLIENT NO-EVICT", 3, "admin", group="connection")
def client_no_evict(session: Session, args: list[bytes]) -> Reply:
    """Accepted: no client is evicted."""
    if args[2].upper() not in (b"ON", b"OFF"):
        raise syntax_error()
    return OK


@command("CLIENT NO-TOUCH", 3, "", group="connection")
def client_no_touch(session: Session, args: list[bytes]) -> Reply:
    """Accepted: reading a key changes nothing about it."""
    if args[2].upper() not in (b"ON", b"OFF"):
        raise syntax_error()
    return OK


# COMMAND


@command("COMMAND", -1, "", group="server")
def command_(session: Session, args: list[bytes]) -> Reply:
    """All commands, with their arity, flags and keys."""
    return [_command_info(one) for one in _offered(session).values()]


def _offered(session: Session) -> Table:
    """The commands that do something: those of Redis that only answer an error are left out."""
    table = session.service.table
    return {name: one for name, one in table.items() if one.group != "missing"}


def _command_info(one: Command) -> Reply:
    flags = one.flags - {"noauth", "control", "nomulti", "fast"}
    flags |= {"fast"} & one.flags
    return [
        one.name.lower().replace(" ", "|").encode(),
        one.arity,
        Members(Simple(flag) for flag in sorted(flags)),
        one.first,
        one.last,
        one.step,
        Members([Simple(f"@{one.group.replace('-', '')}")]),
        [],
        [],
        [_command_info(inner) for inner in one.subcommands.values()],
    ]


@command("COMMAND COUNT", 2, "", group="server")
def command_count(session: Session, args: list[bytes]) -> Reply:
    """How many commands there are."""
    return len(_offered(session))


@command("COMMAND LIST", -2, "", group="server")
def command_list(session: Session, args: list[bytes]) -> Reply:
    """Their names."""
    return [one.name.lower().encode() for one in _offered(session).values()]


@command("COMMAND INFO", -2, "", group="server")
def command_info(session: Session, args: list[bytes]) -> Reply:
    """Some commands, as COMMAND has them."""
    names = args[2:] or list(_offered(session))
    found = [_find(session, name) for name in names]
    return [None if one is None else _command_info(one) for one in found]


def _find(session: Session, name: bytes) -> Command | None:
    outer, _, inner = name.upper().partition(b"|")
    one = session.service.table.get(outer)
    return one.subcommands.get(inner) if one is not None and inner else one


def _documented(one: Command) -> dict[Reply, Reply]:
    fields: dict[Reply, Reply] = {
        b"summary": one.summary.encode(),
        b"since": b"1.0.0",
        b"group": one.group.encode(),
    }
    if one.subcommands:
        fields[b"subcommands"] = {
            inner.name.lower().replace(" ", "|").encode(): _documented(inner)
            for inner in one.subcommands.values()
        }
    return fields


@command("COMMAND DOCS", -2, "", group="server")
def command_docs(session: Session, args: list[bytes]) -> Reply:
    """What commands do, one sentence each."""
    names = args[2:] or list(_offered(session))
    found = [_find(session, name) for name in names]
    return {
        one.name.lower().replace(" ", "|").encode(): _documented(one)
        for one in found
        if one is not None
    }


@command("COMMAND GETKEYS", -3, "", group="server")
def command_getkeys(session: Session, args: list[bytes]) -> Reply:
    """The keys in a request."""
    request = args[2:]
    one = session.service.table.get(request[0].upper())
    if one is None:
        raise CommandError("ERR Invalid command specified")
    if not one.accepts(len(request)):
        raise CommandError("ERR Invalid number of arguments specified for command")
    keys = one.keys_of(request)
    if not keys:
        raise CommandError("ERR The command has no key arguments")
    return keys
