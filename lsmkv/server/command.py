"""A command: its name, its arity, which arguments are keys, and how often it ran."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.server.command_properties import CommandProperties, KeySpec
from lsmkv.server.numbers import to_int
from lsmkv.server.resp import CommandError, Reply


class KeyUse(NamedTuple):
    """A key in a request, and what the command does with that key."""

    key: bytes
    flags: tuple[str, ...]


KeyFinder = Callable[[list[bytes]], list[KeyUse]]


@dataclass(slots=True)
class Command:
    """An entry of the table of commands."""

    name: str
    handler: Callable[..., Reply]
    """Called with a :class:`Session` and the request."""
    arity: int
    flags: frozenset[str]
    """The flags that decide how it runs: ``write``, ``readonly``, ``fast``, ``admin``,
    ``blocking``, Redis' ``no_auth`` (allowed before AUTH) and ``no_multi``, and two flags of this
    server: ``control`` (never queued) and ``subscribed`` (allowed in RESP2 while subscribed)."""
    group: str
    usage: str
    """The arguments of a subcommand, as HELP shows them."""
    properties: CommandProperties
    find_keys: KeyFinder | None
    """Finds the keys if their positions depend on other arguments."""
    subcommands: dict[bytes, Command]
    given_summary: str = ""
    calls: int = 0
    latencies: Histogram | None = None
    """The durations of its calls; None before the first."""
    failed: int = 0
    rejected: int = 0
    writes: bool = False
    may_write: bool = False
    """True if a pause of writes, or a read-only script, treats it as a write."""
    looks_up: bool = False
    """True if INFO counts the keys that it looks up: as in Redis, commands that read them."""
    noscript: bool = False
    """True if scripts may not call it."""
    gives_way: bool = False
    """True if it continues in a thread when it takes long: a read that makes no cursor, or a write
    that may change many elements."""
    stages: bool = False
    """True if it waits while a long string that it stores or changes is written in steps."""
    runs_script: bool = False
    """True if it runs a script or changes the set of scripts, and so may write."""

    @property
    def summary(self) -> str:
        """A one-line description, by default the first line of its docstring."""
        return self.given_summary or (inspect.getdoc(self.handler) or "").partition("\n")[0]

    @property
    def full_name(self) -> str:
        """Its name as clients see it: ``client|kill``."""
        return self.name.lower().replace(" ", "|")

    @property
    def microseconds(self) -> float:
        """The total duration of its calls."""
        return 0.0 if self.latencies is None else self.latencies.total / 1000

    def note_call(self, nanoseconds: int) -> None:
        """Count a call of this duration."""
        self.calls += 1
        latencies = self.latencies
        if latencies is None:
            latencies = self.latencies = Histogram()
        latencies.add(nanoseconds)

    def add_time(self, nanoseconds: int) -> None:
        """Add to the duration of a call that continued in a thread."""
        if self.latencies is not None:
            self.latencies.total += nanoseconds

    def forget_calls(self) -> None:
        """Count from 0 again."""
        self.calls = self.failed = self.rejected = 0
        self.latencies = None

    def accepts(self, count: int) -> bool:
        """True if a request of this many arguments, its name included, has the right number."""
        return count == self.arity if self.arity > 0 else count >= -self.arity

    def keys_of(self, args: Sequence[bytes]) -> list[KeyUse]:
        """The keys of a request, without those whose places make no sense."""
        if not self.accepts(len(args)):
            return []
        if self.find_keys is not None:
            return self.find_keys(list(args))
        return [
            use
            for spec in self.properties.keys
            if spec.is_keys and spec.first
            for use in _uses(spec, args)
        ]


def _uses(spec: KeySpec, args: Sequence[bytes]) -> list[KeyUse]:
    first, last = spec.first, spec.last if spec.last >= 0 else len(args) + spec.last
    if spec.keyword:
        words = [word.upper() for word in args]
        if spec.keyword.encode() not in words[first:]:
            return []
        first = words.index(spec.keyword.encode(), first) + 1
        last = first + (len(args) - first) // 2 - 1
    if spec.counted:
        try:
            last = first + to_int(args[first])
        except CommandError:
            return []
        first += 1
    if not first <= last < len(args):
        return []
    return [KeyUse(key, spec.flags) for key in args[first : last + 1 : spec.step]]


Table = dict[bytes, Command]
"""Commands by their names in upper case."""


def every(table: Table) -> Iterator[Command]:
    """All commands and subcommands."""
    for one in table.values():
        yield one
        yield from one.subcommands.values()


MISSING: dict[bytes, str] = {}
"""Commands of Redis that this server lacks, with what it would need for them.  A subcommand is
written ``OUTER|INNER``."""
