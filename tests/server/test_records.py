"""Reads through the records are those of a dict, whatever was kept, taken back or committed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsmkv import DB, MemoryEnv
from lsmkv.server.records import Records

KEYS = st.sampled_from([b"k%03d" % n for n in range(40)])
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.binary(max_size=2)),
    st.tuples(st.just("delete"), KEYS, st.just(b"")),
    st.tuples(st.sampled_from(["keep", "undo", "commit"]), st.just(b""), st.just(b"")),
    st.tuples(st.sampled_from(["forward", "backward"]), KEYS, KEYS),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_reads_are_those_of_a_dict(steps: list[tuple[str, bytes, bytes]]) -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        records = Records(db)
        kept: dict[bytes, bytes] = {}
        model: dict[bytes, bytes] = {}
        for verb, key, value in steps:
            if verb == "put":
                records.put(key, value)
                model[key] = value
            elif verb == "delete":
                records.delete(key)
                model.pop(key, None)
            elif verb == "undo":
                records.undo()
                model = dict(kept)
            elif verb in ("keep", "commit"):
                records.keep()
                kept = dict(model)
                if verb == "commit":
                    records.commit()
                    assert dict(db) == model
            else:
                reverse = verb == "backward"
                expected = sorted(
                    (item for item in model.items() if key <= item[0] < value), reverse=reverse
                )
                assert list(records.scan(key, value, reverse)) == expected
            assert records.get(b"k001") == model.get(b"k001")
        assert list(records.scan(b"", None)) == sorted(model.items())


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_on_while_keys_are_written(reverse: bool) -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        records = Records(db)
        names = [b"%04d" % n for n in range(1000)]
        for name in names[::2]:
            db.put(name, b"stored")
        for name in names[1::2]:
            records.put(name, b"pending")
        seen = []
        for name, _ in records.scan(b"", None, reverse):
            seen.append(name)
            records.delete(name)
        assert seen == sorted(names, reverse=reverse)
        assert list(records.scan(b"", None)) == []
        records.undo()
        assert [name for name, _ in records.scan(b"", None)] == names[::2]
