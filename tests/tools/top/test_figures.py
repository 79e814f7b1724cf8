"""lsmkv.tools.top.figures: what is shown, wherever it is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from watching import Owner, busy_owner, shared_owner

from lsmkv.engine.leased_name import LeasedName
from lsmkv.tools.top import figures


@pytest.fixture(scope="module")
def busy() -> Owner:
    return busy_owner()


def test_no_figures_give_no_text() -> None:
    watch = Owner().look()
    for tell in (
        *(figures.operations, figures.caches, figures.filters, figures.writes),
        *(figures.background, figures.levels, figures.totals, figures.processes, figures.leases),
    ):
        assert tell(watch) == []
    assert figures.explanation(watch).call == "lsmkv.DB('store', publish_stats=True)"


def test_operations(busy: Owner) -> None:
    shown = {one.name: one for one in figures.operations(busy.watch)}
    assert list(shown) == ["get", "put", "delete", "write", "seek"]
    get, delete = shown["get"], shown["delete"]
    assert (get.seen, get.each_second) == (True, "7,380")
    assert get.percentiles == ("2.3 us", "2.3 us", "42 us", "42 us")
    assert (delete.seen, delete.each_second, delete.percentiles) == (False, "0", ("-",) * 4)
    assert figures.totals(busy.watch)[-1] == pytest.approx(7380 + 2400 + 7 + 25)
    assert len(busy.watch.times) == len(busy.watch.p99) == len(figures.totals(busy.watch))
    assert busy.watch.times[-1] == busy.now.time


def test_processes_of_a_shared_store() -> None:
    owner = shared_owner(4)
    found = figures.processes(owner.watch)
    assert [one.name for one in found] == [f"{owner.now.pid}", "1002", "1001", "1003", "1000"]
    assert found[0].role == "owner"
    assert (found[0].gets, found[0].writes, found[0].percentiles[0]) == ("10", "5.0", "-")
    assert (found[1].gets, found[1].writes) == ("400", "20")
    assert found[1].percentiles == ("41 us",) * 4
    assert {one.without_owner for one in found} == {"82 ms"}
    get = figures.operations(owner.watch)[0]
    assert get.each_second == "1,010"  # of all processes
    assert figures.processes(busy_owner(publications=2).watch) == []


def test_leases_with_names() -> None:
    names = (
        LeasedName("memoize ('f', 1)", (7,), (8, 8, 9)),
        LeasedName("Lock 'a\x1b'", (None, 7), ()),
    )
    owner = Owner()
    owner.publish(leased_names=names)
    assert figures.leases(owner.look()) == [
        figures.LeaseFigures("memoize ('f', 1)", "7", "8 x 2 9"),
        figures.LeaseFigures("Lock 'a\\x1b'", "? 7", "-"),
    ]
    assert figures.leases(busy_owner(publications=2).watch) == []


def test_stalls_are_bad() -> None:
    owner = Owner()
    owner.publish()
    assert figures.background(owner.look())[1] == figures.Figure("stalls", "none")
    owner.publish(stats={"stalls": 2, "stall_seconds": 0.5})
    assert figures.background(owner.look())[1].text == "2, 50% of the time"
    owner.publish(stalled_seconds=2.0)
    shown = figures.background(owner.look())[1]
    assert shown == figures.Figure("stalls", "waiting for 2.0 s now", "bad")


def test_many_false_positives_are_bad() -> None:
    owner = Owner()
    owner.publish()
    owner.look()
    level = owner.now.stats.levels[0]
    for wrong, tone in ((4, ""), (6, "bad")):
        asked = replace(level, filters_asked=100, filter_false_positives=wrong)
        asked = replace(asked, filter_negatives=100 - wrong)
        owner.publish(stats={"levels": (asked, *owner.now.stats.levels[1:])})
        shown = figures.filters(owner.look())[3]
        assert (shown.text, shown.tone) == (f"{wrong}.00%", tone)


def test_where_there_is_less_room(busy: Owner) -> None:
    cached = figures.caches(busy.watch)[-1]
    assert (cached.text, cached.short) == ("7.5 MiB of 8.0 MiB", "7.5 MiB")


def test_a_compaction(busy: Owner) -> None:
    shown = figures.compaction(busy.now)
    assert shown is not None
    assert (shown.levels, shown.tables) == ("1 to 2", "1 + 9 tables, 18.1 MiB")
    assert shown.share == pytest.approx(8.5 / 19)
    assert figures.no_compaction(busy.now) == "none now, 29 before"
    assert figures.compaction(Owner().now) is None
    assert figures.no_compaction(Owner().now) == "none"


def test_levels(busy: Owner) -> None:
    shown = figures.levels(busy.watch)
    assert [one.level for one in shown] == [0, 1, 2]
    assert (shown[2].tables, shown[2].share) == ("41", 1.0)
