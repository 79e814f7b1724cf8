"""The console of the playground: statements run one after the other, and print as they do."""

from __future__ import annotations

import ast
import code
import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Final

import lsmkv

LONGEST: Final = 100_000
"""The longest source, in characters, and the most that one run of it prints."""

_PIECE: Final = 1000
"""A line that is longer is passed on before it ends."""


class Console:
    """Names of a visitor, ``lsmkv`` among them, and what runs with them.

    >>> printed = []
    >>> Console().run("a = 6\\na * 7", printed.append)
    True
    >>> "".join(printed)
    '42\\n'
    """

    def __init__(self) -> None:
        self._interpreter = code.InteractiveInterpreter({"__name__": "__console__", "lsmkv": lsmkv})

    def run(self, source: str, write: Callable[[str], object]) -> bool:
        """Run statements, as the interactive interpreter does, up to the first that fails.

        The value of an expression is printed.  ``write`` takes what is printed, tracebacks
        included, line by line.  Returns whether all went well.
        """
        if len(source) > LONGEST:
            raise ValueError(f"at most {LONGEST:,} characters at once")
        printed = _Printed(write)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            done = self._run(source, printed)
        printed.flush()
        return done

    def _run(self, source: str, printed: _Printed) -> bool:
        try:
            statements = list(_statements(source))
        except (SyntaxError, ValueError):
            self._interpreter.runsource(source, symbol="exec")  # which reports it
            return False
        for statement in statements:
            before = printed.failures
            self._interpreter.runsource(statement, symbol="single")
            if printed.failures != before:
                return False
        return True


class _Printed(io.TextIOBase):
    """Text that is printed; it is passed on line by line, and cut when it is too long.

    The interpreter writes a traceback at once, as a text that begins like one.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._left = LONGEST
        self._line = ""
        """The printed part of a line that has not ended."""
        self.failures = 0

    def write(self, text: str) -> int:
        if text.startswith("Traceback ("):
            self.failures += 1
        if self._left > 0:
            self._line += text[: self._left]
            self._left -= len(text)
            if self._left <= 0:
                self._line += f"\n… (more than {LONGEST:,} characters)\n"
            if "\n" in text or self._left <= 0 or len(self._line) > _PIECE:
                self.flush()
        return len(text)

    def flush(self) -> None:
        if self._line:
            self._write(self._line)
        self._line = ""


def _statements(source: str) -> Iterator[str]:
    """The statements of a source; those that share a line stay together.

    Empty lines precede each, so that its lines keep their numbers.
    """
    lines = source.splitlines()
    begin = end = 0
    for node in ast.parse(source).body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(one.lineno for one in decorators)])
        if first > end and end:
            yield _piece(lines, begin, end)
            begin = 0
        begin = begin or first
        end = node.end_lineno or first
    if end:
        yield _piece(lines, begin, end)


def _piece(lines: list[str], begin: int, end: int) -> str:
    return "\n" * (begin - 1) + "\n".join(lines[begin - 1 : end]) + "\n"
