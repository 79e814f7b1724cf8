"""Data at the top of the demo's report: the figures, and the story of one absent key.

``static/demo.js`` of the inspector draws it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from lsmkv import DB, Explanation
from lsmkv.tools.demo.measure import LAYOUTS, READING, Lookups, Measurement
from lsmkv.tools.demo.reading import ABOUT, IN_WORDS, TITLES, findings, with_filters
from lsmkv.tools.demo.report import spread
from lsmkv.tools.demo.run import Outcome, Plan
from lsmkv.tools.inspect.lookup import READ, SAVED, WASTED
from lsmkv.tools.inspect.plain import Plain, shown_bytes
from lsmkv.tools.output import Output
from lsmkv.tools.report.command import gather, write_page
from lsmkv.tools.report.page import Answer


class DemoPage:
    """The page of one run of the demo; the order is ``as_loaded write``."""

    def __init__(self, plan: Plan, directory: str) -> None:
        """``directory`` is that of the stores."""
        self._plan = plan
        self._directory = directory
        self._shown = "block" if "block" in plan.layouts else plan.layouts[-1]
        """The layout whose store the other views show: the default one, or else the last."""
        self._stories: list[Plain] = []
        self._answers: list[Answer] = []

    def as_loaded(self, outcome: Outcome) -> None:
        """Read what is shown of the stores, before they are compacted."""
        existing, absent = outcome.example
        self._stories = [story_of(self._directory, one, absent) for one in self._plan.layouts]
        store = os.path.join(self._directory, self._shown)
        self._answers = gather(store, [absent, existing])

    def write(self, file: Output, outcome: Outcome) -> None:
        """Write the page: the result first, and the views of one store."""
        result = Answer("demo", {}, self._result(outcome))
        write_page(file, "lsmkv demo: what a filter saves", [result, *self._answers])

    def _result(self, outcome: Outcome) -> Plain:
        data = self._plan.data
        keys = len(data.expected)
        existing, absent = outcome.example
        states = [one for one in (outcome.as_loaded, outcome.compacted) if one]
        found = with_filters(outcome.as_loaded)
        return {
            "findings": findings(outcome.as_loaded, keys, outcome.wrong, outcome.lookups),
            "found": None if found is None or outcome.wrong else IN_WORDS[found.layout],
            "keys": keys,
            "bytes": data.size,
            "title": data.title,
            "lookups": len(outcome.questions.present),
            "shown": IN_WORDS[self._shown],
            "states": [_state(measurements, keys) for measurements in states],
            "story": {
                "key": shown_bytes(absent),
                "near": shown_bytes(existing),
                "stores": self._stories,
            },
        }


def story_of(directory: str, layout: str, key: bytes) -> Plain:
    """Trace a Get of ``key`` in one store: each table's filter answer, and the blocks read.

    Cost: that of ``DB.explain``.
    """
    with DB(os.path.join(directory, layout), **READING, **LAYOUTS[layout]) as db:
        explanation = db.explain(key)
    return {
        "layout": layout,
        "name": TITLES[layout],
        "tables": list(_tables(explanation)),
        "searched": explanation.blocks_searched,
        "without": explanation.blocks_without_filters,
    }


def _tables(explanation: Explanation) -> list[Plain]:
    """The tables that are asked, in their order."""
    tables: list[Plain] = []
    for table in explanation.tables:
        if not table.asked:
            continue
        answer = None
        if table.filters:
            answer = "maybe" if all(one.may_match for one in table.filters) else "no"
        tone = None
        if table.block is not None:
            tone = WASTED if table.wasted else READ
        elif table.spared is not None:
            tone = SAVED
        tables.append({"level": table.level, "name": table.name, "filter": answer, "tone": tone})
    return tables


def _state(measurements: Sequence[Measurement], keys: int) -> Plain:
    """The stores as they were loaded, or after the compaction."""
    return {
        "spread": spread(measurements),
        "stores": [
            {
                "layout": one.layout,
                "name": TITLES[one.layout],
                "about": ABOUT[one.layout],
                "present": _lookups(one.present),
                "absent": _lookups(one.absent),
                "measured_rate": one.absent.positive_rate,
                "predicted_rate": one.predicted_rate,
                "bits_per_key": one.bits(keys),
            }
            for one in measurements
        ],
    }


def _lookups(lookups: Lookups) -> Plain:
    return {
        "blocks": lookups.blocks_per_get,
        "microseconds": lookups.times.per_get,
    }
