"""Publishing: one winner for each number, and readers see no intermediate state."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from dict_objects import Call, DictObjects, Killed
from shard_sets import check_complete, make_draft, put_version

import lsmkv
from lsmkv.shards.building.publish import PROBE_PREFIX, probe, publish
from lsmkv.shards.version import VersionDocument, version_name
from lsmkv.shards.versions import list_versions, newest_version, read_version

THREADS = 8


@pytest.fixture
def objects() -> DictObjects:
    return DictObjects("s3://bucket/set")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)


def is_version_put(call: Call) -> bool:
    return call.kind == "put_if_absent" and not call.name.startswith(PROBE_PREFIX)


def at_version_put(action: Callable[[], None], times: int = 1) -> Callable[[Call], None]:
    """A hook that acts at the first puts of a version."""
    left = times

    def hook(call: Call) -> None:
        nonlocal left
        if is_version_put(call) and left > 0:
            left -= 1
            action()

    return hook


def raising(error: OSError) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def kinds(objects: DictObjects) -> list[str]:
    return [call.kind for call in objects.calls]


# One publisher


def test_the_first_version_is_number_1(objects: DictObjects) -> None:
    draft = make_draft(objects, "b")
    published = publish(objects, draft)
    assert published == newest_version(objects) == read_version(objects, 1)
    assert published._replace(number=0, nonce="", created="") == draft


def test_the_next_version_follows_the_newest(objects: DictObjects) -> None:
    put_version(objects, 3)
    put_version(objects, 17)
    objects.put("versions/99999999.tmp", b"")
    assert publish(objects, make_draft(objects, "b")).number == 18


def test_every_publication_has_its_own_nonce(objects: DictObjects) -> None:
    draft = make_draft(objects, "b")
    first = publish(objects, draft)
    assert first.nonce != publish(objects, first).nonce


def test_the_price_of_a_publication(objects: DictObjects) -> None:
    draft = make_draft(objects, "b", [bytes([at]) if at else b"" for at in range(100)])
    publish(objects, draft)
    assert kinds(objects)[3:] == ["list", "list", "put_if_absent"]
    objects.calls.clear()
    publish(objects, draft)  # the probe has passed
    assert objects.calls == [
        Call("list", "shards/b/"),
        Call("list", "versions/"),
        Call("put_if_absent", version_name(2)),
    ]


def test_shards_of_earlier_builds_are_looked_for_where_they_are(objects: DictObjects) -> None:
    old, new = make_draft(objects, "old"), make_draft(objects, "new")
    mixed = new._replace(shards=(old.shards[0], new.shards[1]))
    assert publish(objects, mixed).shards == mixed.shards
    check_complete(objects)


def test_an_empty_set_is_published(objects: DictObjects) -> None:
    assert publish(objects, make_draft(objects, "b", [])).number == 1


def test_no_file_may_be_missing_or_cut(objects: DictObjects) -> None:
    put_version(objects, 1)
    draft = make_draft(objects, "b")
    for name, file in draft.objects():
        whole = objects.objects.pop(name)
        with pytest.raises(lsmkv.CorruptionError, match="is missing") as caught:
            publish(objects, draft)
        assert caught.value.path == objects.url_of(name)
        objects.objects[name] = (whole[0][:-1], 0.0)
        with pytest.raises(lsmkv.CorruptionError, match=f"has {file.size - 1} bytes"):
            publish(objects, draft)
        objects.objects[name] = whole
    assert list_versions(objects) == [1]


def test_a_draft_that_cannot_be_a_version_is_refused_at_once(objects: DictObjects) -> None:
    draft = make_draft(objects, "b", [b"a"])
    with pytest.raises(ValueError, match="empty key"):
        publish(objects, draft)
    assert objects.calls == []


# Compare and publish


def test_publishing_after_the_version_in_force(objects: DictObjects) -> None:
    draft = make_draft(objects, "b")
    assert publish(objects, draft, after=0).number == 1
    assert publish(objects, draft, after=1).number == 2


@pytest.mark.parametrize("after", [0, 1, 3])
def test_publishing_after_another_version_is_a_conflict(objects: DictObjects, after: int) -> None:
    put_version(objects, 2)
    draft = make_draft(objects, "b")
    with pytest.raises(lsmkv.ConflictError, match=f"the current version is 2, not {after}"):
        publish(objects, draft, after=after)
    assert list_versions(objects) == [2]


def test_a_version_that_came_in_between_is_a_conflict(objects: DictObjects) -> None:
    put_version(objects, 2)
    objects.before = at_version_put(lambda: put_version(objects, 3) and None)
    draft = make_draft(objects, "b")
    with pytest.raises(lsmkv.ConflictError, match="version 3 was published by another publisher"):
        publish(objects, draft, after=2)
    assert list_versions(objects) == [2, 3]
    assert read_version(objects, 3).build == "build3"


# Races


def race(objects: DictObjects, after: int | None) -> list[VersionDocument | lsmkv.ConflictError]:
    """What each of some publishers got, all of which had listed the versions before any put."""
    together = threading.Barrier(THREADS)
    arrived = threading.local()

    def meet(call: Call) -> None:
        if is_version_put(call) and not hasattr(arrived, "done"):
            arrived.done = True
            together.wait(60)

    def run(draft: VersionDocument) -> VersionDocument | lsmkv.ConflictError:
        try:
            return publish(objects, draft, after=after)
        except lsmkv.ConflictError as error:
            return error

    drafts = [make_draft(objects, f"racer{at}") for at in range(THREADS)]
    objects.before = meet
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(run, drafts))
    objects.before = lambda _: None
    return results


@pytest.mark.usefixtures("quick_switches")
def test_every_number_has_one_winner() -> None:
    for _ in range(100):
        objects = DictObjects()
        put_version(objects, 4)
        published = [found for found in race(objects, None) if isinstance(found, VersionDocument)]
        assert sorted(one.number for one in published) == list(range(5, 5 + THREADS))
        for document in published:
            assert read_version(objects, document.number) == document
        assert {one.build for one in published} == {f"racer{at}" for at in range(THREADS)}


@pytest.mark.usefixtures("quick_switches")
def test_one_of_several_that_follow_the_same_version_wins() -> None:
    for _ in range(30):
        objects = DictObjects()
        put_version(objects, 4)
        results = race(objects, after=4)
        (winner,) = [found for found in results if isinstance(found, VersionDocument)]
        assert newest_version(objects) == winner
        assert list_versions(objects) == [4, 5]


# Lost replies


LOST = [
    OSError(errno.ETIMEDOUT, "no reply"),
    FileExistsError(errno.EEXIST, "taken by an attempt whose reply was lost"),
]


@pytest.mark.parametrize("error", LOST)
@pytest.mark.parametrize("after", [None, 2])
def test_a_lost_reply_is_no_conflict(
    objects: DictObjects, error: OSError, after: int | None
) -> None:
    put_version(objects, 2)
    objects.after = at_version_put(raising(error))
    published = publish(objects, make_draft(objects, "b"), after=after)
    assert published == newest_version(objects)
    assert list_versions(objects) == [2, 3]


def test_a_request_that_never_arrived_is_an_error(objects: DictObjects) -> None:
    put_version(objects, 2)
    objects.before = at_version_put(raising(OSError(errno.ETIMEDOUT, "no reply")))
    with pytest.raises(OSError, match="no reply"):
        publish(objects, make_draft(objects, "b"))
    assert list_versions(objects) == [2]


def test_no_reply_and_another_version_is_an_error(objects: DictObjects) -> None:
    def fail() -> None:
        put_version(objects, 1)
        raise OSError(errno.ETIMEDOUT, "no reply")

    objects.before = at_version_put(fail)
    with pytest.raises(OSError, match="no reply"):
        publish(objects, make_draft(objects, "b"))
    assert read_version(objects, 1).build == "build1"


def test_a_refusal_that_another_attempt_would_meet_again_is_an_error(objects: DictObjects) -> None:
    objects.before = at_version_put(raising(PermissionError(errno.EACCES, "expired")))
    with pytest.raises(PermissionError, match="expired"):
        publish(objects, make_draft(objects, "b"))
    assert kinds(objects)[-1] == "list"


def test_a_number_refused_but_free_is_tried_again(objects: DictObjects) -> None:
    busy = FileExistsError(errno.EEXIST, "conflicting operation")
    objects.before = at_version_put(raising(busy), times=3)
    assert publish(objects, make_draft(objects, "b"), after=0).number == 1


def test_a_number_refused_for_ever_is_an_error(objects: DictObjects) -> None:
    busy = FileExistsError(errno.EEXIST, "conflicting operation")
    objects.before = at_version_put(raising(busy), times=1000)
    with pytest.raises(lsmkv.IOError, match="refused 8 times") as caught:
        publish(objects, make_draft(objects, "b"))
    assert caught.value.errno == errno.EAGAIN
    assert caught.value.filename == objects.url_of(version_name(1))


def test_a_damaged_document_in_the_number_is_an_error(objects: DictObjects) -> None:
    objects.before = at_version_put(lambda: objects.put(version_name(1), b"damage"))
    draft = make_draft(objects, "b")
    with pytest.raises(lsmkv.CorruptionError, match="SHA-256"):
        publish(objects, draft)
    objects.before = lambda _: None
    assert publish(objects, draft).number == 2


# Crashes


@pytest.mark.parametrize("replied", [False, True])
def test_a_publisher_killed_anywhere_leaves_a_whole_version_in_force(replied: bool) -> None:
    whole = DictObjects()
    old = put_version(whole, 1)
    draft = make_draft(whole, "b")
    measured = whole.copy()
    publish(measured, draft)
    in_force = []
    for number in range(len(measured.calls)):
        objects = whole.copy()
        objects.kill_at(number, replied=replied)
        with pytest.raises(Killed):
            publish(objects, draft)
        left = objects.copy()
        check_complete(left)
        in_force.append(newest_version(left).number)
        if in_force[-1] == 1:
            assert newest_version(left) == old
        assert publish(left, draft).number == in_force[-1] + 1  # nothing is in the way
    assert in_force == [*[1] * (len(measured.calls) - 1), 2 if replied else 1]


# The probe


def test_a_store_that_ignores_conditions_is_refused(objects: DictObjects) -> None:
    objects.ignores_conditions = True
    put_version(objects, 1)
    draft = make_draft(objects, "b")
    before = dict(objects.objects)
    with pytest.raises(lsmkv.IOError, match="overwrites an object") as caught:
        publish(objects, draft)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOTSUP, "s3://bucket/set")
    assert objects.objects == before
    with pytest.raises(lsmkv.IOError):
        probe(objects)  # that it failed is not forgotten either


def test_a_store_without_conditions_is_refused(objects: DictObjects) -> None:
    def refuse(call: Call) -> None:
        if call.kind == "put_if_absent":
            raise OSError(errno.ENOTSUP, "read only")

    objects.before = refuse
    with pytest.raises(lsmkv.IOError, match="no put that fails if the name is taken") as caught:
        probe(objects)
    assert caught.value.errno == errno.ENOTSUP


def test_the_probe_leaves_nothing_and_is_remembered(objects: DictObjects) -> None:
    probe(objects)
    assert kinds(objects) == ["put_if_absent", "put_if_absent", "delete"]
    assert objects.objects == {}
    probe(objects)
    assert len(objects.calls) == 3
    other = objects.copy()
    probe(other)
    assert len(other.calls) == 3


@pytest.mark.parametrize("ignores_conditions", [False, True])
@pytest.mark.parametrize("effect", ["before", "after"])
def test_a_probe_refused_at_first_still_judges(
    objects: DictObjects, effect: str, ignores_conditions: bool
) -> None:
    """The store was busy, or the reply to the first put was lost."""
    objects.ignores_conditions = ignores_conditions
    left = 1

    def refuse(call: Call) -> None:
        nonlocal left
        if call.kind == "put_if_absent" and left:
            left -= 1
            raise FileExistsError(errno.EEXIST, "conflicting operation")

    setattr(objects, effect, refuse)
    if ignores_conditions:
        with pytest.raises(lsmkv.IOError, match="overwrites"):
            probe(objects)
    else:
        probe(objects)
    assert objects.objects == {}


def test_a_probe_without_a_reply_says_nothing(objects: DictObjects) -> None:
    def lose(call: Call) -> None:
        if call.kind == "put_if_absent":
            raise OSError(errno.ETIMEDOUT, "no reply")

    objects.after = lose
    with pytest.raises(OSError, match="no reply"):
        probe(objects)
    objects.after = lambda _: None
    assert objects.objects == {}
    objects.ignores_conditions = True
    with pytest.raises(lsmkv.IOError, match="overwrites"):
        probe(objects)


def test_who_may_not_delete_may_publish(objects: DictObjects) -> None:
    def forbid(call: Call) -> None:
        if call.kind == "delete":
            raise PermissionError(errno.EACCES, "no deletions", call.name)

    objects.before = forbid
    draft = make_draft(objects, "build")
    assert publish(objects, draft).number == 1
