"""CLIENT: the connections, by name and id."""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.server.client_info import described
from lsmkv.server.commands.connection import checked_name
from lsmkv.server.numbers import to_int, to_int_from
from lsmkv.server.options import Options, in_error, wait_seconds
from lsmkv.server.registry import command, container
from lsmkv.server.resp import (
    NO_REPLY,
    OK,
    CommandError,
    Reply,
    Verbatim,
    syntax_error,
    wrong_subcommand,
)
from lsmkv.server.session import Session

container("CLIENT", group="connection")


@command("CLIENT ID", 2, group="connection")
def client_id(session: Session, args: list[bytes]) -> Reply:
    """Return the id of this connection.  Ids are never reused."""
    return session.id


@command("CLIENT GETNAME", 2, group="connection")
def client_getname(session: Session, args: list[bytes]) -> Reply:
    """Return the name of this connection."""
    return session.name or None


@command("CLIENT SETNAME", 3, group="connection", usage="<name>")
def client_setname(session: Session, args: list[bytes]) -> Reply:
    """Name this connection, for CLIENT LIST."""
    session.name = checked_name(args[2])
    return OK


@command("CLIENT SETINFO", 4, "no_auth", group="connection", usage="(LIB-NAME|LIB-VER) <text>")
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


_KINDS: dict[bytes, Callable[[Session], bool]] = {
    b"normal": lambda session: not session.subscribed,
    b"pubsub": lambda session: session.subscribed,
    b"master": lambda session: False,
    b"replica": lambda session: False,
    b"slave": lambda session: False,
}


def _of_kind(word: bytes) -> Callable[[Session], bool]:
    """Return the test of a session for the client type with this name."""
    found = _KINDS.get(word.lower())
    if found is None:
        raise CommandError(f"ERR Unknown client type '{in_error(word)}'")
    return found


@command("CLIENT LIST", -2, "admin", group="connection", usage="[TYPE <type> | ID <id> [<id> ...]]")
def client_list(session: Session, args: list[bytes]) -> Reply:
    """Return the connections, one per line: all, those of a type, or those with some ids."""
    sessions = session.service.sessions
    chosen = list(sessions.values())
    option = args[2].upper() if len(args) > 3 else b""
    if option == b"ID":
        numbers = [to_int(word, "ERR Invalid client ID") for word in args[3:]]
        chosen = [sessions[number] for number in numbers if number in sessions]
    elif option == b"TYPE" and len(args) == 4:
        chosen = list(filter(_of_kind(args[3]), chosen))
    elif len(args) != 2:
        raise syntax_error()
    lines = [described(one, args if one is session else None) + "\n" for one in chosen]
    return Verbatim("".join(lines).encode())


@command("CLIENT INFO", 2, group="connection")
def client_info(session: Session, args: list[bytes]) -> Reply:
    """Return the line of this connection in CLIENT LIST."""
    return Verbatim(described(session, args).encode() + b"\n")


@command("CLIENT KILL", -3, "admin", group="connection", usage="<ip:port> | <option> <value> [...]")
def clientkill(session: Session, args: list[bytes]) -> Reply:
    """Close connections: by address, or by ID, ADDR, LADDR, TYPE, USER, SKIPME."""
    sessions = list(session.service.sessions.values())
    if len(args) == 3:
        found = [one for one in sessions if one.address == args[2].decode("latin-1")]
        if not found:
            raise CommandError("ERR No such client")
        kill(session, found)
        return OK
    wanted: dict[bytes, Callable[[Session], bool]] = {}
    options = Options(args[2:])
    for name in options:
        wanted[name] = _condition(session, name, options.value())  # the last of equal ones wins
    wanted.setdefault(b"SKIPME", lambda one: one is not session)
    chosen = [one for one in sessions if all(holds(one) for holds in wanted.values())]
    kill(session, chosen)
    return len(chosen)


