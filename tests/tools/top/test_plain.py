"""lsmkv.tools.top.plain: everything that is published is available as JSON."""

from __future__ import annotations

import json

from watching import Owner, busy_owner, shared_owner

from lsmkv.engine.leased_name import LeasedName
from lsmkv.tools.top.plain import owner_as_dict


def test_a_live_owner() -> None:
    plain = json.loads(json.dumps(owner_as_dict(busy_owner().watch.owner)))
    assert plain["publishes"]
    published = plain["published"]
    assert published["pid"] == plain["pid"]
    assert published["compaction"]["files"] == 1
    assert published["stats"]["filters_asked"] > published["stats"]["filter_negatives"] > 0
    get = published["latencies"]["get"]
    assert get["count"] == 1230 * sum(1 + (n * 7 % 11) for n in range(30))
    assert get["p50"] <= get["p90"] <= get["p99"] <= get["p99.9"] <= get["max"]
    assert published["latencies"]["delete"] == {
        "count": 0, "mean": 0, "p50": 0, "p90": 0, "p99": 0, "p99.9": 0, "max": 0
    }  # fmt: skip


def test_processes_of_a_shared_store() -> None:
    plain = json.loads(json.dumps(owner_as_dict(shared_owner(1).watch.owner)))["published"]
    assert plain["epoch"] == 4
    owner, member, gone = plain["processes"]
    assert (owner["role"], member["role"], gone["role"]) == ("owner", "member", "gone")
    assert member["pid"] == 1000
    assert member["writes"]["count"] == 60
    assert 40_000 <= member["writes"]["p99"] < 41_300
    assert gone["counters"]["gets"] == 7
    assert gone["without_owner"]["count"] == 2


def test_leases_with_names() -> None:
    owner = Owner()
    owner.publish(leased_names=(LeasedName("transact", (7, None), (8,)),))
    plain = json.loads(json.dumps(owner_as_dict(owner.look().owner)))["published"]
    assert plain["leased_names"] == [{"name": "transact", "holders": [7, None], "waiters": [8]}]


def test_an_owner_that_publishes_nothing_or_is_gone() -> None:
    owner = Owner()
    assert owner_as_dict(owner.look().owner) == {
        "pid": owner.now.pid, "publishes": False, "published": None
    }  # fmt: skip
    owner.publish()
    owner.lock.close()
    assert owner_as_dict(owner.look().owner)["published"] is None
