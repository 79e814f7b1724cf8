"""lsmkv.tools.bench.results: the rounds of a run, put together."""

from __future__ import annotations

from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.results import Results
from lsmkv.tools.bench.settings import Settings


def test_the_middle_round_tells_its_histogram() -> None:
    results = Results(Settings(), 3, (OWN,))
    for seconds in (3.0, 1.0, 2.0):
        outcome = {"ops": 2, "seconds": seconds, "seen": {}, "histogram": seconds}
        results.take(OWN, {"end": "fillseq", "result": outcome})
    summary = results.to_dict()["workloads"]["fillseq"]["engines"][OWN]
    assert summary["histogram"] == 2.0
    assert summary["micros"] == {"median": 1e6, "low": 0.5e6, "high": 1.5e6}
