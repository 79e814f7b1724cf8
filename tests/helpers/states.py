r"""States as text: a drawing, the commands that are asked of it, and what each answers.

::

    == A title begins a section
    # A comment says why.
    L0: 7:[apple#5 .. cherry#9]  6:[banana .. fig]
    L1: 4:[cherry#3 .. kiwi]
        5:[lemon .. plum]
    get cherry => L0:7 L0:6 L1:4
    levels
    | L0: 7 6
    | L1: 4 5

A line whose first word ends with a colon draws, and an indented line continues it.  Any other line
is a command: its answer follows ``=>``, or stands below it in lines that begin with ``|``.  A line
that draws after a command begins a new drawing.  No command changes the drawing, so each of them is
a test of its own.  An error of lsmkv's is an answer: its class and its message.  ``pytest FILES
--rewrite`` asks all commands again and writes the answers; ``git diff`` shows what has changed.

What may be drawn and asked is said by the test file that reads the states: see ``answer`` there.
Tables, keys and entries are drawn as ``tests/helpers/trees.py`` says.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsmkv

rewriting = False
"""Whether answers are written, and not compared: ``--rewrite``."""

Drawing = list[tuple[str, str]]
"""The lines of a drawing: the word before the colon, and the text after it."""
Answer = Callable[[Drawing, list[str]], str]
"""Says what the words of a command answer; ``NotImplementedError`` if they are no command."""

_LONGEST = 100
"""An answer that would make its line longer stands below the command."""


def answered(answer: Answer, drawing: Drawing, words: list[str]) -> str:
    """What a command answers; an error of lsmkv's is an answer, too."""
    try:
        return answer(drawing, words)
    except lsmkv.Error as error:
        return f"{type(error).__name__}: {error}"


class StatesError(Exception):
    """A drawing or a command that cannot be read; a :class:`Case` adds the file and the line."""


class States:
    """A file of states, and the new answers of its cases."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.answers: dict[Case, str] = {}
        self.cases: list[Case] = []
        title = ""
        drawing: Drawing = []
        drawn = 0  # the line where the drawing begins
        asked = True  # whether a command has been asked of it
        for number, line in enumerate(self.lines, 1):
            drawn_line = re.match(r"(\S+):(?:\s+(.*))?$", line)
            if not line.strip() or line.startswith("# "):
                continue
            if line.startswith("== "):
                title, drawing, drawn, asked = line[3:], [], 0, True
            elif line.startswith("|"):
                if not self.cases or self.cases[-1].end != number - 1 or self.cases[-1].arrow:
                    raise self.error(number, "this answer is below no command")
                self.cases[-1].end = number
                self.cases[-1].expected.append(line[2:])
            elif line[0].isspace():
                if asked:
                    raise self.error(number, "this line continues no line of a drawing")
                drawing[-1] = drawing[-1][0], f"{drawing[-1][1]} {line.strip()}"
            elif not title:
                raise self.error(number, "a title comes first: a line that begins with ==")
            elif drawn_line is not None:
                if asked:
                    drawing, drawn, asked = [], number, False
                drawing.append((drawn_line[1], drawn_line[2] or ""))
            else:
                asked = True
                self.cases.append(Case(self, title, drawing, drawn or number, number, line))
        if not self.cases:
            raise StatesError(f"{path} has no command")

    def error(self, line: int, what: str) -> StatesError:
        return StatesError(f"{self.path}:{line}: {what}: {self.lines[line - 1]!r}")

    def rewritten(self) -> str:
        """The file with the new answers."""
        lines = list(self.lines)
        for case in reversed(self.cases):
            if case in self.answers:
                lines[case.line - 1 : case.end] = case.with_answer(self.answers[case])
        return "\n".join(lines) + "\n"


class Case:
    """A command, and what it is to answer."""

    def __init__(
        self, states: States, title: str, drawing: Drawing, drawn: int, line: int, text: str
    ) -> None:
        self.states = states
        self.title = title
        self.drawing = drawing
        self.drawn = drawn
        self.line = line
        self.end = line
        """The last line of the answer."""
        arrow = re.search(r"\s+=>(\s|$)", text)
        self.before = text if arrow is None else text[: arrow.start()]
        self.arrow = "" if arrow is None else arrow[0].rstrip()
        """With the spaces before it, which stay as they are."""
        self.command = self.before.strip()
        self.expected = [] if arrow is None else [text[arrow.end() :]]

    def __str__(self) -> str:
        """As an id of pytest's, in which ``::`` and ``[`` would mean something."""
        return re.sub(r":{2,}|[\[\]]", "", f"{self.line}: {self.title}: {self.command}")

    def with_answer(self, answer: str) -> list[str]:
        """The lines of the command with another answer."""
        arrow = self.arrow or " =>"
        if "\n" not in answer and len(inline := f"{self.before}{arrow} {answer}") <= _LONGEST:
            return [inline]
        return [self.command, *(f"| {line}" if line else "|" for line in answer.splitlines())]

    def check(self, answer: Answer, draws: str) -> None:
        """Ask the command, and compare or write what it answers.

        ``draws`` is a regular expression of the words that may begin a line of a drawing.
        """
        for label, _ in self.drawing:
            if not re.fullmatch(draws, label):
                raise self.states.error(self.line, f"nothing is drawn by {label!r} for this")
        try:
            found = answered(answer, self.drawing, self.command.split())
        except NotImplementedError:
            raise self.states.error(self.line, "not a command of these states") from None
        except StatesError as error:
            raise self.states.error(self.line, str(error)) from None
        if rewriting:
            self.states.answers[self] = found
            self.states.path.write_text(self.states.rewritten(), encoding="utf-8")
        elif found.splitlines() != self.expected:
            pytest.fail(self._difference(found), pytrace=False)

    def _difference(self, found: str) -> str:
        where = f"{self.states.path}:{self.line}"
        drawing = self.states.lines[self.drawn - 1 : self.line - 1]
        shown = [line for line in drawing if re.match(r"\S+:(\s|$)|\s", line)]
        diff = difflib.unified_diff(
            self.expected, found.splitlines(), where, "what it answers now", lineterm=""
        )
        return "\n".join(
            [f"{where}: {self.title}", *shown, self.command, *diff, "(--rewrite writes it)"]
        )


def states(name: str) -> pytest.MarkDecorator:
    """Call a test once for each command of ``testdata/<name>``, beside the test's own file."""
    caller = inspect.stack()[1].filename
    cases = States(Path(caller).parent / "testdata" / name).cases
    return pytest.mark.parametrize("case", cases, ids=str)


def begin(config: Any) -> None:
    """Take ``--rewrite`` from the command line."""
    global rewriting  # noqa: PLW0603
    rewriting = bool(config.getoption("rewrite", False))
    if rewriting and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--rewrite takes one process: it cannot be combined with -n")
