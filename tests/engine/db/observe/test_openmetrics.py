"""lsmkv.engine.db.observe.openmetrics: the text for monitoring systems, read by Prometheus' own
parser.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv import DB, LevelStats, Stats
from lsmkv.engine.counters import LEVEL_COUNTERS, STORE_COUNTERS
from lsmkv.engine.db.observe.openmetrics import CONTENT_TYPE, metric_name

parser = pytest.importorskip("prometheus_client.openmetrics.parser")


def families(text: str) -> dict[str, Any]:
    """The families by name; the parser refuses what OpenMetrics forbids."""
    assert text.endswith("\n# EOF\n")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def values(text: str, sample: str) -> list[float]:
    return [
        one.value
        for family in families(text).values()
        for one in family.samples
        if one.name == sample
    ]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[DB]:
    with DB(tmp_path / "db", create_if_missing=True, publish_stats=True) as db:
        for number in range(100):
            db.put(b"%03d" % number, bytes(20))
        db.flush()
        for number in range(200):
            db.get(b"%03d" % number)
        yield db


def test_every_counter_is_a_metric_with_type_help_and_unit(db: DB) -> None:
    found = families(db.metrics_text())
    for names, prefix in ((STORE_COUNTERS, "lsmkv_"), (LEVEL_COUNTERS, "lsmkv_level_")):
        for name in names:
            metric, unit = metric_name(name)
            family = found[prefix + metric]
            assert family.type == "counter"
            assert family.unit == unit
            assert metric.endswith(unit)
            assert family.documentation.endswith(".")
            # Of a declaration without a meaning, the name in words.
            assert family.documentation.lower() != name.replace("_", " ") + "."
            assert '"' not in family.documentation
            assert [one.name for one in family.samples] == [f"{prefix}{metric}_total"] * len(
                family.samples
            )


def test_what_says_how_things_stand_is_a_gauge(db: DB) -> None:
    found = families(db.metrics_text())
    for record, prefix in ((Stats, "lsmkv_"), (LevelStats, "lsmkv_level_")):
        for field in fields(record):
            number = str(field.type).startswith(("int", "float"))
            if number and field.name not in {
                *STORE_COUNTERS, *LEVEL_COUNTERS, "level", "filter_positives",
            }:  # fmt: skip
                assert found[prefix + metric_name(field.name)[0]].type == "gauge"
    (about,) = found["lsmkv_store"].samples
    assert about.labels | {"store": ""} == {
        "store": "",
        "compression": db.stats().compression,
        "log": "mapped" if db.stats().mapped_log else "written",
    }


def test_the_figures_are_those_of_stats(db: DB) -> None:
    text, stats = db.metrics_text(), db.stats()
    assert values(text, "lsmkv_gets_total") == [stats.gets]
    assert values(text, "lsmkv_level_files") == [level.files for level in stats.levels]
    assert sum(values(text, "lsmkv_level_filter_negatives_total")) == stats.filter_negatives
    samples = families(text)["lsmkv_level_bytes"].samples
    assert [one.labels for one in samples] == [
        {"store": db.path, "level": str(level)} for level in range(len(stats.levels))
    ]


def test_latencies_are_cumulative_histograms(db: DB) -> None:
    samples = families(db.metrics_text())["lsmkv_operation_seconds"].samples
    for operation, expected in (("get", 200), ("put", 100), ("delete", 0), ("seek", 0)):
        own = [one for one in samples if one.labels["operation"] == operation]
        buckets = [one for one in own if one.name.endswith("_bucket")]
        bounds = [float(one.labels["le"]) for one in buckets]
        counts = [one.value for one in buckets]
        assert bounds == sorted(bounds)
        assert bounds[-1] == math.inf
        assert counts == sorted(counts)
        (count,) = [one.value for one in own if one.name.endswith("_count")]
        (total,) = [one.value for one in own if one.name.endswith("_sum")]
        assert count == counts[-1] == expected
        assert (total > 0) is (expected > 0)
        if expected:
            assert total / count < bounds[-2]


def test_a_store_that_is_not_observed_has_no_latencies() -> None:
    with DB(":memory:") as db:
        assert "lsmkv_operation_seconds" not in families(db.metrics_text())


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        ('a "quoted" name', 'a "quoted" name'),
        ("back\\slash\\n", "back\\slash\\n"),
        ("two\nlines\r", "two\nlines\r"),
        ("Größe, 中", "Größe, 中"),
        ("not UTF-8: \udcff", "not UTF-8: \\udcff"),
        ("", ""),
    ],
)
def test_any_path_is_a_label(store: str, shown: str) -> None:
    with DB(":memory:") as db:
        text = db.metrics_text(store=store)
    text.encode()
    for family in families(text).values():
        assert {one.labels["store"] for one in family.samples} == {shown}


def test_the_label_is_the_path(tmp_path: Path) -> None:
    path = tmp_path / 'with "quotes"\nand lines'
    with DB(path, create_if_missing=True) as db:
        (sample,) = families(db.metrics_text())["lsmkv_gets"].samples
    assert sample.labels == {"store": str(path)}


def test_counters_never_fall_while_threads_use_the_store() -> None:
    with DB(":memory:", write_buffer_size=20_000, lru_cache_size=0) as db:
        done = threading.Event()

        def work(seed: int) -> None:
            for number in range(1500):
                db.put(b"%d" % (number * seed % 997), bytes(50))
                db.get(b"%d" % number)
            done.set()

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (7, 11, 13)]
        for thread in threads:
            thread.start()
        before: dict[tuple[str, str], float] = {}
        is_last = False
        while not is_last:
            is_last = done.is_set()
            for family in families(db.metrics_text()).values():
                if family.type == "counter":
                    for one in family.samples:
                        key = one.name, one.labels.get("level", "")
                        assert one.value >= before.get(key, 0), key
                        before[key] = one.value
            time.sleep(0.01)
        for thread in threads:
            thread.join()
    assert before["lsmkv_writes_total", ""] > 0


def test_a_closed_store_has_no_metrics() -> None:
    db = DB(":memory:")
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        db.metrics_text()


def test_the_content_type_is_that_of_prometheus_client() -> None:
    exposition = pytest.importorskip("prometheus_client.openmetrics.exposition")
    assert exposition.CONTENT_TYPE_LATEST == CONTENT_TYPE
