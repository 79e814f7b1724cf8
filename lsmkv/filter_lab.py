"""A door for readers and type checkers: when it runs, ``lsmkv.filter_lab`` is
``lsmkv.tools.filter_lab``.
"""

from __future__ import annotations

from lsmkv.tools.filter_lab import (
    AS_STORED,
    DEFAULT_SETTINGS,
    SETTINGS_WITH_OWN,
    FilterSetting,
    Layout,
    PolicyMaker,
    Replay,
    SettingReads,
    TableReads,
    absent_prefixes,
    parse_setting,
    parse_settings,
    replay,
    scan_absent,
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
