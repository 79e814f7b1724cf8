"""Block reads of Gets in a store under other filters, counted rather than estimated.

=======================  =========================================================================
:func:`parse_settings`   settings by text: ``none``, ``block:10``, ``table64:auto:10``, ``fuse``
:func:`replay`           the blocks that Gets would read under each setting
:func:`scan_absent`      the blocks that scans of absent prefixes read, which no setting changes
=======================  =========================================================================

The filters that a setting would have built are built in memory by the same code that builds those
of tables, and asked as a Get asks them.  So the counts are those of a store that was built with the
setting and has no block cache.  Nothing is written.  ``lsmkv filter-lab`` prints what this finds,
and ``docs/filters.md`` explains the figures.

>>> import lsmkv
>>> with lsmkv.DB(":memory:", bloom_filter_bits=0) as db:
...     for number in range(0, 2000, 2):
...         db.put(b"%04d" % number, b"even")
...     db.flush()
...     gets = [b"%04d" % number for number in range(1000)]
...     found = replay(db, gets, parse_settings("block64:5"))
>>> found.gets, found.found
(1000, 500)
>>> [(one.setting, one.wasted_reads) for one in found.results]
[('as stored', 500), ('block64:5', 41)]
"""

from __future__ import annotations

from lsmkv.engine.former_paths import keep_paths
from lsmkv.tools.filter_lab.reads import AS_STORED, Replay, SettingReads, TableReads
from lsmkv.tools.filter_lab.replaying import replay
from lsmkv.tools.filter_lab.scans import absent_prefixes, scan_absent
from lsmkv.tools.filter_lab.settings import (
    DEFAULT_SETTINGS,
    SETTINGS_WITH_OWN,
    FilterSetting,
    Layout,
    PolicyMaker,
    parse_setting,
    parse_settings,
)

__all__ = [
    "AS_STORED",
    "DEFAULT_SETTINGS",
    "SETTINGS_WITH_OWN",
    "FilterSetting",
    "Layout",
    "PolicyMaker",
    "Replay",
    "SettingReads",
    "TableReads",
    "absent_prefixes",
    "parse_setting",
    "parse_settings",
    "replay",
    "scan_absent",
]

keep_paths(*(globals()[name] for name in __all__))
