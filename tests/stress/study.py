"""What a study is: something that is tried very often, and must never once go wrong.

A study is a module of this folder with a function ``run(size, seed, say)``.  It tries its promise
``size`` times as often as the suite does (1.0 there, ``make stress`` takes 100), tells ``say`` how
far it is now and then, and returns an :class:`Outcome`.  The same functions serve the suite and
``make stress``, so that what is tried a thousand times at night is tried a little every day.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

Say = Callable[[str], None]
"""Takes a line of progress."""


@dataclass
class Outcome:
    """What a study tried, and what went wrong."""

    figures: dict[str, int] = field(default_factory=dict)
    """By its name, in the order of a report: how often something was tried."""
    violations: list[str] = field(default_factory=list)
    """Each says what broke, and how to see it again."""

    def count(self, name: str, number: int = 1) -> None:
        """Add to a figure."""
        self.figures[name] = self.figures.get(name, 0) + number


def finds_ranges(db: Any) -> Any:
    """That store, whose scans remember each empty range, however short."""
    db._store.empty_ranges.shortest = 1
    return db


class Study(Protocol):
    """A module of this folder."""

    __name__: str

    def run(self, size: float, seed: int, say: Say) -> Outcome:
        """Try ``size`` times as much as the suite does; everything random follows from ``seed``."""
        ...
