"""lsmkv.tools.processes: the processes of a shared store, as rows and as JSON."""

from __future__ import annotations

from watching import figures

from lsmkv.tools.processes import process_rows, processes_as_dicts

PROCESSES = [
    figures(5, "owner", 10, 0, lost=0),
    figures(6, "member", 200, 3),
    figures(0, "gone", 1, 2),
]


def test_an_owner_has_the_writes_that_no_member_has_made() -> None:
    owner, member, gone = process_rows(PROCESSES, 9)
    assert (owner.name, owner.role, owner.gets, owner.writes) == ("5", "owner", 10, 4)
    assert (owner.percentile(99), owner.longest_without_owner) == ("-", "-")
    assert (member.name, member.gets, member.writes) == ("6", 200, 3)
    assert (member.percentile(99), member.longest_without_owner) == ("41 us", "82 ms")
    assert (gone.name, gone.writes) == ("-", 2)
    assert process_rows(PROCESSES, 4)[0].writes == 0  # one was counted, and is not published yet


def test_as_json() -> None:
    plain = processes_as_dicts(PROCESSES)[1]
    assert (plain["pid"], plain["role"], plain["counters"]["gets"]) == (6, "member", 200)
    assert plain["writes"]["count"] == 3
    assert list(plain["without_owner"]) == ["count", "mean", "p50", "p90", "p99", "p99.9", "max"]
