"""What a plan says of itself: what is kept, what is set aside, and which way it recommends."""

from __future__ import annotations

from pathlib import Path

import pytest
from stores import flip, put_numbered

import lsmkv
from lsmkv import DB


def store_with_a_lost_write(path: Path, lost: int) -> None:
    """A store of 20 keys in a table and 20 in its log, one of whose writes is damaged."""
    with DB(path, create_if_missing=True) as db:
        put_numbered(db, b"t%02d", range(20), b"table")
        db.flush()
        put_numbered(db, b"l%02d", range(20), b"in the log")
    (log,) = path.glob("*.log")
    flip(log, log.read_bytes().index(b"l%02d" % lost))


@pytest.mark.parametrize(
    ("lost", "kept", "stale", "aside"),
    [
        (0, 20, 19, "writes after 21 are set aside: others before them are lost"),
        (10, 30, 9, "writes after 31 are set aside: others before them are lost"),
    ],
)
def test_a_plan_counts_what_is_kept_and_what_is_set_aside(
    tmp_path: Path, lost: int, kept: int, stale: int, aside: str
) -> None:
    store_with_a_lost_write(tmp_path / "db", lost)
    plan = lsmkv.plan_repair(tmp_path / "db")
    assert (plan.kept, plan.stale, plan.stale_writes) == (kept, stale, stale)
    assert plan.kept_writes == kept - 20
    assert plan.most_out_of_date == 1
    assert not plan.better_kept
    assert aside in str(plan)
    data = plan.to_dict()
    assert (data["kept"], data["stale"], data["recommended"]) == (kept, stale, "default")
    other = lsmkv.plan_repair(tmp_path / "db", keep_stale=True)
    assert (other.kept, other.stale) == (39, 0)


def test_keeping_stale_entries_is_recommended_if_more_would_be_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        put_numbered(db, b"l%02d", range(40), b"in the log")
    (log,) = path.glob("*.log")
    for lost in (13, 26):
        flip(log, log.read_bytes().index(b"l%02d" % lost))
    plan = lsmkv.plan_repair(path)
    assert (plan.kept, plan.stale, plan.most_out_of_date) == (13, 25, 2)
    assert plan.better_kept
    assert plan.to_dict()["recommended"] == "keep_stale"
