"""The options that a handle of a shared store was given, and which of them are not in force.

The owner's options count for what the owner does (``engine/options/whose.py``).  A member that was
given others says so, once.
"""

from __future__ import annotations

from collections.abc import Collection

from lsmkv.engine.options import OptionArguments, Options
from lsmkv.engine.options.whose import differing


class GivenOptions:
    """The options of one opening.  One thread at a time calls it."""

    def __init__(self, given: OptionArguments, defaults: Collection[str]) -> None:
        """``defaults`` are the names of those that the user did not give."""
        self._given = given.copy()
        for name in defaults:
            del self._given[name]  # type: ignore[misc]
        self._reported: dict[str, str] = {}

    def difference(self, in_force: Options) -> str:
        """The options of which another value is in force, with both values; "" if there are none
        except those that the last call has returned."""
        now = differing(self._given, in_force)
        new = [
            f"{name} is {text}" for name, text in now.items() if self._reported.get(name) != text
        ]
        self._reported = now
        return "; ".join(new)
