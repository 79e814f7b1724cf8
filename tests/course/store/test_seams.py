"""The seams that adapters name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lsmkv.course import store
from lsmkv.course.store.guard import Guard
from lsmkv.course.store.seams import Using, engine

SOURCES = sorted(Path(store.__path__[0]).glob("*.py"))
SEAM = re.compile(r'"((?:util|filter|format|table|db|counters)(?:\.\w+)+)"')
SEAMS = sorted({seam for path in SOURCES for seam in SEAM.findall(path.read_text())})


@pytest.mark.parametrize("seam", SEAMS)
def test_a_seam_is_there(seam: str) -> None:
    assert engine(seam) is not None


def test_adapters_name_seams() -> None:
    assert len(SEAMS) > 30
    with pytest.raises(AttributeError):
        engine("format.log.framed")


def test_a_function_is_rebound_where_it_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    own = engine("filter.bloom.predicted_rate")
    modules = [engine("filter.bloom"), engine("filter_lab.settings")]
    for module in modules:
        monkeypatch.setattr(module, "predicted_rate", own, raising=False)
    using = Using("a", {}, Guard("."))
    using.function("filter.bloom.predicted_rate", lambda before: lambda: before)
    assert [module.predicted_rate() for module in modules] == [own, own]
    using.function("filter.bloom.predicted_rate", lambda before: own)
