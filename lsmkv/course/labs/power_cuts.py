"""Runs a student's procedure on a recording file system, and cuts the power at every point.

The states that the cuts leave decide: a store must open, with everything that was acknowledged.
Rules of order only show which sync is missing, or too late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import lsmkv
from lsmkv.course.failure import CheckFailure, shown
from lsmkv.course.given import Directory
from lsmkv.testing import CrashState, NameModel, RecordingEnv

PATH = "/store"
"""The path of the store on the recording file system."""

CONTENT = "content"
NAME = "name"
"""The effect of a sync: durable content for a file, durable names for the directory."""

_STATES = 160
"""At least this many states are drawn: each point gives four, and seeds are used one by one."""
_MOMENT = re.compile(
    r"before the (?P<verb>[a-z]+) of ((?P<size>[0-9]+) bytes to )?(?P<path>\S+)( to (?P<to>\S+))?"
)
_VERBS = {"link": "create", "unlink": "remove"}


class Operation(NamedTuple):
    """A change of the disk.  ``name`` is "" for the directory, the new one for a rename."""

    verb: str
    name: str
    words: str = ""
    """The operation's description in messages."""


class Rule(NamedTuple):
    """A file's content or name must be durable before an operation, or at the end."""

    name: str
    part: str
    before: tuple[str, str] | None
    """Verb and name of the operation."""
    reason: str
    """The mistake, if the rule is broken."""

    def holds(self, operations: Sequence[Operation]) -> bool:
        """True if the operations keep the rule.  If its operation never occurs, they do."""
        end = len(operations)
        if self.before is not None:
            same = (at for at in range(end) if operations[at][:2] == self.before)
            first = next(same, None)
            if first is None:
                return True
            end = first
        done = [operation[:2] for operation in operations[:end]]
        if self.part == CONTENT:
            return _comes_last(done, {("append", self.name)}, ("sync", self.name))
        made = {("create", self.name), ("rename", self.name)}
        return _comes_last(done, made, ("sync", ""))


def _comes_last(done: list[tuple[str, str]], changes: set[tuple[str, str]], sync: object) -> bool:
    """True if there was a change, and a sync after the last one."""
    last = max((at for at, operation in enumerate(done) if operation in changes), default=None)
    return last is not None and sync in done[last:]


class Run:
    """A procedure that was run once, with its changes of the disk."""

    def __init__(self, start: lsmkv.MemoryEnv, procedure: Callable[[Directory], object]) -> None:
        """``start`` holds the store before it, all of it durable."""
        self.env = RecordingEnv(start)
        with self.env.open_directory(PATH) as directory:
            procedure(directory)
        states = self.env.crash_states(models=[NameModel.SYNCED], kills=False)
        found = [_MOMENT.fullmatch(state.moment) for state in states]
        self.operations = [_operation(match) for match in found if match is not None]

    def survives(
        self, judge: Callable[[lsmkv.Env], str], what: str, rules: Sequence[Rule], hint: str
    ) -> int:
        """Fail if ``judge`` finds anything wrong with a state that a crash leaves; it returns a
        description.

        Then the rules are also checked, since the states are drawn at random.  Returns how many
        states there were.
        """
        broken = [rule for rule in rules if not rule.holds(self.operations)]
        number = seed = 0
        while number < _STATES:
            for state in self.env.crash_states(seed=seed):
                number += 1
                wrong = judge(state.env)
                if wrong:
                    reason = f"{what} does not survive {self._when(state)}: {wrong}"
                    about_it = [rule for rule in broken if rule.name in wrong] or broken
                    why = about_it[0].reason if about_it else hint
                    raise CheckFailure(f"{reason}\n{self.listing()}\n{why}")
            seed += 1
        if broken:
            raise CheckFailure(f"{what}: {broken[0].reason}\n{self.listing()}")
        return number

    def listing(self) -> str:
        """The procedure's operations, numbered."""
        lines = [f"  {at:2}  {one.words}" for at, one in enumerate(self.operations, 1)]
        return "\n".join(["What your code did:", *(lines or ["      nothing"])])

    def _when(self, state: CrashState) -> str:
        what = "a kill of its process" if state.names is None else "a power cut"
        begin = re.match(r"[0-9]+", state.label)
        assert begin is not None
        at = int(begin[0])
        if at == len(self.operations):
            return f"{what} after its last operation"
        where = "within" if state.moment.startswith("in ") else "before"
        return f"{what} {where} operation {at + 1}"


def _operation(match: re.Match[str]) -> Operation:
    verb = _VERBS.get(match["verb"], match["verb"])
    name = match["path"].removeprefix(PATH).removeprefix("/")
    if match["to"] is not None:
        return Operation(verb, match["to"], f"rename {name} to {match['to']}")
    if match["size"] is not None:
        return Operation(verb, name, f"append {int(match['size']):,} bytes to {name}")
    return Operation(verb, name, f"{verb} {name or 'the directory'}")


def content_differs(env: lsmkv.Env | None, path: str, content: Mapping[bytes, bytes]) -> str:
    """Describe how a store differs from exactly this content; empty if it does not."""
    try:
        with lsmkv.DB(path, env=env) as db:
            found = dict(db.iterator())
    except lsmkv.Error as error:
        return f"lsmkv does not open the store. {error}"
    for key in sorted({*found, *content}):
        got, expected = found.get(key), content.get(key)
        if got != expected:
            written = "it was deleted" if expected is None else f"{shown(expected)} was written"
            return f"lsmkv reads {shown(got)} for the key {key!r}, where {written}."
    return ""
