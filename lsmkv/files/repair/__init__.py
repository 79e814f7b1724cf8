"""Survey of the damage to a store's files, without a repair: ``lsmkv verify`` for programs.

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

from lsmkv.engine.former_paths import keep_paths
from lsmkv.files.repair.damaged_table import Hole, Problem
from lsmkv.files.repair.found_blocks import find_blocks
from lsmkv.files.repair.report import (
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
from lsmkv.files.repair.survey import acknowledge_lost, survey_db
from lsmkv.files.repair.ways import WAYS, Rescue, Way, rescue_db

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

keep_paths(*(globals()[name] for name in __all__))
