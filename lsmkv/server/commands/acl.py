"""ACL: the users, and what they may do."""

from __future__ import annotations

import logging
import secrets
import time

from lsmkv.server.acl import CATEGORIES, Selector, User
from lsmkv.server.commands.clients import kill
from lsmkv.server.numbers import to_int
from lsmkv.server.options import in_error
from lsmkv.server.registry import command, container
from lsmkv.server.resp import OK, CommandError, Members, Reply, wrong_subcommand
from lsmkv.server.session import Session

_log = logging.getLogger("lsmkv.server")
_MOST_BITS = 4096
_NO_FILE = (
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users"
    " via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis"
    " configuration file set) in order to store users in the Redis configuration."
)

container("ACL", group="server")


@command("ACL SETUSER", -3, "admin", group="server", usage="<username> [<rule> ...]")
def acl_setuser(session: Session, args: list[bytes]) -> Reply:
    """Make a user, or change it by rules: all of them, or none."""
    service = session.service
    user = service.users.change(args[2], args[3:])
    service.apply_rights()
    lost = [
        one
        for one in service.sessions.values()
        if one.user is user and not user.permits_channels(one.subscriptions)
    ]
    kill(session, lost)
    return OK


@command("ACL DELUSER", -3, "admin", group="server", usage="<username> [<username> ...]")
def acl_deluser(session: Session, args: list[bytes]) -> Reply:
    """Remove users, and close their connections.  Returns how many there were."""
    removed = session.service.users.remove(args[2:])
    _close_removed(session)
    return removed


def _close_removed(session: Session) -> None:
    """Apply the rights of users, and close the connections of those that there are no more."""
    users = session.service.users
    theirs = [
        one
        for one in session.service.sessions.values()
        if users.find(one.user.name) is not one.user
    ]
    session.service.apply_rights()
    kill(session, theirs)


def _user(session: Session, name: bytes) -> User:
    """The user with this name.  Raises :class:`CommandError` if there is none."""
    user = session.service.users.find(name)
    if user is None:
        raise CommandError(f"ERR User '{in_error(name)}' not found")
    return user


@command("ACL GETUSER", 3, "admin", group="server", usage="<username>")
def acl_getuser(session: Session, args: list[bytes]) -> Reply:
    """Return the flags, passwords and rules of a user."""
    user = session.service.users.find(args[2])
    if user is None:
        return None
    fields: dict[Reply, Reply] = {
        b"flags": Members(user.flags()),
        b"passwords": list(user.passwords),
    }
    others: list[Reply] = [_described(one) for one in user.selectors[1:]]
    return fields | _described(user.selectors[0]) | {b"selectors": others}


def _described(selector: Selector) -> dict[Reply, Reply]:
    return {
        b"commands": selector.commands,
        b"keys": selector.keys,
        b"channels": selector.channels,
    }


@command("ACL LIST", 2, "admin", group="server")
def acl_list(session: Session, args: list[bytes]) -> Reply:
    """Return the users, each with its rules as in a file of users."""
    return [user.line() for user in session.service.users.all()]


@command("ACL USERS", 2, "admin", group="server")
def acl_users(session: Session, args: list[bytes]) -> Reply:
    """Return the names of the users."""
    return [user.name for user in session.service.users.all()]


@command("ACL WHOAMI", 2, group="server")
def acl_whoami(session: Session, args: list[bytes]) -> Reply:
    """Return the name of the user of this connection."""
    return session.user.name


@command("ACL CAT", -2, group="server", usage="[<category>]")
def acl_cat(session: Session, args: list[bytes]) -> Reply:
    """Return the categories, or the commands of one."""
    if len(args) > 3:
        raise wrong_subcommand(args)
    if len(args) == 2:
        return [one.encode() for one in CATEGORIES]
    category = args[2].decode("latin-1").lower()
    if category not in CATEGORIES:
        raise CommandError(f"ERR Unknown category '{in_error(args[2])[:128]}'")
    return [
        inner.full_name.encode()
        for one in session.service.table.values()
        for inner in (one, *one.subcommands.values())
        if category in inner.properties.categories
    ]


def _check_file(session: Session) -> None:
    if not session.service.users.file:
        raise CommandError(_NO_FILE)


@command("ACL LOAD", 2, "admin", group="server")
def acl_load(session: Session, args: list[bytes]) -> Reply:
    """Replace the users by those of the file, and close the connections of all but default."""
    _check_file(session)
    users = session.service.users
    try:
        users.load()
    except OSError as error:
        text = f"Error loading ACLs, opening file '{users.file}': {error.strerror}"
        raise CommandError(f"ERR {text}") from None
    _close_removed(session)
    return OK


@command("ACL SAVE", 2, "admin", group="server")
def acl_save(session: Session, args: list[bytes]) -> Reply:
    """Write the users to the file."""
    _check_file(session)
    try:
        session.service.users.save()
    except OSError as error:
        _log.error("ACL SAVE failed: %s", error)
        raise CommandError(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more"
            " information"
        ) from None
    return OK


@command("ACL GENPASS", -2, group="server", usage="[<bits>]")
def acl_genpass(session: Session, args: list[bytes]) -> Reply:
    """Return a random password of hexadecimal digits, by default of 256 bits."""
    if len(args) > 3:
        raise wrong_subcommand(args)
    bits = to_int(args[2]) if len(args) == 3 else 256
    if not 0 < bits <= _MOST_BITS:
        raise CommandError(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a"
            f" positive number up to {_MOST_BITS}"
        )
    digits = (bits + 3) // 4
    return secrets.token_hex(digits)[:digits].encode()


@command("ACL DRYRUN", -4, "admin", group="server", usage="<username> <command> [<arg> ...]")
def acl_dryrun(session: Session, args: list[bytes]) -> Reply:
    """Return whether a user may run a command, without running it."""
    user, request = _user(session, args[2]), args[3:]
    found = session.service.command_of(request)
    if found is None or (found.subcommands and len(request) > 1):
        raise CommandError(f"ERR Command '{in_error(request[0])}' not found")
    if not found.accepts(len(request)):
        raise CommandError(f"ERR wrong number of arguments for '{found.full_name}' command")
    denial = user.denial(found, request)
    if denial is None:
        return OK
    verb = "run" if denial.reason == "command" else "access"
    what = b"'%b' %b" % (denial.name.partition(b"\0")[0], denial.reason.encode())
    return b"This user has no permissions to %b the %b" % (verb.encode(), what)


@command("ACL LOG", -2, "admin", group="server", usage="[<count> | RESET]")
def acl_log(session: Session, args: list[bytes]) -> Reply:
    """Return the requests and logins that were refused, newest first, or forget them."""
    if len(args) > 3:
        raise wrong_subcommand(args)
    refusals = session.service.acl_log.refusals
    if len(args) == 3 and args[2].upper() == b"RESET":
        refusals.clear()
        return OK
    count = to_int(args[2]) if len(args) == 3 else 10
    now = time.time()
    return [
        {
            b"count": one.count,
            b"reason": one.reason.encode(),
            b"context": one.context.encode(),
            b"object": one.name,
            b"username": one.user,
            b"age-seconds": max(0.0, round(now - one.time, 3)),
            b"client-info": one.client.encode("latin-1"),
        }
        for one in list(refusals)[: max(0, count)]
    ]
