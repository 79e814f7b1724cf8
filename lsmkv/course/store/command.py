"""``lsmkv course run``: the student's store, and a shell for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from lsmkv.course.running import MEMORY_MIB, SECONDS, Limits
from lsmkv.course.store.capstone import NAMES
from lsmkv.course.store.parts import PARTS, Part, in_use
from lsmkv.course.store.session import Session, passed_checks, state_of
from lsmkv.course.store.shell import Shell
from lsmkv.tools.console import MISS, guarded, stdin_is_terminal, write_line
from lsmkv.tools.drawing import progress, stdout_console
from lsmkv.tools.text import printable

PROMPT = "store> "


@guarded
def run(
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="The folder of the labs; by default this one.")
    ] = ".",
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="PATH", help="The store; by default 'store' in DIR."),
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option("--do", metavar="COMMAND", help="Run this, and no shell; may be repeated."),
    ] = None,
    as_capstone: Annotated[
        bool, typer.Option("--capstone", help="Run lab 13, and no shell: exit with 1 if it fails.")
    ] = False,
    names: Annotated[
        int, typer.Option("--names", min=1, metavar="N", help="The number of names in lab 13.")
    ] = NAMES,
    seconds: Annotated[
        int,
        typer.Option("--seconds", min=1, metavar="N", help="Stop a command after N seconds."),
    ] = 10 * SECONDS,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print an object of JSON for each command.")
    ] = False,
) -> None:
    """Run your store: the engine with each part of yours whose checks pass.

    The checks of all labs run first. Then a shell takes commands, such as put, get, scan, explain,
    kill and reopen; 'help' lists them. Without a terminal, they are read from stdin. Your code runs
    in a separate process, and each of its answers is compared with the engine's. A part that fails
    is reported with your line, and the engine's own takes its place.

    JSON: an object for the checks, whose "command" is null, and one for each command: "command" and
    "output", the lines that it prints.
    """
    output = _Output(as_json)
    folder = os.path.abspath(directory)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such folder", directory)
    chosen = _chosen(folder, output.say)
    with Session(folder, store or os.path.join(folder, "store"), chosen, seconds) as session:
        shell = Shell(session, output.say)
        shell.say_failures()
        output.end(None)
        for line in _lines(commands, f"capstone {names}" if as_capstone else None, as_json):
            goes_on = shell.run(line)
            output.end(line.strip())
            if not goes_on:
                break
        if not shell.has_passed:
            raise typer.Exit(MISS)


class _Output:
    """Prints the shell's lines: immediately, or as JSON at the end of a command."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lines: list[str] = []

    def say(self, line: str) -> None:
        """Print a line."""
        if self._as_json:
            self._lines.append(line)
        else:
            _say(line)

    def end(self, command: str | None) -> None:
        """End a command."""
        if self._as_json:
            write_line(json.dumps({"command": command, "output": self._lines}))
            stdout_console().file.flush()
            self._lines = []


def _chosen(folder: str, say: Callable[[str], None]) -> list[Part]:
    """The parts that pass their checks; says which do not."""
    with progress("checking your labs", "lab", 12) as shown:
        passed = passed_checks(folder, Limits(SECONDS, MEMORY_MIB), shown.advance)
    chosen = in_use(passed)
    say(f"Your store: {len(chosen)} of {len(PARTS)} parts are yours.")
    begun = [part for part in PARTS if part.lab in passed and part not in chosen]
    for part in begun:
        say(f"  lab {part.lab}, {part.name}: {state_of(part, passed, folder)}")
    return chosen


def _lines(commands: Sequence[str] | None, capstone: str | None, quiet: bool) -> Iterator[str]:
    """The lines to run: given ones, or those that a person types, or those of stdin.

    They are shown unless it is to be ``quiet``.
    """
    if commands or capstone is not None:
        yield from [*(commands or ()), *([] if capstone is None else [capstone])]
        return
    if stdin_is_terminal() and not quiet:
        while True:
            try:
                yield input(PROMPT)
            except EOFError:
                _say("")
                return
    for line in sys.stdin:
        if not quiet:
            _say(f"{PROMPT}{line.rstrip()}")
        yield line


def _say(line: str) -> None:
    write_line(printable(line))
    stdout_console().file.flush()
