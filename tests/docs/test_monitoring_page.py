"""docs/monitoring.md names metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path

from documents import ROOT, section

from lsmkv import DB

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")


def samples(tmp_path: Path) -> set[str]:
    with DB(tmp_path / "db", create_if_missing=True, publish_stats=True) as db:
        db.put(b"k", b"v")
        db.flush()
        db.get(b"k")
        text = db.metrics_text()
    return set(re.findall(r"(?m)^(lsmkv_\w+)\{", text))


def test_every_metric_of_an_expression_is_there(tmp_path: Path) -> None:
    known = samples(tmp_path) | {"lsmkv_publishing"}
    asked = set(re.findall(r"\blsmkv_\w+", section(PAGE, "What to watch")))
    assert len(asked) > 10
    assert asked - known == set()


def test_names_elsewhere_on_the_page_begin_as_metrics_do(tmp_path: Path) -> None:
    known = samples(tmp_path) | {"lsmkv_publishing"}
    for name in re.findall(r"\blsmkv_\w+", PAGE):
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
