"""What is wrong with a store's files, without repairing anything: ``lsmkv verify`` for programs.

:func:`survey_db` reads every file of a store, which may be too damaged to be opened, and returns a
:class:`Survey`: plain data.  :func:`lsmkv.plan_repair` and :func:`lsmkv.repair_db` continue from
there; ``docs/repair.md`` explains all of it.

>>> import lsmkv
>>> env = lsmkv.MemoryEnv()
>>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
...     db.put(b"ant", b"six")
>>> env.open_directory("store").remove("CURRENT")
>>> found = survey_db("store", env=env)
>>> found.severity == DAMAGED
True
>>> [(file.name, file.problems) for file in found.files if file.severity == DAMAGED]
[('CURRENT', [Problem(0, 0, 'missing')])]
"""

from __future__ import annotations

from lsmkv.repair.damaged_table import Hole, Problem
from lsmkv.repair.found_blocks import find_blocks
from lsmkv.repair.report import (
    DAMAGED,
    REMARKABLE,
    SOUND,
    FileSurvey,
    LogSurvey,
    LostLogSurvey,
    ManifestSurvey,
    Survey,
    TableSurvey,
)
from lsmkv.repair.survey import acknowledge_lost, survey_db
from lsmkv.repair.ways import WAYS, Rescue, Way, rescue_db

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
