"""No number is given out twice, and few are left out."""

from __future__ import annotations

from lsmkv import DB, MemoryEnv
from lsmkv.server.numbering import Numbering
from lsmkv.server.records import Records


def test_numbers_are_given_out_once_also_across_restarts() -> None:
    env = MemoryEnv()
    seen: list[int] = []
    for _ in range(3):
        with DB("/db", create_if_missing=True, env=env) as db:
            records = Records(db)
            numbering = Numbering(records, b"name")
            seen += [numbering.take() for _ in range(70_000)]
            records.commit()
    assert min(seen) == 1
    assert len(set(seen)) == len(seen)


def test_a_command_that_is_undone_costs_no_numbers_beside_its_own() -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        records = Records(db)
        numbering = Numbering(records, b"name")
        assert numbering.take() == 1
        records.keep()
        for _ in range(10):
            records.put(b"other", b"")
            records.undo()
            numbering.reload()
        assert numbering.take() == 2


def test_an_undone_ceiling_is_raised_again() -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        records = Records(db)
        numbering = Numbering(records, b"name")
        numbering.take()
        records.undo()
        numbering.reload()
        numbering.take()
        assert records.mark() > 0
