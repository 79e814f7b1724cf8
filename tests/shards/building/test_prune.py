"""Pruning: old versions go, what a remaining version names never does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dict_objects import Call, DictObjects, Killed
from shard_sets import check_complete, make_draft, put_version

import lsmkv
from lsmkv.shards.building.prune import GRACE, prune
from lsmkv.shards.building.publish import publish
from lsmkv.shards.version import version_name
from lsmkv.shards.versions import list_versions, newest_version, read_version

DAY = 24 * 3600.0


@pytest.fixture
def objects() -> DictObjects:
    """Four versions, two days apart."""
    objects = DictObjects("s3://bucket/set")
    for number in (1, 2, 3, 4):
        put_version(objects, number)
        objects.now += 2 * DAY
    return objects


def below(objects: DictObjects, prefix: str) -> set[str]:
    return {name for name in objects.objects if name.startswith(prefix)}


def test_the_newest_versions_stay(objects: DictObjects) -> None:
    before = dict(objects.objects)
    pruned = prune(objects, keep=2, now=objects.now)
    assert check_complete(objects) == [3, 4]
    assert (pruned.versions, pruned.kept_versions) == ((1, 2), (3, 4))
    assert len(pruned.objects) == pruned.kept_objects == 12
    gone = before.keys() - objects.objects.keys()
    assert gone == {*pruned.objects, version_name(1), version_name(2)}
    assert pruned.bytes == sum(len(before[name][0]) for name in gone)
    assert below(objects, "shards/build1/") == below(objects, "shards/build2/") == set()


def test_a_second_run_finds_nothing(objects: DictObjects) -> None:
    prune(objects, now=objects.now)
    again = prune(objects, now=objects.now)
    assert again == ((), (3, 4), (), 12, 0)


def test_a_dry_run_says_the_same_and_removes_nothing(objects: DictObjects) -> None:
    before = dict(objects.objects)
    said = prune(objects, keep=1, dry_run=True, now=objects.now)
    assert objects.objects == before
    assert said == prune(objects, keep=1, now=objects.now)
    assert said.versions == (1, 2, 3)


def test_the_price_of_pruning(objects: DictObjects) -> None:
    prune(objects, keep=1, dry_run=True, now=objects.now)
    assert objects.calls == [
        Call("list", "shards/"),
        Call("list", "work/"),
        Call("list", "versions/"),
        Call("get", version_name(4)),
    ]


@pytest.mark.parametrize("keep", [0, -1])
def test_at_least_one_version_is_kept(objects: DictObjects, keep: int) -> None:
    with pytest.raises(ValueError, match="keep must be 1 or more"):
        prune(objects, keep=keep)
    assert objects.calls == []


def test_all_versions_may_be_kept(objects: DictObjects) -> None:
    assert prune(objects, keep=100, now=objects.now).versions == ()
    assert check_complete(objects) == [1, 2, 3, 4]


def test_a_set_without_versions_is_emptied_of_leftovers() -> None:
    objects = DictObjects()
    make_draft(objects, "abandoned")
    pruned = prune(objects, now=objects.now + GRACE)
    assert len(pruned.objects) == 6
    assert objects.objects == {}


# What is young


def test_what_is_younger_than_the_grace_period_stays(objects: DictObjects) -> None:
    objects.put("work/build9/run-1", b"of a build under way")
    make_draft(objects, "build9")
    objects.put("versions/probe-1", b"")
    young = dict(objects.objects)
    prune(objects, keep=4, now=objects.now + GRACE - 1)
    assert objects.objects == young
    pruned = prune(objects, keep=4, now=objects.now + GRACE)
    assert {"work/build9/run-1", "versions/probe-1"} < set(pruned.objects)
    assert below(objects, "work/") == below(objects, "shards/build9/") == set()
    assert check_complete(objects) == [1, 2, 3, 4]


def test_a_number_taken_a_moment_ago_stays_taken() -> None:
    """Otherwise a slow publisher, which listed before, would get a number below the newest."""
    objects = DictObjects()
    put_version(objects, 1)
    draft = make_draft(objects, "slow")
    objects.now += 2 * DAY

    def overtake(call: Call) -> None:
        if call == Call("put_if_absent", version_name(2)):
            objects.before = lambda _: None
            put_version(objects, 2)
            put_version(objects, 3)
            assert prune(objects, keep=1, now=objects.now + 60).versions == (1,)

    objects.before = overtake
    with pytest.raises(lsmkv.ConflictError):
        publish(objects, draft, after=1)
    assert list_versions(objects) == [2, 3]


def test_the_grace_period_is_measured_by_the_clock(objects: DictObjects) -> None:
    """Without ``now`` it is today, and the test's objects were put in 1970."""
    assert prune(objects, keep=1).versions == (1, 2, 3)


