"""A lab: its text, its starter file, its hints and its checks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))
_HINT = re.compile(r"(?s)<details[^>]*>\s*<summary>([^<]*)</summary>\n\n(.*?)\n\n</details>\n?")
_HINTS = re.compile(r"(?ms)^## Hints\n.*\Z")


@dataclass(frozen=True)
class Check:
    """One check.  ``run`` gets the student's module; it raises
    :class:`~lsmkv.course.failure.CheckFailure`, or returns what it found, in words."""

    name: str
    run: Callable[[ModuleType], str]


@dataclass(frozen=True)
class Lab:
    """One lab.  Its text is the page of the documentation, hints included."""

    number: int
    slug: str
    title: str
    functions: tuple[str, ...]
    """What the student writes."""
    checks: tuple[Check, ...]
    drawing: Callable[[], str]
    """The bytes that the text shows, byte by byte, made by the engine's own code."""

    @property
    def file_name(self) -> str:
        """The student's file."""
        return f"lab{self.number}_{self.slug}.py"

    def starter(self) -> str:
        """What the student's file begins as."""
        return _read("starters", self.file_name)

    def text(self) -> str:
        """The whole text, in Markdown."""
        return _read("texts", f"{self.number:02d}-{self.slug}.md")

    def text_without_hints(self) -> str:
        """The text up to the hints, which are opened one by one."""
        return _HINTS.sub("", self.text()).rstrip() + "\n"

    def hints(self) -> list[str]:
        """The hints in their order, from a nudge to nearly the answer."""
        return [f"{found[1]}: {found[2]}" for found in _HINT.finditer(self.text())]


def _read(directory: str, name: str) -> str:
    with open(os.path.join(_HERE, directory, name), encoding="utf-8") as file:
        return file.read()
