"""The table of commands: what each is called, how many arguments it takes, which of them are keys.

A module of ``commands/`` registers its own, with a decorator::

    @command("GET", 2, "readonly fast", keys=(1, 1, 1), group="string", since="1.0.0")
    def get(session: Session, args: list[bytes]) -> Reply:
        '''The value of a key.'''

``args`` holds the name too.  Arity counts it; a negative one is the least.  The docstring's first
line is what COMMAND DOCS says.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.server.command import Command, KeyFinder, Table
from lsmkv.server.resp import CommandError, Reply
from lsmkv.server.session import Session

Handler = Callable[[Session, list[bytes]], Reply]

COMMANDS: Table = {}
"""The commands of an ordinary store."""


def command(
    name: str,
    arity: int,
    flags: str = "",
    *,
    keys: tuple[int, int, int] = (0, 0, 0),
    group: str,
    find_keys: KeyFinder | None = None,
    table: Table = COMMANDS,
) -> Callable[[Handler], Handler]:
    """Register a function as a command; ``A B`` is the subcommand B of the command A."""

    def register(handler: Handler) -> Handler:
        known = frozenset(flags.split())
        made = Command(name, handler, arity, known, *keys, group, find_keys, {})
        made.writes = "write" in known
        container, _, inner = name.partition(" ")
        if inner:
            table[container.encode()].subcommands[inner.encode()] = made
        else:
            table[name.encode()] = made
        return handler

    return register


def container(name: str, flags: str = "", *, group: str, table: Table = COMMANDS) -> None:
    """Register a command that has nothing but subcommands."""

    def run(session: Session, args: list[bytes]) -> Reply:
        raise CommandError(f"ERR wrong number of arguments for '{name.lower()}' command")

    command(name, -2, flags, group=group, table=table)(run)


def numbered_keys(at: int, before: int = 0) -> KeyFinder:
    """The keys of a command whose argument ``at`` says how many follow; ``before`` is one more."""

    def find(args: list[bytes]) -> list[bytes]:
        try:
            count = int(args[at])
        except (ValueError, IndexError):
            raise CommandError("ERR Invalid arguments specified for command") from None
        return ([args[before]] if before else []) + args[at + 1 : at + 1 + count]

    return find
