"""MULTI, EXEC, DISCARD, WATCH, UNWATCH.

The commands between MULTI and EXEC run one after another, with no other client's command between
them.  They share one record of the log: after a crash either all of their writes are there, or
none.
"""

from __future__ import annotations

from functools import partial

from lsmkv.server.admission import denied
from lsmkv.server.command import Command
from lsmkv.server.registry import command
from lsmkv.server.resp import NO_REPLY, NULL_ARRAY, OK, CommandError, Reply
from lsmkv.server.session import Session

_NO_LONGER_PERMITTED = (
    "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC"
    " call. This command is no longer allowed for the following reason: "
)
_REASONS = {
    "command": "no permission to execute the command or subcommand",
    "key": "no permission to touch the specified keys",
    "channel": "no permission to access one of the channels used as arguments",
}


@command("MULTI", 1, "fast control", group="transactions")
def multi(session: Session, args: list[bytes]) -> Reply:
    """Begin a transaction: the commands that follow are queued."""
    if session.queued is not None:
        raise CommandError("ERR MULTI calls can not be nested")
    session.queued = []
    session.refused = False
    return OK


@command("EXEC", 1, "control", group="transactions")
def exec_(session: Session, args: list[bytes]) -> Reply:
    """Run the queued commands.  Returns null if a watched key has changed."""
    queued = session.queued
    if queued is None:
        raise CommandError("ERR EXEC without MULTI")
    refused = session.refused
    changed = session.changed or _watched_expired(session)
    if refused or changed:
        session.leave_transaction()
    if refused:
        raise CommandError("EXECABORT Transaction discarded because of previous errors.")
    if changed:
        return NULL_ARRAY
    session.unwatch()
    try:
        _run(session, queued)
    finally:
        session.leave_transaction()
    return NO_REPLY


def _run(session: Session, queued: list[tuple[Command, list[bytes]]]) -> None:
    """Run the commands of a transaction, and answer them with one array.

    The replies are written one after another, as they come: SUBSCRIBE answers once for each
    channel, and CLIENT REPLY OFF silences the commands after it.
    """
    service = session.service
    start = len(session.out)
    answers = not session.silent and not session.skips & 1
    session.running = True
    service.executing = any(found.writes or found.runs_script for found, _ in queued)
    if answers:
        session.write(b"*%d\r\n" % len(queued))
    _go_on(session, queued, 0, start if answers else -1)


def _go_on(
    session: Session, queued: list[tuple[Command, list[bytes]]], first: int, start: int
) -> None:
    """Run the commands from ``first`` on; their answers are in ``out`` from ``start`` on, unless
    that is negative.  Go on later if one of them is a script that takes long."""
    service = session.service
    try:
        for at in range(first, len(queued)):
            found, request = queued[at]
            if session.limited and (reason := denied(session, found, request, "multi")):
                session.reply(CommandError(_NO_LONGER_PERMITTED + _REASONS[reason]))
                continue
            service.answer(session, found, request)
            if session.evaluating:
                session.after_script = partial(_go_on, session, queued, at + 1, start)
                return
            if service.monitors:
                service.show(session, found, request)
        if start >= 0 and service.executing and session.space.uncertain:
            session.answer_as_one(start)
    finally:
        if not session.evaluating:
            session.running = service.executing = False


def _watched_expired(session: Session) -> bool:
    """True if a watched key has expired, which is noticed only by looking the key up."""
    for index, key in list(session.watching):
        session.space.find(session.space.databases[index], key)
    return session.changed


@command("DISCARD", 1, "fast control", group="transactions")
def discard(session: Session, args: list[bytes]) -> Reply:
    """Drop the queued commands."""
    if session.queued is None:
        raise CommandError("ERR DISCARD without MULTI")
    session.leave_transaction()
    return OK


@command("WATCH", -2, "fast control", group="transactions")
def watch(session: Session, args: list[bytes]) -> Reply:
    """Watch keys: the next EXEC runs only if none of them changes before it."""
    if session.queued is not None:
        raise CommandError("ERR WATCH inside MULTI is not allowed")
    for key in args[1:]:
        place = (session.database.index, key)
        if session.service.busy is None:
            session.space.find(session.database, key)  # an expired key changes now, not later
        session.space.watched.setdefault(place, set()).add(session.mark_changed)
        session.watching.add(place)
    return OK


@command("UNWATCH", 1, "fast", group="transactions")
def unwatch(session: Session, args: list[bytes]) -> Reply:
    """Stop watching all keys."""
    session.unwatch()
    return OK
