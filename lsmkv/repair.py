"""A door for readers and type checkers: when it runs, ``lsmkv.repair`` is
``lsmkv.files.repair``.
"""

from __future__ import annotations

from lsmkv.files.repair import (
    DAMAGED,
    REMARKABLE,
    SOUND,
    WAYS,
    FileSurvey,
    Hole,
    LogSurvey,
    LostLogSurvey,
    ManifestSurvey,
    Problem,
    Rescue,
    Survey,
    TableSurvey,
    Way,
    acknowledge_lost,
    find_blocks,
    rescue_db,
    survey_db,
)

__all__ = [
    "DAMAGED",
    "REMARKABLE",
    "SOUND",
    "WAYS",
    "FileSurvey",
    "Hole",
    "LogSurvey",
    "LostLogSurvey",
    "ManifestSurvey",
    "Problem",
    "Rescue",
    "Survey",
    "TableSurvey",
    "Way",
    "acknowledge_lost",
    "find_blocks",
    "rescue_db",
    "survey_db",
]
