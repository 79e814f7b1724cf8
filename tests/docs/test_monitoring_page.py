"""docs/monitoring.md and docs/reference/metrics.md name metrics that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import ROOT, section
from observing import published
from serving import an_engine

from lsmkv import DB, SharedDB, metrics_text
from lsmkv.server.metrics import server_metrics
from lsmkv.server.queue_depths import QueueDepths
from lsmkv.shared.system.local import SHARES

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def samples(tmp_path: Path) -> set[str]:
    """The names of all metrics: those of a handle, and of a store that processes share."""
    known = {"lsmkv_publishing"}
    if SHARES:
        path = tmp_path / "shared"
        with SharedDB(path, create_if_missing=True, publish_stats=True):
            published(path)
            known |= set(re.findall(r"(?m)^(lsmkv_\w+)\{", metrics_text([path])))
    with DB(tmp_path / "db", create_if_missing=True, publish_stats=True) as db:
        db.put(b"k", b"v")
        db.flush()
        db.get(b"k")
        text = db.metrics_text()
    return known | set(re.findall(r"(?m)^(lsmkv_\w+)\{", text))


def test_every_metric_of_an_expression_is_there(tmp_path: Path) -> None:
    known = samples(tmp_path)
    asked = set(re.findall(r"\blsmkv_\w+", section(PAGE, "What to watch")))
    assert len(asked) > 10
    assert asked - known == set()


def test_names_elsewhere_begin_as_metrics_do(tmp_path: Path) -> None:
    known = samples(tmp_path)
    with an_engine() as engine:
        queues = QueueDepths(engine.space, [b"q"])
        queues.look()
        known |= set(re.findall(r"^(\w+)", server_metrics(engine, queues), re.MULTILINE))
    for name in re.findall(r"\blsmkv_\w+", PAGE + REFERENCE):
        assert any(one.startswith(name) for one in known), name


def test_the_page_says_how_many_series_a_store_has(tmp_path: Path) -> None:
    found = re.search(r"(\d+) series a store, (\d+) with latencies", PAGE)
    assert found is not None
    for publish, said in ((False, found[1]), (True, found[2])):
        options = {"create_if_missing": True, "publish_stats": publish}
        with DB(tmp_path / f"{publish}", **options) as db:  # type: ignore[arg-type]
            lines = db.metrics_text().splitlines()
        series = sum(not line.startswith("#") for line in lines)
        assert abs(series - int(said)) <= 10


@pytest.mark.skipif(not SHARES, reason="no processes share a store here")
def test_alerts_are_rules_of_metrics_that_there_are(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    text = section(PAGE, "Alerts")
    (group,) = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])["groups"]
    known = samples(tmp_path)
    assert len(group["rules"]) >= 7
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "annotations"}
        assert re.fullmatch(r"Lsmkv[A-Za-z]+", rule["alert"])
        assert re.fullmatch(r"\d+[sm]", rule.get("for", "1m"))
        assert "{{ $labels.store }}" in rule["annotations"]["summary"]
        names = set(re.findall(r"\blsmkv_\w+", rule["expr"]))
        assert names
        assert names <= known, rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
