"""The shell of a student's store: a line is a command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lsmkv.course.store.capstone import NAMES, capstone
from lsmkv.course.store.parts import part_named
from lsmkv.course.store.session import Session, StoreError
from lsmkv.tools.text import count, size

MOST = 20
"""Entries that a scan prints."""

_FILES = (
    ("log", ("records", "checksums", "log reader", "recovery")),
    ("tables", ("tables", "block builder", "sealed blocks", "index keys", "handles", "footer")),
    ("filters", ("filters", "filter blocks")),
    ("MANIFEST", ("edits", "levels", "flush", "commit", "MANIFEST")),
    ("CURRENT", ("CURRENT",)),
)
"""The files of a store, and the parts that make and read them."""


class Command(NamedTuple):
    """A command of the shell."""

    usage: str
    what: str
    least: int
    most: int
    """The maximum number of arguments."""
    run: Callable[[Shell, Sequence[str]], None]


class Shell:
    """Runs lines of commands on a store."""

    def __init__(self, session: Session, say: Callable[[str], None]) -> None:
        """``say`` prints a line."""
        self._session = session
        self.say = say

    def run(self, line: str) -> bool:
        """Run a line; False if it is the last one."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            self.say(f"not a command: {error}")
            return True
        if not words:
            return True
        name, *arguments = words
        if name in ("quit", "exit"):
            return False
        command = COMMANDS.get(name)
        if command is None:
            self.say(f"there is no command {name}: 'help' lists them")
        elif not command.least <= len(arguments) <= command.most:
            self.say(f"usage: {command.usage}")
        else:
            try:
                command.run(self, arguments)
            except StoreError as error:
                self.say_failures()
                self.say(f"the store says: {error}")
            except ValueError as error:
                self.say(str(error))
        self.say_failures()
        return True

    def say_failures(self) -> None:
        """Print the parts that have failed since the last time."""
        for failure in self._session.failures:
            part = part_named(failure.part)
            self.say(f"Your part {part.name!r} of lab {part.lab} failed: {failure.what}")
            if failure.place:
                self.say(f"  {failure.place}")
            self.say("  The engine's own takes its place.")
        self._session.failures = []

    # Commands

    def put(self, words: Sequence[str]) -> None:
        self._session.ask("put", key=words[0], value=words[1])

    def get(self, words: Sequence[str]) -> None:
        found = self._session.ask("get", key=words[0])
        self.say("there is no such key" if found is None else found)

    def delete(self, words: Sequence[str]) -> None:
        self._session.ask("delete", key=words[0])

    def scan(self, words: Sequence[str]) -> None:
        self._scan(words, reverse=False)

    def back(self, words: Sequence[str]) -> None:
        self._scan(words, reverse=True)

    def _scan(self, words: Sequence[str], reverse: bool) -> None:
        start, stop = (*words, "", None)[0] or "", words[1] if len(words) > 1 else None
        pairs = self._session.ask("scan", start=start, stop=stop, reverse=reverse, most=MOST + 1)
        for key, value in pairs[:MOST]:
            self.say(f"{key} = {value}")
        self.say("and more" if len(pairs) > MOST else count(len(pairs), "key"))

    def flush(self, words: Sequence[str]) -> None:
        self._session.ask("flush")
        self._say_levels()

    def compact(self, words: Sequence[str]) -> None:
        self._session.ask("compact")
        self._say_levels()

    def _say_levels(self) -> None:
        tables = self._session.ask("tables")
        levels = sorted({table["level"] for table in tables})
        words = [
            f"{count(sum(table['level'] == level for table in tables), 'table')} on level {level}"
            for level in levels
        ]
        self.say(", ".join(words) or "no tables")

    def explain(self, words: Sequence[str]) -> None:
        for line in self._session.ask("explain", key=words[0]):
            self.say(line)

    def inspect(self, words: Sequence[str]) -> None:
        for table in self._session.ask("tables"):
            keys = f"{table['smallest']!r} .. {table['largest']!r}"
            name = f"{table['number']:06d}.ldb"
            self.say(f"level {table['level']}  {name}  {size(table['size']):>9}  {keys}")
        used = {part.name for part in self._session.used}
        for file, names in _FILES:
            mine = ", ".join(name for name in names if name in used)
            others = ", ".join(name for name in names if name not in used)
            words = [f"yours: {mine}"] * bool(mine) + [f"the engine's: {others}"] * bool(others)
            self.say(f"{file:<8}  {'; '.join(words)}")

    def parts(self, words: Sequence[str]) -> None:
        calls = self._session.ask("calls")
        for part in self._session.parts:
            how = "used " + count(calls.get(part.name, 0), "time")
            if part.name in self._session.aside:
                how = "set aside: it failed"
            self.say(f"lab {part.lab:>2}  {part.name:<19}  {part.what}: {how}")

    def stats(self, words: Sequence[str]) -> None:
        for name, value in self._session.ask("stats").items():
            self.say(f"{name.replace('_', ' '):<22}  {value:>8,}")
        amplification = self._session.ask("amplification")
        self.say(f"{'write amplification':<22}  {amplification:>8.2f}")

    def kill(self, words: Sequence[str]) -> None:
        self._session.kill()
        self.say("The process of your store was killed. 'reopen' recovers it.")

    def reopen(self, words: Sequence[str]) -> None:
        self._session.reopen()
        self._say_levels()

    def capstone(self, words: Sequence[str]) -> None:
        number = int(words[0]) if words and words[0].isdigit() else NAMES
        self.has_passed = capstone(self._session, number, self.say)

    has_passed = True
    """True if the last capstone has passed."""

    def help(self, words: Sequence[str]) -> None:
        for command in COMMANDS.values():
            self.say(f"{command.usage:<20}  {command.what}")
        self.say(f"{'quit':<20}  end")


COMMANDS = {
    command.usage.split()[0]: command
    for command in (
        Command("put KEY VALUE", "write a value", 2, 2, Shell.put),
        Command("get KEY", "read a value", 1, 1, Shell.get),
        Command("delete KEY", "write a deletion", 1, 1, Shell.delete),
        Command("scan [FROM [TO]]", "keys in order", 0, 2, Shell.scan),
        Command("back [FROM [TO]]", "keys in reverse order", 0, 2, Shell.back),
        Command("flush", "write the memtable to a table", 0, 0, Shell.flush),
        Command("compact", "merge all tables", 0, 0, Shell.compact),
        Command("explain KEY", "the steps of a Get", 1, 1, Shell.explain),
        Command("inspect", "tables and files, and the parts that made them", 0, 0, Shell.inspect),
        Command("parts", "your parts, and their use since the opening", 0, 0, Shell.parts),
        Command("stats", "counters since the store was opened", 0, 0, Shell.stats),
        Command("kill", "end the store's process, as a crash does", 0, 0, Shell.kill),
        Command("reopen", "open the store again", 0, 0, Shell.reopen),
        Command("capstone [NUMBER]", "lab 13, with this many names", 0, 1, Shell.capstone),
        Command("help", "this list", 0, 0, Shell.help),
    )
}
"""By name, in the order of the help."""
