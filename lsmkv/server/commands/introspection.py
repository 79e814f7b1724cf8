"""COMMAND: information about the commands."""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.server.command import Command, KeyUse, Table, every
from lsmkv.server.command_properties import KeySpec
from lsmkv.server.globs import matcher
from lsmkv.server.registry import command, help_of
from lsmkv.server.resp import CommandError, Members, Reply, Simple, syntax_error
from lsmkv.server.session import Session

_NEVER_SHOWN = {"control", "subscribed"}


@command("COMMAND", -1, group="server")
def command_(session: Session, args: list[bytes]) -> Reply:
    """Return all commands, with their arity, flags and keys."""
    return [_information(one) for one in session.service.table.values()]


help_of("COMMAND", group="server")


def _words(words: frozenset[str] | tuple[str, ...], mark: str = "") -> Reply:
    return Members(Simple(mark + word) for word in sorted(words))


def _information(one: Command) -> Reply:
    properties = one.properties
    return [
        one.full_name.encode(),
        one.arity,
        _words(properties.flags - _NEVER_SHOWN),
        *_place(properties.keys),
        _words(properties.categories, "@"),
        Members(tip.encode() for tip in properties.tips),
        Members(_specification(spec) for spec in properties.keys),
        [_information(inner) for inner in one.subcommands.values()] or Members(),
    ]


def _place(specs: tuple[KeySpec, ...]) -> tuple[int, int, int]:
    """First key, last key and step, as before Redis had key specifications."""
    ranges = [spec for spec in specs if spec.first and not spec.counted and not spec.keyword]
    if not ranges:
        return 0, 0, 0
    last = min(spec.last for spec in ranges)
    if last >= 0:
        last = max(spec.last for spec in ranges)
    return ranges[0].first, last, max(spec.step for spec in ranges)


def _specification(spec: KeySpec) -> Reply:
    search: dict[Reply, Reply] = {b"type": b"index", b"spec": {b"index": spec.first}}
    if spec.counted:
        counted: dict[Reply, Reply] = {b"keynumidx": 0, b"firstkey": 1, b"keystep": spec.step}
        keys: dict[Reply, Reply] = {b"type": b"keynum", b"spec": counted}
    else:
        last = spec.last - spec.first if spec.last >= 0 else spec.last
        place: dict[Reply, Reply] = {
            b"lastkey": last,
            b"keystep": spec.step,
            b"limit": 2 if spec.keyword and last < 0 else 0,
        }
        keys = {b"type": b"range", b"spec": place}
    if spec.keyword:
        word: dict[Reply, Reply] = {b"keyword": spec.keyword.encode(), b"startfrom": spec.first}
        search = {b"type": b"keyword", b"spec": word}
    if not spec.first:
        search = {b"type": b"unknown", b"spec": {}}
        keys = {b"type": b"unknown", b"spec": {}}
    return {b"flags": _words(spec.flags), b"begin_search": search, b"find_keys": keys}


@command("COMMAND COUNT", 2, group="server")
def command_count(session: Session, args: list[bytes]) -> Reply:
    """Return the number of commands."""
    return len(session.service.table)


@command(
    "COMMAND LIST",
    -2,
    group="server",
    usage="[FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
)
def command_list(session: Session, args: list[bytes]) -> Reply:
    """Return the names of the commands and subcommands."""
    chosen = _filter(args[2:])
    return [one.full_name.encode() for one in every(session.service.table) if chosen(one)]


def _filter(words: list[bytes]) -> Callable[[Command], bool]:
    if not words:
        return lambda one: True
    if len(words) != 3 or words[0].upper() != b"FILTERBY":
        raise syntax_error()
    wanted = words[2]
    match words[1].upper():
        case b"MODULE":
            return lambda one: False
        case b"ACLCAT":
            category = wanted.decode("latin-1").lower()
            return lambda one: category in one.properties.categories
        case b"PATTERN":
            matches = matcher(wanted.lower())
            return lambda one: matches(one.full_name.encode())
    raise syntax_error()


@command("COMMAND INFO", -2, group="server", usage="[<name> ...]")
def command_info(session: Session, args: list[bytes]) -> Reply:
    """Return some commands, in the form of COMMAND."""
    return [None if one is None else _information(one) for one in _named(session, args[2:])]


def _named(session: Session, names: list[bytes]) -> list[Command | None]:
    """The commands with these names; without names, all."""
    table = session.service.table
    if not names:
        return list(table.values())
    return [_find(table, name.upper().split(b"|")) for name in names]


def _find(table: Table, words: list[bytes]) -> Command | None:
    found = table.get(words[0])
    if len(words) == 2 and found is not None:
        return found.subcommands.get(words[1])
    return found if len(words) == 1 else None


def _documented(one: Command) -> dict[Reply, Reply]:
    fields: dict[Reply, Reply] = {
        b"summary": one.summary.encode(),
        b"since": one.properties.since.encode(),
        b"group": one.group.encode(),
    }
    if one.subcommands:
        fields[b"subcommands"] = {
            inner.full_name.encode(): _documented(inner) for inner in one.subcommands.values()
        }
    return fields


@command("COMMAND DOCS", -2, group="server", usage="[<name> ...]")
def command_docs(session: Session, args: list[bytes]) -> Reply:
    """Return a sentence about each command."""
    found = [one for one in _named(session, args[2:]) if one is not None]
    return {one.full_name.encode(): _documented(one) for one in found}


def _key_uses(session: Session, request: list[bytes]) -> list[KeyUse]:
    table = session.service.table
    one = table.get(request[0].upper())
    if one is not None and one.subcommands and len(request) > 1:
        one = one.subcommands.get(request[1].upper())
    if one is None:
        raise CommandError("ERR Invalid command specified")
    if not any(spec.is_keys for spec in one.properties.keys):
        raise CommandError("ERR The command has no key arguments")
    if not one.accepts(len(request)):
        raise CommandError("ERR Invalid number of arguments specified for command")
    uses = one.keys_of(request)
    if not uses and "no_mandatory_keys" not in one.properties.flags:
        raise CommandError("ERR Invalid arguments specified for command")
    return uses


@command("COMMAND GETKEYS", -4, group="server", usage="<full-command>")
def command_getkeys(session: Session, args: list[bytes]) -> Reply:
    """Return the keys in a request."""
    return [use.key for use in _key_uses(session, args[2:])]


@command("COMMAND GETKEYSANDFLAGS", -4, group="server", usage="<full-command>")
def command_getkeysandflags(session: Session, args: list[bytes]) -> Reply:
    """Return the keys in a request, and what the command does with each."""
    return [[use.key, _words(use.flags)] for use in _key_uses(session, args[2:])]
