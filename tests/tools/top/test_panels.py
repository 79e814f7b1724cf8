"""lsmkv.tools.top.panels: the figures of each panel, and that they fit."""

from __future__ import annotations

import pytest
from watching import Owner, busy_owner

from lsmkv.engine.db.observe.published import CompactionUnderWay
from lsmkv.engine.leased_name import LeasedName
from lsmkv.tools.top import panels

ALL = (
    panels.operations,
    panels.caches,
    panels.filters,
    panels.writes,
    panels.background,
    panels.levels,
    panels.throughput,
    panels.get_latency,
)


@pytest.fixture(scope="module")
def busy() -> Owner:
    return busy_owner()


def words(panel: panels.Panel, owner: Owner, width: int = 60, height: int = 6) -> list[str]:
    """The lines of a panel, with single spaces."""
    lines = panel(owner.watch, width, height).plain.splitlines()
    return [" ".join(line.split()) for line in lines]


@pytest.mark.parametrize("panel", ALL)
@pytest.mark.parametrize("width", [22, 36, 56, 116])
def test_every_line_fits(panel: panels.Panel, width: int, busy: Owner) -> None:
    if width < 36 and panel in (panels.operations, panels.background, panels.levels):
        width = 36  # the narrowest that the screen gives them
    lines = panel(busy.watch, width, 5).plain.splitlines()
    assert 0 < len(lines) <= 6
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("panel", ALL)
def test_nothing_is_shown_of_nothing(panel: panels.Panel) -> None:
    owner = Owner()
    assert words(panel, owner) in ([], ["nothing yet", *[""] * 5], ["nothing yet"])
    owner.publish()  # an owner that has done nothing
    owner.look()
    for line in words(panel, owner):
        assert "nan" not in line
        assert "inf" not in line


def test_operations(busy: Owner) -> None:
    lines = words(panels.operations, busy, 80)
    assert lines[0] == "a second p50 p90 p99 max"
    get, put, delete, write, seek = lines[1:]
    assert get.startswith("get 7,380 2.3 us 2.3 us 42 us 42 us")
    assert put.startswith("put 2,400 3.1 us")
    assert delete == "delete 0 - - - -"
    assert write.startswith("write 7.0 254 us")
    assert seek.startswith("seek 25 31 us")
    assert words(panels.operations, busy, 36)[0] == "a second p50 p99"


def test_hits(busy: Owner) -> None:
    assert words(panels.caches, busy) == [
        "block cache 60.5%",
        "row cache 12.2%",
        "memtables 4.9%",
        "gets found 35.0%",
        "cached 7.5 MiB of 8.0 MiB",
    ]


def test_filters(busy: Owner) -> None:
    asked, saved, expected, measured, read = words(panels.filters, busy)
    assert expected == "expected rate 0.90%"
    assert measured == "measured rate 1.02%"
    assert asked.endswith("/s")
    assert float(saved.split()[-1][:-2].replace(",", "")) == pytest.approx(
        0.78 * float(asked.split()[-1][:-2].replace(",", "")), rel=0.01
    )
    assert read.endswith("/s")


def test_written(busy: Owner) -> None:
    user, log, flushed, compacted, amplification = words(panels.writes, busy)
    assert user.endswith("KiB/s")
    assert log.startswith("log ")
    assert flushed.startswith("flushed ")
    assert compacted.startswith("compacted ")
    assert amplification == "amplification 4.61"


def test_a_compaction_under_way(busy: Owner) -> None:
    lines = words(panels.background, busy)
    assert lines[0].endswith("45%")
    assert lines[1] == "level 1 to 2 1 + 9 tables, 18.1 MiB"
    assert lines[2:] == ["memtables 1.6 MiB of 4.0 MiB", "stalls none", "slowdowns 0"]


def test_stalls_and_slowdowns() -> None:
    owner = Owner()
    owner.publish()
    owner.look()
    for n in range(1, 11):
        stats = {"stalls": n, "stall_seconds": n * 0.25, "slowdowns": n * 30}
        owner.publish(stats=stats, flushing=True)
        owner.look()
    lines = words(panels.background, owner)
    assert lines == [
        "compaction none",
        "memtables 0 B, one is flushed",
        "stalls 10, 25% of the time",
        "slowdowns 30/s",
    ]
    empty = CompactionUnderWay(0, 0, 0, 0, 0, 0.0)
    owner.publish(stalled_seconds=2.34, compaction=empty)
    owner.look()
    assert "stalls waiting for 2.3 s now" in words(panels.background, owner)


def test_levels(busy: Owner) -> None:
    heading, *lines = words(panels.levels, busy)
    assert heading == "level tables size read/s"
    assert [line.split()[:4] for line in lines] == [
        ["0", "3", "5.7", "MiB"],
        ["1", "5", "9.3", "MiB"],
        ["2", "41", "77.2", "MiB"],
    ]
    drawn = [line.count("█") for line in lines]
    assert drawn == sorted(drawn)
    assert words(panels.levels, busy, 30)[0] == "level tables size"
    owner = Owner()
    owner.publish()
    owner.look()
    assert words(panels.levels, owner)[1:] == ["no tables yet"]


def test_charts(busy: Owner) -> None:
    lines = panels.throughput(busy.watch, 40, 5).plain.splitlines()
    assert lines[0] == "up to 17,962"
    assert [len(line) for line in lines[1:]] == [40] * 4
    assert lines[-1].strip()
    assert panels.get_latency(busy.watch, 40, 5).plain.startswith("up to 42 us")


def test_leases_with_names() -> None:
    owner = Owner()
    owner.publish(
        leased_names=tuple(LeasedName(f"Lock 'key {n}'", (7,), (8,) * (n < 3)) for n in range(9))
    )
    owner.look()
    lines = words(panels.leases, owner, 78, 6)
    assert lines[:2] == ["lease held by waits", "Lock 'key 0' 7 8"]
    assert lines[4:] == ["Lock 'key 3' 7 -", "and 5 more"]
    for width in (22, 36, 56, 116):
        assert max(map(len, panels.leases(owner.watch, width, 6).plain.splitlines())) <= width
