"""Settings of a cache: :class:`Settings`, which the store keeps."""

from __future__ import annotations

from typing import Any, Final

from lsmkv.cache.codecs import DefaultCodec
from lsmkv.cache.keys import (
    HEAD,
    LAYOUT,
    MOST,
    NUMBER_SIZE,
    ORDER,
    POSITION_SIZE,
    SETTING,
    VALUE,
)
from lsmkv.engine.db.db import DB
from lsmkv.engine.errors import CorruptionError, Error

POLICIES: Final = (
    "least-recently-used",
    "least-recently-stored",
    "least-frequently-used",
    "none",
)
DEFAULTS: Final[dict[str, Any]] = {
    "size_limit": 1 << 30,
    "eviction_policy": "least-recently-used",
    "cull_limit": 10,
    "statistics": 0,
}
"""The default settings."""
_LAYOUT_VERSION: Final = b"1"
LATER_LAYOUT: Final = b"2"
"""The version of a layout with values beside their heads, or with the bounds of queues, which
releases before 0.3 do not know."""
_LOOKED_AT: Final = 1000
"""Entries among which one is looked for that is whole."""
_ALIASES: Final = {"eviction": "eviction_policy"}


class Settings:
    """The settings of a cache, as this handle knows them.

    They are stored.  Another handle sees a change when it reads them again.
    """

    def __init__(self) -> None:
        self.size_limit: int = DEFAULTS["size_limit"]
        """Bytes."""
        self.eviction_policy: str = DEFAULTS["eviction_policy"]
        self.cull_limit: int = DEFAULTS["cull_limit"]
        """The most entries that one write evicts."""
        self.statistics: int = DEFAULTS["statistics"]
        """1 if hits and misses are counted."""

    def read(self, db: DB) -> None:
        """Read the store's settings; mark a new store as that of a cache.

        :class:`~lsmkv.Error` for a store of anything else.
        """
        layout = db.get(LAYOUT)
        if layout is None:
            if next(iter(db.iterator(limit=1)), None) is not None and not _has_entries(db):
                raise Error(f"{db.path}: this store is not a cache")
            db.put(LAYOUT, _LAYOUT_VERSION)
        elif layout not in (_LAYOUT_VERSION, LATER_LAYOUT):
            raise Error(f"{db.path}: this cache was made by a later version of lsmkv")
        codec = DefaultCodec()
        for key, value in db.iterator(prefix=SETTING):
            name = key[1:].decode("utf-8", "replace")
            if name in DEFAULTS:
                try:
                    setattr(self, name, checked(name, codec.decode(value)))
                except (TypeError, ValueError) as error:
                    raise CorruptionError(f"the setting {name} of a cache: {error}") from error

    def allow_values_beside(self, db: DB) -> None:
        """Mark the store as one that may have values beside their heads."""
        if db.get(LAYOUT) != LATER_LAYOUT:
            db.put(LAYOUT, LATER_LAYOUT)

    def write(self, db: DB, name: str, value: Any) -> None:
        """Change a setting, here and in the store."""
        value = checked(name, value)
        db.put(SETTING + name.encode(), DefaultCodec().encode(value))
        setattr(self, name, value)


def _has_entries(db: DB) -> bool:
    """True if a store has entries of a cache, though a repair has lost the cache's settings."""
    for key, entry in db.iterator(prefix=ORDER, limit=_LOOKED_AT):
        data = db.get(HEAD + entry[POSITION_SIZE:])
        if data is not None and data[1 : 1 + NUMBER_SIZE] == key[1:]:
            return True
    keys = db.iterator(include_value=False, limit=_LOOKED_AT)
    return all(key[:1] == VALUE and len(key) == 1 + NUMBER_SIZE for key in keys)


def known(name: str) -> str:
    """Resolve the name of a setting, of which there may be two; ``ValueError`` for others."""
    name = _ALIASES.get(name, name)
    if name not in DEFAULTS:
        raise ValueError(f"a cache has no setting {name!r}: it has {', '.join(sorted(DEFAULTS))}")
    return name


def checked(name: str, value: Any) -> Any:
    """A setting's value, if it can be one; ``TypeError`` or ``ValueError`` otherwise."""
    if name == "eviction_policy":
        if value not in POLICIES:
            raise ValueError(f"eviction is one of {', '.join(POLICIES)}, not {value!r}")
        return value
    if not isinstance(value, int):
        raise TypeError(f"{name} is an int, not {type(value).__name__}")
    if not 0 <= value <= MOST:
        raise ValueError(f"{name} is at least 0, and below 2**63; not {value}")
    return int(value)
