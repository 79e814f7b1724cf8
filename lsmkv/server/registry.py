"""The table of commands: their names, arities and flags.

Each module of ``commands/`` registers its commands with a decorator::

    @command("GET", 2, "readonly fast", group="string")
    def get(session: Session, args: list[bytes]) -> Reply:
        '''The value of a key.'''

``args`` includes the name.  The arity counts it; a negative arity is a minimum.  COMMAND DOCS and
HELP show the docstring's first line, or the summary that is given for a function of several
commands.  ``command_properties.py`` has everything else, by the command's name.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.server.command import Command, KeyFinder, Table
from lsmkv.server.command_properties import properties_of
from lsmkv.server.resp import CommandError, Reply, Simple
from lsmkv.server.session import Session

Handler = Callable[[Session, list[bytes]], Reply]

COMMANDS: Table = {}
"""The commands of a store that is not served with ``--raw``."""
_MAY_WRITE = ("PUBLISH", "SPUBLISH", "PFCOUNT", "EVAL", "EVALSHA", "FCALL")
"""Commands other than writes that Redis' replicas may also have to run."""

# fmt: off
_READ_TOO = {
    "BITOP", "COPY", "GEORADIUS", "GEORADIUSBYMEMBER", "GEOSEARCHSTORE", "GETDEL", "GETEX",
    "GETSET", "PFCOUNT", "PFMERGE", "SDIFFSTORE", "SINTERSTORE", "SORT", "SUNIONSTORE", "XACK",
    "XAUTOCLAIM", "XCLAIM", "XREADGROUP", "ZDIFFSTORE", "ZINTERSTORE", "ZRANGESTORE",
    "ZUNIONSTORE",
}
# fmt: on
"""Commands besides those that only read whose lookups of keys count."""
# fmt: off
_CHANGES_MANY = {
    "BITOP", "COPY", "GEORADIUS", "GEORADIUSBYMEMBER", "GEOSEARCHSTORE", "HDEL", "HMSET", "HSET",
    "LINSERT", "LPOP", "LPUSH", "LREM", "LTRIM", "RESTORE", "RPOP", "RPUSH", "SADD", "SDIFFSTORE",
    "SINTERSTORE", "SORT", "SPOP", "SREM", "SUNIONSTORE", "XDEL", "XTRIM", "ZADD", "ZDIFFSTORE",
    "ZINTERSTORE", "ZPOPMAX", "ZPOPMIN", "ZRANGESTORE", "ZREM", "ZREMRANGEBYLEX",
    "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE", "ZUNIONSTORE",
}
# fmt: on
"""Commands that may change many elements.  Their only effects are changes of their keys."""
_STAGES = (
    *("SET", "SETEX", "PSETEX", "SETNX", "GETSET", "MSET", "MSETNX"),
    *("APPEND", "SETRANGE", "SETBIT", "BITFIELD"),
)


def command(
    name: str,
    arity: int,
    flags: str = "",
    *,
    group: str,
    usage: str = "",
    summary: str = "",
    find_keys: KeyFinder | None = None,
    table: Table = COMMANDS,
) -> Callable[[Handler], Handler]:
    """Register a function as a command; ``A B`` is the subcommand B of the command A."""

    def register(handler: Handler) -> Handler:
        known = frozenset(flags.split())
        properties = properties_of(name.replace(" ", "|"), known, group)
        made = Command(
            name, handler, arity, known, group, usage, properties, find_keys, {}, summary
        )
        made.writes = "write" in known
        made.may_write = made.writes or name in _MAY_WRITE
        reads = "readonly" in known and not name.startswith(("MEMORY ", "OBJECT "))
        made.looks_up = reads or name in _READ_TOO
        made.noscript = "noscript" in properties.flags
        made.runs_script = group == "scripting"
        made.stages = name in _STAGES
        reads = "readonly" in known and not made.runs_script
        made.gives_way = (reads and not name.endswith("SCAN")) or name in _CHANGES_MANY
        container, _, inner = name.partition(" ")
        if inner:
            table[container.encode()].subcommands[inner.encode()] = made
        else:
            table[name.encode()] = made
        return handler

    return register


def container(name: str, *, group: str, table: Table = COMMANDS) -> None:
    """Register a command that only has subcommands, HELP among them."""

    def run(session: Session, args: list[bytes]) -> Reply:
        raise CommandError(f"ERR wrong number of arguments for '{name.lower()}' command")

    command(name, -2, group=group, table=table)(run)
    help_of(name, group=group, table=table)


def help_of(name: str, *, group: str, table: Table = COMMANDS) -> None:
    """Register the subcommand HELP of a command."""

    def run(session: Session, args: list[bytes]) -> Reply:
        lines = [f"{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
        inner = table[name.encode()].subcommands
        for one in sorted(inner, key=lambda one: (one == b"HELP", one)):
            lines += [f"{one.decode()} {inner[one].usage}".rstrip(), f"    {inner[one].summary}"]
        return [Simple(line) for line in lines]

    summary = "Print this help."
    command(f"{name} HELP", 2, group=group, summary=summary, table=table)(run)
