"""lsmkv.tools.demo.measure: what is measured, and that wrong answers are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from demos import LINES, ignore

import lsmkv
from lsmkv.filter.bloom import BloomFilterPolicy, rate_from_fill
from lsmkv.tools.demo.keys import lines_as_keys
from lsmkv.tools.demo.measure import LAYOUTS, RecordingPolicy, compact, load, measure


def test_the_recording_policy_sees_every_filter_asked(tmp_path: Path) -> None:
    data = lines_as_keys(LINES, "file")
    load(str(tmp_path / "db"), "block", data.records, ignore)
    policy = RecordingPolicy()
    with lsmkv.DB(tmp_path / "db", filter_policy=policy) as db:
        assert all(db.get(key) is not None for key in data.expected)
        assert policy.asked == db.stats().filters_asked == len(data.expected)


def test_the_recording_policy_answers_as_the_policy_does() -> None:
    keys = [b"%d" % n for n in range(50)]
    plain = BloomFilterPolicy(10)
    policy = RecordingPolicy()
    summary = policy.create_filter(keys)
    assert summary == plain.create_filter(keys)
    for key in (b"7", b"absent", b"other"):
        assert policy.key_may_match(key, summary) == plain.key_may_match(key, summary)
    assert policy.rates == pytest.approx(3 * rate_from_fill(summary))


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_wrong_answers_are_found(tmp_path: Path, layout: str) -> None:
    load(str(tmp_path / "db"), layout, [(b"a", b"1"), (b"b", b"2")], ignore)
    asked = [(b"a", b"1"), (b"b", b"other"), (b"c", b"3")]
    found = measure(str(tmp_path / "db"), layout, asked, [b"b", b"d"], ignore, compacted=False)
    assert (found.present.gets, found.present.wrong) == (3, 2)
    assert (found.absent.gets, found.absent.wrong) == (2, 1)


def test_compacting_leaves_one_table_to_ask(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    load(path, "off", [(b"a", b"1"), (b"c", b"2")], ignore)
    with lsmkv.DB(path) as db:
        db.put(b"b", b"3")
        db.flush()
    asked = [(b"a", b"1"), (b"b", b"3")]
    before = measure(path, "off", asked, [b"bb"], ignore, compacted=False)
    assert before.overlapping == 2
    compact(path, "off")
    after = measure(path, "off", asked, [b"bb"], ignore, compacted=True)
    assert after.overlapping == 1
    assert (after.present.wrong, after.absent.wrong) == (0, 0)
    assert after.absent.blocks_read == 1
