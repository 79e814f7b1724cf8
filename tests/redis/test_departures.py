"""A second of each way of ``departures.py``; ``LSMKV_REDIS_SECONDS=180`` for as long as wanted."""

from __future__ import annotations

import faulthandler
import logging
import os
from pathlib import Path

import pytest
from departures import WAYS, depart
from loops import KINDS

SECONDS = float(os.environ.get("LSMKV_REDIS_SECONDS", "1"))
_log = logging.getLogger(__name__)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", KINDS)
def test_no_departure_leaves_others_without_replies(tmp_path: Path, loop: str, way: str) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    faulthandler.cancel_dump_traceback_later()  # it may be asked to take minutes
    ended = depart(tmp_path / "store", loop, way, SECONDS)
    _log.info(
        "%s, %s: %d left, %d pipelines answered, %d hangs",
        *(loop, way, ended.left, ended.rounds, ended.hangs),
    )
    assert ended.hangs == 0
    assert ended.wrong == []
    assert ended.left > 0
    assert ended.rounds > 0
