"""Refusal of requests before they run, and the errors for it."""

from __future__ import annotations

from lsmkv.server.acl_log import Refusal
from lsmkv.server.client_info import described
from lsmkv.server.command import MISSING, Command
from lsmkv.server.resp import CommandError, busy_error, full_error, read_only_error
from lsmkv.server.session import Session

_LACKS = "lsmkv serve has no"
_NOT_PERMITTED = {
    "command": "run the '{}' command",
    "key": "access one of the keys used as arguments",
    "channel": "access one of the channels used as arguments",
}
_MOST_SHOWN = 128
"""Bytes of a request that an error shows."""


def check_allowed(session: Session, found: Command, request: list[bytes]) -> None:
    """Raise the error of a command that cannot run now."""
    flags = found.flags
    if found.subcommands and len(request) > 1:
        session.last_command = None
        raise _unknown_subcommand(found, request[1])
    if not found.accepts(len(request)):
        raise CommandError(f"ERR wrong number of arguments for '{found.full_name}' command")
    if session.limited and session.must_authenticate and "no_auth" not in flags:
        raise CommandError("NOAUTH Authentication required.")
    busy = session.service.busy
    if busy is not None and "allow_busy" not in found.properties.flags:
        raise busy_error(busy.script.is_library)
    if session.queued is not None and "no_multi" in flags:
        raise CommandError("ERR Command not allowed inside a transaction")
    if session.limited:
        context = "toplevel" if session.queued is None else "multi"
        reason = denied(session, found, request, context)
        if reason:
            what = _NOT_PERMITTED[reason].format(found.full_name)
            raise CommandError(f"NOPERM this user has no permissions to {what}")
    if found.writes and not session.space.writable:
        raise read_only_error()
    if session.service.full and "denyoom" in found.properties.flags:
        raise full_error()
    if session.subscribed and not session.resp3 and "subscribed" not in flags:
        raise CommandError(
            f"ERR Can't execute '{found.full_name}': only (P|S)SUBSCRIBE /"
            " (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
        )
    if session.monitoring and (
        flags & {"readonly", "write"} or found.name in ("PUBLISH", "SPUBLISH")
    ):
        raise CommandError("ERR Replica can't interact with the keyspace")


def denied(session: Session, found: Command, request: list[bytes], context: str) -> str:
    """Return why a session's user may not run a command: ``command``, ``key`` or ``channel``; empty
    if it may.  A refusal is logged."""
    denial = session.user.denial(found, request)
    if denial is None:
        return ""
    refusal = Refusal(denial.reason, context, denial.name, session.user.name)
    session.service.acl_log.add(refusal, described(session, request))
    return denial.reason


def _unknown_subcommand(found: Command, name: bytes) -> CommandError:
    shown = name.partition(b"\0")[0][:_MOST_SHOWN].decode("utf-8", "surrogateescape")
    missing = MISSING.get(found.name.encode() + b"|" + name.upper())
    hint = f". Try {found.name} HELP." if missing is None else f": {_LACKS} {missing}"
    return CommandError(f"ERR unknown subcommand '{shown}'{hint}")


def unknown_command(request: list[bytes]) -> CommandError:
    """The error of a request that names no command."""
    name, *words = (word.partition(b"\0")[0] for word in request)
    missing = MISSING.get(name.upper())
    if missing is not None:
        return CommandError(f"ERR unknown command '{name.decode()}': {_LACKS} {missing}")
    shown = b""
    for word in words:
        if len(shown) >= _MOST_SHOWN:
            break
        shown += b"'%b' " % word[: _MOST_SHOWN - len(shown)]
    text = b"ERR unknown command '%b', with args beginning with: %b" % (name[:_MOST_SHOWN], shown)
    return CommandError(text.decode("utf-8", "surrogateescape"))
