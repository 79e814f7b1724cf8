"""A few of the kills of ``kills.py``; ``LSMKV_REDIS_KILLS=200`` for as many as are wanted."""

from __future__ import annotations

import os
from pathlib import Path

from kills import Kills

KILLS = int(os.environ.get("LSMKV_REDIS_KILLS", "5"))


def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    kills = Kills(tmp_path / "store")
    for number in range(KILLS):
        wrong = kills.round("always" if number % 2 else "everysec")
        assert wrong == [], f"after kill {number + 1}"
    assert kills.acknowledged > 0
    print(f"{KILLS} kills, {kills.acknowledged} acknowledged writes")  # noqa: T201
