"""Findings of the lab about a store, as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple

from lsmkv.tools.filter_lab import Replay
from lsmkv.tools.lab.heat import Heat
from lsmkv.tools.lab.verdict import RULE, Verdict


class Outcome(NamedTuple):
    """All that the lab found out about one store."""

    path: str
    source: str
    """A description of the keys' source."""
    seed: int
    replay: Replay
    heat: Heat
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        replay = self.replay
        return {
            "path": self.path,
            "keys": self.source,
            "seed": self.seed,
            "gets": replay.gets,
            "from_memory": replay.from_memory,
            "found": replay.found,
            "entries": replay.entries,
            "unsafe_order": replay.unsafe_order,
            "settings": [one.to_dict(replay.gets) for one in replay.results],
            "heat": {
                "scans": self.heat.scans,
                "tables": [table._asdict() for table in self.heat.tables],
            },
            "verdict": self.verdict._asdict() | {"rule": RULE},
        }
