"""``lsmkv course run``: the student's store, and a shell for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
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
        int, typer.Option("--names", min=1, metavar="N", help="How many names lab 13 takes.")
    ] = NAMES,
    seconds: Annotated[
        int, typer.Option("--seconds", min=1, metavar="N", help="Stop a command after so long.")
    ] = 10 * SECONDS,
) -> None:
    """Run your store: the engine with each part of yours whose checks pass.

    The checks of all labs run first. Then a shell takes commands, such as put, get, scan, explain,
    kill and reopen; 'help' lists them. Without a terminal, they are read from stdin. Your code
    runs in a process of its own, and each answer of it is compared with the engine's. A part that
    fails is reported with your line, and the engine's own takes its place.
    """
    folder = os.path.abspath(directory)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such folder", directory)
    chosen = _chosen(folder)
    with Session(folder, store or os.path.join(folder, "store"), chosen, seconds) as session:
        shell = Shell(session, _say)
        shell.say_failures()
        for line in _lines(commands, f"capstone {names}" if as_capstone else None):
            if not shell.run(line):
                break
        if not shell.has_passed:
            raise typer.Exit(MISS)


def _chosen(folder: str) -> list[Part]:
    """The parts that pass their checks; prints which do not."""
    with progress("checking your labs", "lab", 12) as shown:
        passed = passed_checks(folder, Limits(SECONDS, MEMORY_MIB), shown.advance)
    chosen = in_use(passed)
    _say(f"Your store: {len(chosen)} of {len(PARTS)} parts are yours.")
    begun = [part for part in PARTS if part.lab in passed and part not in chosen]
    for part in begun:
        _say(f"  lab {part.lab}, {part.name}: {state_of(part, passed, folder)}")
    return chosen


def _lines(commands: Sequence[str] | None, capstone: str | None) -> Iterator[str]:
    """The lines to run: given ones, or those that a person types, or those of stdin."""
    if commands or capstone is not None:
        yield from [*(commands or ()), *([] if capstone is None else [capstone])]
        return
    if stdin_is_terminal():
        while True:
            try:
                yield input(PROMPT)
            except EOFError:
                _say("")
                return
    for line in sys.stdin:
        _say(f"{PROMPT}{line.rstrip()}")
        yield line


def _say(line: str) -> None:
    write_line(printable(line))
    stdout_console().file.flush()
