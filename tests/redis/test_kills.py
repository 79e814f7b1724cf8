"""A few of the kills of ``kills.py``; ``LSMKV_REDIS_KILLS=200`` for as many as are wanted."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from kills import Kills

KILLS = int(os.environ.get("LSMKV_REDIS_KILLS", "5"))
_TOGETHER = 20
"""Kills of one test, which has to end within minutes."""
_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kills]:
    """One directory for all of them."""
    logger = logging.getLogger("asyncio")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it tells of each write to a server that was killed
    yield Kills(tmp_path_factory.mktemp("kills") / "store")
    logger.setLevel(level)


@pytest.mark.parametrize("first", range(0, KILLS, _TOGETHER))
def test_what_was_acknowledged_survives_kills(kills: Kills, first: int) -> None:
    before = kills.acknowledged
    for number in range(first, min(first + _TOGETHER, KILLS)):
        wrong = kills.round("always" if number % 2 else "everysec")
        assert wrong == [], f"after kill {number + 1}"
    assert kills.acknowledged > before
    _log.info("%d kills, %d acknowledged writes", number + 1, kills.acknowledged)
