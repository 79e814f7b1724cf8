"""The type of what an iterator returns, for type checkers.

It has a default, so that ``Iterator`` without a parameter stays a valid type for programs that are
checked strictly.  ``typing`` has defaults only from Python 3.13 on.  This module is not compiled,
as mypyc does not support the ``else`` of ``if TYPE_CHECKING``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Entry_co = TypeVar("Entry_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    Entry_co = TypeVar("Entry_co", covariant=True)
