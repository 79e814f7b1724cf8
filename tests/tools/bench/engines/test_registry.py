"""lsmkv.tools.bench.engines.registry: engines by the names that ``--against`` takes."""

from __future__ import annotations

import importlib.util

import pytest

from lsmkv.tools.bench.engines.registry import OWN, PEERS, is_installed, make_engine


def test_an_engine_that_is_installed_is_made_by_its_name() -> None:
    assert OWN not in PEERS
    made = {name: make_engine(name) for name in (OWN, *PEERS) if is_installed(name)}
    assert {OWN, "dbm"} <= set(made)
    assert all(engine.version for engine in made.values())


def test_a_module_that_is_missing_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(importlib.util, "find_spec", asked.append)
    assert not any(is_installed(name) for name in ("plyvel", "sqlite3"))
    assert asked == ["plyvel", "_sqlite3"]  # sqlite3 is there even where its library is not
