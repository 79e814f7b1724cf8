"""Collects the measurements of a run, and summarizes them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

import lsmkv
from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.measuring import Spread, ratios, spread
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.workloads import WORKLOADS

Round = dict[str, Any]
_FROM_LAST_ROUND = ("seen", "counters", "levels", "levels_after", "writes", "settle_seconds")


@dataclass
class Results:
    """Filled by the runner; ``to_dict`` is the JSON that the command prints and the page reads."""

    settings: Settings
    rounds: int
    engines: tuple[str, ...]
    missing: tuple[str, ...] = ()
    machine: dict[str, Any] = field(default_factory=dict)
    """A description of the machine that was measured."""
    _versions: dict[str, str] = field(default_factory=dict)
    _peaks: dict[str, int] = field(default_factory=dict)
    _workloads: dict[str, dict[str, list[Round]]] = field(default_factory=dict)
    _studies: dict[str, dict[str, Round]] = field(default_factory=dict)

    def take(self, engine: str, message: dict[str, Any]) -> None:
        """Record what a message of a worker says; those without figures are ignored."""
        if "version" in message:
            self._versions[engine] = message["version"]
        elif message.get("peak_rss") is not None:
            self._peaks[engine] = max(self._peaks.get(engine, 0), message["peak_rss"])
        elif "end" in message:
            name = message["end"]
            outcome = message.get("result", {"skipped": message.get("skipped")})
            if name in WORKLOADS:
                self._workloads.setdefault(name, {}).setdefault(engine, []).append(outcome)
            else:
                self._studies.setdefault(name, {})[engine] = outcome

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON.  Times are microseconds an operation."""
        engines: dict[str, Any] = {
            name: {"version": self._versions.get(name), "peak_rss": self._peaks.get(name)}
            for name in self.engines
        }
        return {
            "lsmkv": lsmkv.__version__,
            "compiled": lsmkv.COMPILED,
            "machine": self.machine,
            "settings": self.settings.to_dict(),
            "rounds": self.rounds,
            "engines": engines | {name: {"missing": True} for name in self.missing},
            "workloads": {name: self._summary(name) for name in self._workloads},
            "studies": self._studies,
        }

    def _summary(self, name: str) -> dict[str, Any]:
        by_engine = self._workloads[name]
        own = by_engine[OWN]
        summaries: dict[str, Any] = {}
        for engine in self.engines:
            rounds = by_engine[engine]
            if "skipped" in rounds[0]:
                summaries[engine] = {"skipped": rounds[0]["skipped"]}
                continue
            summary: dict[str, Any] = {
                "micros": _plain(spread(_micros(rounds))),
                "rounds": _micros(rounds),
            }
            if engine != OWN:
                summary["ratio"] = _plain(ratios(_micros(rounds), _micros(own)))
            summary |= {key: rounds[-1][key] for key in _FROM_LAST_ROUND if key in rounds[-1]}
            if "histogram" in rounds[0]:
                summary["histogram"] = _middle(rounds)["histogram"]
            summaries[engine] = summary
        return {"ops": own[0]["ops"], "engines": summaries}


def _micros(rounds: list[Round]) -> list[float]:
    return [1e6 * one["seconds"] / one["ops"] for one in rounds]


def _middle(rounds: list[Round]) -> Round:
    """The round whose time is the median (the lower one of two)."""
    middle = statistics.median_low([one["seconds"] for one in rounds])
    return next(one for one in rounds if one["seconds"] == middle)


def _plain(numbers: Spread) -> dict[str, float]:
    return numbers._asdict()
