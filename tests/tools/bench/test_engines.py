"""lsmkv.tools.bench.engines: lsmkv's engine, and where its peers' are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import lsmkv
from lsmkv.tools.bench import engines
from lsmkv.tools.bench.engines import OWN, PEERS, NoPeersError, folder_of_peers, make_engine

CHECKOUT = Path(__file__).parents[3]


def test_an_engine_is_made_by_its_name() -> None:
    assert OWN not in PEERS
    assert make_engine(OWN).version == lsmkv.__version__
    assert make_engine("dbm").version


def test_a_module_that_is_missing_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(importlib.util, "find_spec", asked.append)
    assert not any(engines.is_installed(name) for name in ("plyvel", "sqlite3"))
    assert asked == ["plyvel", "_sqlite3"]  # sqlite3 is there even where its library is not


def test_peers_are_those_of_the_checkout_or_of_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsmkv, "__file__", str(tmp_path / "lsmkv" / "__init__.py"))
    monkeypatch.chdir(CHECKOUT)
    assert Path(folder_of_peers()) == CHECKOUT / "tests" / "bench"
    own = tmp_path / "tests" / "bench" / "lsmkv_peers"
    own.mkdir(parents=True)
    assert Path(folder_of_peers()) == own.parent
    own.rmdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoPeersError, match=r"^peers are measured from a checkout of lsmkv: "):
        make_engine("dbm")
    assert make_engine(OWN).version
