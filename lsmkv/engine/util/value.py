"""The base class of settings that users compare by their content.

Worker processes import the settings, so it is apart from ``record.py``, which imports
``dataclasses`` and with them some milliseconds.
"""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Value:
    """The base class of settings that are not a dataclass: equal if their types and arguments are.

    A subclass returns the arguments of its ``__init__`` from ``_arguments``.  Attributes that a
    user's subclass adds are compared as well.  Classes that stay interpreted do not derive from it:
    ``pickle`` loses their attributes if their base is compiled.
    """

    def _arguments(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments()))})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value) or type(self) is not type(other):
            return False
        ours: object = getattr(self, "__dict__", None)
        return self._arguments() == other._arguments() and ours == getattr(other, "__dict__", None)

    def __hash__(self) -> int:
        return hash((type(self), self._arguments()))
