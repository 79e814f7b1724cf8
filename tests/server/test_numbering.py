"""No number is given out twice, and few are left out."""

from __future__ import annotations

from lsmkv import DB, MemoryEnv
from lsmkv.server.numbering import Numbering
from lsmkv.server.overlay import Overlay


def test_numbers_are_given_out_once_also_across_restarts() -> None:
    env = MemoryEnv()
    seen: list[int] = []
    for _ in range(3):
        with DB("/db", create_if_missing=True, env=env) as db:
            overlay = Overlay(db)
            numbering = Numbering(overlay, b"name")
            seen += [numbering.take() for _ in range(70_000)]
            overlay.commit()
    assert min(seen) == 1
    assert len(set(seen)) == len(seen)


def test_a_command_that_is_undone_costs_no_numbers_beside_its_own() -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        overlay = Overlay(db)
        numbering = Numbering(overlay, b"name")
        assert numbering.take() == 1
        overlay.keep()
        for _ in range(10):
            overlay.put(b"other", b"")
            overlay.undo()
            numbering.reload()
        assert numbering.take() == 2


def test_an_undone_ceiling_is_raised_again() -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        overlay = Overlay(db)
        numbering = Numbering(overlay, b"name")
        numbering.take()
        overlay.undo()
        numbering.reload()
        numbering.take()
        assert overlay.mark() > 0
