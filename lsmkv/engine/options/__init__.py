"""Every setting of a store, under LevelDB's name and with LevelDB's default.

``arguments.py`` declares them, ``settings.py`` makes the record that the engine passes on.
"""

from __future__ import annotations

from lsmkv.engine.options.arguments import (
    OPTIONS,
    BackgroundWork,
    Compression,
    FilterBits,
    FilterLayout,
    OptionArguments,
    Prefixes,
    TableArguments,
    checked_lock_timeout,
    refuse_unknown,
)
from lsmkv.engine.options.option import KIB, MIB
from lsmkv.engine.options.settings import (
    L0_COMPACTION_TRIGGER,
    L0_SLOWDOWN_WRITES_TRIGGER,
    L0_STOP_WRITES_TRIGGER,
    MAX_MEM_COMPACT_LEVEL,
    OWN_COMPARATORS,
    Options,
    has_own_parts_alone,
    in_stored_order,
    likely_comparators,
    make_options,
    options_with,
    own_comparator,
)

__all__ = [
    "KIB",
    "L0_COMPACTION_TRIGGER",
    "L0_SLOWDOWN_WRITES_TRIGGER",
    "L0_STOP_WRITES_TRIGGER",
    "MAX_MEM_COMPACT_LEVEL",
    "MIB",
    "OPTIONS",
    "OWN_COMPARATORS",
    "BackgroundWork",
    "Compression",
    "FilterBits",
    "FilterLayout",
    "OptionArguments",
    "Options",
    "Prefixes",
    "TableArguments",
    "checked_lock_timeout",
    "has_own_parts_alone",
    "in_stored_order",
    "likely_comparators",
    "make_options",
    "options_with",
    "own_comparator",
    "refuse_unknown",
]
