"""The base class of frozen dataclasses for users, which are copied and pickled by their fields."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Record:
    """The base class of frozen dataclasses, which are copied and pickled by their fields.

    Restores an object with the class's own ``__init__``.  Without it, ``pickle`` sets the fields
    one by one, which a compiled frozen dataclass refuses.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        whole: Any = self
        return type(self), tuple([getattr(self, field.name) for field in fields(whole)])
