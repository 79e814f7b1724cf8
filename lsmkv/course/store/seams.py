"""Replacement of the engine's functions by a student's: seams, named by module and name.

Only the process in which a student's store runs has seams replaced.  The engine runs interpreted
there (:mod:`lsmkv.testing.interpreted`), so a function is rebound in every module that has imported
it, and a method in its class.  Compiled code would notice neither.

Seams are named by text, such as ``format.log.frame``, and looked up when a part is installed: the
adapters beside this module are the one place that knows the engine's rooms by name.
``tests/course/store/test_seams.py`` holds that each seam exists.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from lsmkv.course.store.guard import Guard

_PACKAGE = __name__.partition(".")[0]


def engine(seam: str) -> Any:
    """A function, class or method of the engine, by its name below the package.

    >>> engine("util.coding.encode_varint")(300)
    b'\\xac\\x02'
    """
    module, _, name = seam.rpartition(".")
    try:
        owner = importlib.import_module(f"{_PACKAGE}.{module}")
    except ModuleNotFoundError:
        owner = engine(module)
    return getattr(owner, name)


class Using:
    """A part that is being installed: the student's functions, and the engine's seams."""

    def __init__(self, part: str, functions: dict[str, Callable[..., Any]], guard: Guard) -> None:
        self.part = part
        self.mine = SimpleNamespace(**functions)
        """The student's functions."""
        self.guard = guard

    def in_use(self) -> bool:
        """True if the student's part is to be asked."""
        return self.guard.is_in_use(self.part)

    def compared(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], reference: Callable[[], Any]
    ) -> Any:
        """See :meth:`Guard.compared`."""
        return self.guard.compared(self.part, function, arguments, reference)

    def agreed(self, function: Callable[..., Any], arguments: tuple[Any, ...], right: Any) -> Any:
        """See :meth:`Guard.agreed`."""
        return self.guard.agreed(self.part, function, arguments, right)

    def function(self, seam: str, make: Callable[[Any], Callable[..., Any]]) -> None:
        """Rebind a function in all modules that imported it; ``make`` gets the engine's own."""
        own = engine(seam)
        made = make(own)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != _PACKAGE or name.startswith(f"{_PACKAGE}.course.store"):
                continue
            for key, value in list(vars(module).items()):
                if value is own:
                    setattr(module, key, made)

    def method(self, seam: str, make: Callable[[Any], Any]) -> None:
        """Replace a method of a class; ``make`` gets the engine's own."""
        owner, _, name = seam.rpartition(".")
        setattr(engine(owner), name, make(engine(seam)))

    def same(self, seam: str, mine: Callable[..., Any]) -> None:
        """Replace a function by the student's with the same arguments and answers."""

        def make(own: Any) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                return self.compared(mine, arguments, lambda: own(*arguments))

            return call

        self.function(seam, make)
