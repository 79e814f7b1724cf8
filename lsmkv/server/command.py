"""A command: its name, how many arguments it takes, which of them are keys, how often it ran."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsmkv.server.resp import Reply

KeyFinder = Callable[[list[bytes]], list[bytes]]


@dataclass(slots=True)
class Command:
    """A command of the table."""

    name: str
    handler: Callable[..., Reply]
    """Takes a :class:`Session` and the request."""
    arity: int
    flags: frozenset[str]
    """``write``, ``readonly``, ``fast``, ``admin``, ``blocking``, ``noauth`` (before AUTH too),
    ``control`` (never queued), ``pubsub`` (in RESP2 also while subscribed), ``nomulti``."""
    first: int
    last: int
    step: int
    """The arguments that are keys, as COMMAND says it; all 0 if none is."""
    group: str
    find_keys: KeyFinder | None
    subcommands: dict[bytes, Command]
    calls: int = 0
    microseconds: float = 0.0
    failed: int = 0
    rejected: int = 0
    writes: bool = False

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]

    def accepts(self, count: int) -> bool:
        """Whether a request of so many arguments, the name included, has the right number."""
        return count == self.arity if self.arity > 0 else count >= -self.arity

    def keys_of(self, args: Sequence[bytes]) -> list[bytes]:
        """The keys of a request."""
        if self.find_keys is not None:
            return self.find_keys(list(args))
        if self.first == 0:
            return []
        last = self.last if self.last >= 0 else len(args) + self.last
        return list(args[self.first : last + 1 : self.step])


Table = dict[bytes, Command]
"""Commands by their names in capitals."""