def test_the_grace_period_may_be_nothing(objects: DictObjects) -> None:
    put_version(objects, 5)
    assert prune(objects, keep=1, grace=0, now=objects.now).kept_versions == (5,)
    assert check_complete(objects) == [5]


# What is foreign, shared or damaged


def test_foreign_names_stay(objects: DictObjects) -> None:
    foreign = {
        "README",
        "data/000003.ldb",
        "shards.txt",
        "works/x",
        "versions/README",
        "versions/00000001.json.bak",
        "versions/prober",
    }
    for name in foreign:
        objects.objects[name] = (b"mine", 0.0)
    prune(objects, keep=1, now=objects.now)
    assert foreign <= set(objects.objects)


def test_shards_that_a_remaining_version_took_over_stay(objects: DictObjects) -> None:
    old, new = read_version(objects, 1), make_draft(objects, "build5")
    publish(objects, new._replace(shards=(old.shards[0], new.shards[1])))
    prune(objects, keep=1, now=objects.now + 2 * DAY)
    assert check_complete(objects) == [5]
    assert len(below(objects, "shards/build1/")) == 3
    assert len(below(objects, "shards/build5/")) == 3


def test_nothing_is_removed_if_a_remaining_version_is_damaged(objects: DictObjects) -> None:
    objects.put(version_name(3), b"damage")
    before = dict(objects.objects)
    with pytest.raises(lsmkv.CorruptionError):
        prune(objects, keep=2, now=objects.now)
    assert objects.objects == before
    prune(objects, keep=1, now=objects.now + 2 * DAY)  # damaged, but not needed
    assert check_complete(objects) == [4]


def test_a_version_published_during_the_listings_keeps_its_files(objects: DictObjects) -> None:
    draft = make_draft(objects, "slow")
    objects.now += 2 * DAY  # the build took longer than the grace period

    def meanwhile(call: Call) -> None:
        if call == Call("list", "work/"):
            objects.before = lambda _: None
            publish(objects, draft)

    objects.before = meanwhile
    prune(objects, keep=1, now=objects.now)
    assert newest_version(objects).build == "slow"
    check_complete(objects)


# Crashes


def every_death(
    whole: DictObjects, run: Callable[[DictObjects], object], replied: bool
) -> list[DictObjects]:
    """What is left when ``run`` dies at each of its requests in turn."""
    measured = whole.copy()
    run(measured)
    assert len(measured.calls) == 4 + 3 + 18
    left = []
    for number in range(len(measured.calls)):
        objects = whole.copy()
        objects.kill_at(number, replied=replied)
        with pytest.raises(Killed):
            run(objects)
        left.append(objects.copy())
    return left


@pytest.mark.parametrize("replied", [False, True])
def test_every_version_left_by_a_crash_is_complete(objects: DictObjects, replied: bool) -> None:
    def run(objects: DictObjects) -> object:
        return prune(objects, keep=1, now=objects.now)

    for left in every_death(objects, run, replied):
        assert check_complete(left)[-1] == 4
        run(left)
        assert check_complete(left) == [4]
        assert len(left.objects) == 7  # its document and files: nothing is left behind


def test_an_error_while_versions_are_removed_leaves_all_files(objects: DictObjects) -> None:
    def fail(call: Call) -> None:
        if call == Call("delete", version_name(2)):
            raise PermissionError("no")

    files = below(objects, "shards/")
    objects.before = fail
    with pytest.raises(PermissionError):
        prune(objects, keep=1, now=objects.now)
    assert below(objects, "shards/") == files
    assert check_complete(objects)[-1] == 4
