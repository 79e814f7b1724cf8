"""A lab: its text, its starter file, its hints and its checks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Check:
    """A check.  ``run`` gets the student's module.  It raises
    :class:`~lsmkv.course.failure.CheckFailure`, or returns its findings as a sentence."""

    name: str
    run: Callable[[ModuleType], str]


@dataclass(frozen=True)
class Lab:
    """A lab.  Its text is the documentation page, hints included."""

    number: int
    slug: str
    title: str
    functions: tuple[str, ...]
    """The functions that the student writes."""
    checks: tuple[Check, ...]
    drawing: Callable[[], str]
    """The bytes that the text shows, one by one, made by the engine's own code."""

    @property
    def file_name(self) -> str:
        """The student's file."""
        return f"lab{self.number}_{self.slug}.py"

    def starter(self) -> str:
        """The initial content of the student's file."""
        return _read("starters", self.file_name)

    def text(self) -> str:
        """The whole text, in Markdown."""
        return _read("texts", f"{self.number:02d}-{self.slug}.md")

    def text_without_hints(self) -> str:
        """The text without the hints, which are shown one by one."""
        before, _, rest = self.text().partition("\n## Hints\n")
        _, heading, after = rest.partition("\n## ")
        return (before + heading + after).rstrip() + "\n"

    def hints(self) -> list[str]:
        """The hints in order, from a first idea to nearly the solution."""
        found: list[str] = []
        for part in self.text().split("<details")[1:]:
            title, _, rest = part.partition("<summary>")[2].partition("</summary>")
            hint = rest.partition("</details>")[0].strip("\n")
            found.append(f"{title}: {hint}")
        return found


def _read(directory: str, name: str) -> str:
    with open(os.path.join(_HERE, directory, name), encoding="utf-8") as file:
        return file.read()
