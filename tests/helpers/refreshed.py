"""What a refreshed view of a store shows, compared with a fresh one."""

from __future__ import annotations

from lsmkv import DB
from lsmkv.engine.env.base import Env


def tables_of(db: DB) -> set[int]:
    return {table.number for table in db.tables()}


def shown_by(db: DB) -> tuple[dict[bytes, bytes], int]:
    """The pairs of a store, and the sequence of its last write."""
    with db.snapshot() as snapshot:
        return dict(snapshot), snapshot.sequence


def check_equals_fresh(view: DB, path: str, env: Env | None, keys: list[bytes]) -> None:
    """The view is refreshed between two fresh opens: background work may commit meanwhile."""
    with DB(path, read_only=True, env=env) as before:
        tables = tables_of(before)
    view.refresh()
    shown = tables_of(view)
    with DB(path, read_only=True, env=env) as fresh:
        if tables == tables_of(fresh):
            assert shown == tables
        assert shown_by(view) == shown_by(fresh)
        assert [view.get(key) for key in keys] == [fresh.get(key) for key in keys]
        assert list(view.iterator(reverse=True)) == list(fresh.iterator(reverse=True))
