"""The declaration of an option besides its name and type: its default, its check, and where it
applies.

``arguments.py`` has one of these in the annotation of each option.  A check gets the option's name,
for its error, and returns the effective value.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from lsmkv.engine.util.compression import SNAPPY, codec_named
from lsmkv.engine.util.threads import HAS_THREADS

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB


class Option:
    """An option that is used as given, or checked together with others (``settings.py``)."""

    def __init__(self, default: Any, *, leveldb: str = "same", in_workers: bool = False) -> None:
        self.default = default
        """Its value if it is left out."""
        self.leveldb = leveldb
        """``same`` if LevelDB has it under this name; else the name of LevelDB's counterpart, or
        ``none``."""
        self.in_workers = in_workers
        """True if it is sent to worker processes unchanged: plain data on which their work
        depends.  Other data that they need is in ``db/compact/messages.py``."""

    def checked(self, name: str, value: Any) -> Any:
        """The effective value.  ``TypeError`` and ``ValueError`` name the option."""
        return value


class Flag(Option):
    """An option that is on or off; any object counts by its truth value."""

    def checked(self, name: str, value: Any) -> bool:
        """True or False."""
        return bool(value)


class Size(Option):
    """A number from ``least`` to ``most``: one beyond a bound means the bound, None the default.

    The upper ends are LevelDB's; the lower ones are smaller, for small machines and for tests.
    """

    def __init__(
        self,
        default: int,
        least: int = 0,
        most: int | None = None,
        *,
        leveldb: str = "same",
        in_workers: bool = False,
    ) -> None:
        super().__init__(default, leveldb=leveldb, in_workers=in_workers)
        self.least = least
        self.most = most

    def checked(self, name: str, value: Any) -> int:
        """A number within the bounds."""
        size = max(self.least, not_negative(name, self.default if value is None else value))
        return size if self.most is None else min(size, self.most)


class Checked(Option):
    """An option with its own check."""

    def __init__(
        self,
        default: Any,
        check: Callable[[str, Any], Any],
        *,
        leveldb: str = "same",
        in_workers: bool = False,
    ) -> None:
        super().__init__(default, leveldb=leveldb, in_workers=in_workers)
        self._check = check

    def checked(self, name: str, value: Any) -> Any:
        """The result of the check."""
        return self._check(name, value)


# Checks


def not_negative(name: str, value: object) -> int:
    """A whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} cannot be negative: {value}")
    return value


def bound_or_none(name: str, value: object) -> int | None:
    """A whole number, 0 or more; None is no bound."""
    return None if value is None else not_negative(name, value)


def sampling(name: str, value: object) -> int:
    """A whole number, 1 or more; None is 1."""
    number = 1 if value is None else not_negative(name, value)
    if number < 1:
        raise ValueError(f"{name} must be at least 1, which is every operation, not 0")
    return number


def seconds(name: str, value: object) -> float:
    """A number of seconds, 0 or more."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not value >= 0:  # nor a NaN
        raise ValueError(f"{name} cannot be negative: {value}")
    return float(value)


def path_or_none(name: str, value: object) -> str | None:
    """A path as text."""
    if value is None:
        return None
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a path or None, not {type(value).__name__}")
    return os.fsdecode(value)


def text_or_none(name: str, value: object) -> str:
    """ASCII text; None is the empty one."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str or None, not {type(value).__name__}")
    if value is not None and not value.isascii():
        raise ValueError(f"{name} must be ASCII: {value!r}")
    return value or ""


def codec(name: str, value: object) -> int:
    """The number of a codec; ``auto`` is Snappy, until the store says otherwise."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str or None, not {type(value).__name__}")
    return SNAPPY if value == "auto" else codec_named(value)


def background_work(name: str, value: object) -> str:
    """Check a value of ``background``, which selects where flushes and compactions run."""
    if value not in ("auto", "thread", "process", "inline"):
        raise ValueError(f"{name} is 'auto', 'thread', 'process' or 'inline', not {value!r}")
    if not HAS_THREADS:
        if value in ("thread", "process"):
            raise ValueError(f"{name} cannot be {value!r} here: this platform has no threads")
        return "inline"
    return str(value)