def _condition(session: Session, name: bytes, value: bytes) -> Callable[[Session], bool]:
    """An option of CLIENT KILL, as a function that selects sessions."""
    text = value.decode("latin-1")
    match name:
        case b"ID":
            number = to_int_from(1, value, "ERR client-id should be greater than 0")
            return lambda one: one.id == number
        case b"ADDR":
            return lambda one: one.address == text
        case b"LADDR":
            return lambda one: one.local_address == text
        case b"TYPE":
            return _of_kind(value)
        case b"USER":
            user = session.service.users.find(value)
            if user is None:
                raise CommandError(f"ERR No such user '{in_error(value)}'")
            return lambda one: one.user is user
        case b"SKIPME" if text.lower() == "yes":
            return lambda one: one is not session
        case b"SKIPME" if text.lower() == "no":
            return lambda one: True
    raise syntax_error()


def kill(session: Session, sessions: list[Session]) -> None:
    """Close connections at once; the client's own once its reply is sent."""
    for one in sessions:
        one.closing = True
        if one is not session:
            one.cut()
            session.service.close_session(one)  # it gets no more output of this tick


def _mode(args: list[bytes], modes: tuple[bytes, bytes], error: str) -> bytes:
    """The word that may follow a subcommand's first argument; by default the first of them."""
    if len(args) > 4:
        raise wrong_subcommand(args)
    mode = args[3].upper() if len(args) == 4 else modes[0]
    if mode not in modes:
        raise CommandError(error)
    return mode


@command("CLIENT PAUSE", -3, "admin", group="connection", usage="<timeout> [WRITE|ALL]")
def client_pause(session: Session, args: list[bytes]) -> Reply:
    """Delay requests for some milliseconds: all, or only those that write."""
    modes = (b"ALL", b"WRITE")
    mode = _mode(args, modes, "ERR CLIENT PAUSE mode must be WRITE or ALL")
    session.service.pause_clients(wait_seconds(args[2]), everything=mode == b"ALL")
    return OK


@command("CLIENT UNPAUSE", 2, "admin", group="connection")
def client_unpause(session: Session, args: list[bytes]) -> Reply:
    """End a pause, and run the requests that have waited."""
    session.service.schedule(session.service.end_pause)
    return OK


@command("CLIENT REPLY", 3, group="connection", usage="(ON|OFF|SKIP)")
def client_reply(session: Session, args: list[bytes]) -> Reply:
    """Turn replies ON or OFF, or SKIP the reply of the next command."""
    match args[2].upper():
        case b"ON":
            session.silent = False
            session.skips &= 2
            return OK
        case b"OFF":
            session.silent = True
        case b"SKIP":
            if not session.silent:
                session.skips |= 2
        case _:
            raise syntax_error()
    return NO_REPLY


@command("CLIENT UNBLOCK", -3, "admin", group="connection", usage="<id> [TIMEOUT|ERROR]")
def client_unblock(session: Session, args: list[bytes]) -> Reply:
    """Unblock a client, as if it had timed out or (ERROR) with an error."""
    modes = (b"TIMEOUT", b"ERROR")
    mode = _mode(args, modes, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    other = session.service.sessions.get(to_int(args[2]))
    if other is None:
        return 0
    return int(session.service.waits.unblock(other, error=mode == b"ERROR"))


def _switch(word: bytes) -> bool:
    if word.upper() not in (b"ON", b"OFF"):
        raise syntax_error()
    return word.upper() == b"ON"


@command("CLIENT NO-EVICT", 3, "admin", group="connection", usage="(ON|OFF)")
def client_no_evict(session: Session, args: list[bytes]) -> Reply:
    """Return OK: no client is ever evicted."""
    session.no_evict = _switch(args[2])
    return OK


@command("CLIENT NO-TOUCH", 3, group="connection", usage="(ON|OFF)")
def client_no_touch(session: Session, args: list[bytes]) -> Reply:
    """Return OK: reading a key changes nothing about it."""
    _switch(args[2])
    return OK
