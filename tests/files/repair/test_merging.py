"""Tables and logs of a repair are merged by the sequences of their entries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsmkv.engine.format.keys import Entry, InternalKeyComparator, pack
from lsmkv.engine.options import make_options
from lsmkv.files.repair.damaged_log import FoundBatch
from lsmkv.files.repair.merging import merged_pairs, runs_of
from lsmkv.files.repair.plan import KEEP, TablePlan
from lsmkv.files.repair.report import TableSurvey
from lsmkv.files.repair.stale import StaleTest

OPTIONS = make_options()
COMPARATOR = InternalKeyComparator(OPTIONS.comparator)


def table(number: int, first: bytes, last: bytes) -> TablePlan:
    survey = TableSurvey(f"{number:06}.ldb", number, 100, 1)
    survey.smallest, survey.largest = pack(first, 1, 1), pack(last, 1, 1)
    return TablePlan(survey, KEEP, "", StaleTest(COMPARATOR))


def entry(key: bytes, sequence: int, value: bytes | None) -> Entry:
    kind = 0 if value is None else 1
    return key, (sequence << 8 | kind).to_bytes(8, "little") + (value or b"")


def test_the_newest_entry_of_each_key_is_kept_and_deletions_are_dropped() -> None:
    entries = {
        5: [entry(b"a", 1, b"old"), entry(b"b", 2, b"old"), entry(b"c", 9, b"newest")],
        6: [entry(b"a", 7, b"new"), entry(b"b", 8, None), entry(b"c", 3, b"old")],
    }

    def kept(plan: TablePlan) -> Iterator[list[Entry]]:
        yield entries[plan.survey.number]

    batches = [FoundBatch(4, [(b"c", b"older"), (b"d", b"log")], 0, None)]
    tables = [table(5, b"a", b"c"), table(6, b"a", b"c")]
    found = {}
    for keys, tagged in merged_pairs(tables, kept, batches, OPTIONS):
        found.update({key: value[8:] for key, value in zip(keys, tagged, strict=True)})
    assert found == {b"a": b"new", b"c": b"newest", b"d": b"log"}


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(b"a", b"c"), (b"d", b"f"), (b"g", b"i")], [[0, 1, 2]]),
        ([(b"a", b"e"), (b"d", b"f"), (b"g", b"i")], [[0, 2], [1]]),
        ([(b"a", b"z"), (b"a", b"z")], [[0], [1]]),
        ([(b"d", b"f"), (b"a", b"d")], [[1], [0]]),
    ],
)
def test_tables_that_do_not_overlap_are_one_run(
    ranges: list[tuple[bytes, bytes]], expected: list[list[int]]
) -> None:
    tables = [table(number, first, last) for number, (first, last) in enumerate(ranges)]
    runs = runs_of(tables, COMPARATOR.order)
    assert [[one.survey.number for one in run] for run in runs] == expected
