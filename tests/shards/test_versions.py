"""Finding the version in force."""

from __future__ import annotations

import errno

import pytest
from dict_objects import Call, DictObjects
from shard_sets import put_version

import lsmkv
from lsmkv.shards.version import version_name
from lsmkv.shards.versions import list_versions, newest_version, read_version


@pytest.fixture
def objects() -> DictObjects:
    return DictObjects("s3://bucket/set")


def test_the_newest_version_costs_two_requests(objects: DictObjects) -> None:
    for number in (1, 2, 17):
        expected = put_version(objects, number)
    assert newest_version(objects) == expected
    assert objects.calls == [Call("list", "versions/"), Call("get", "versions/00000017.json")]


def test_versions_are_ordered_by_number(objects: DictObjects) -> None:
    put_version(objects, 100_000_000)  # sorts before the next one by name
    put_version(objects, 99_999_999)
    assert list_versions(objects) == [99_999_999, 100_000_000]
    assert newest_version(objects).number == 100_000_000


def test_other_objects_are_passed_over(objects: DictObjects) -> None:
    expected = put_version(objects, 3)
    for name in (
        "versions/probe-99999999",
        "versions/99999999.json.tmp",
        "versions/99999999",
        "versions/99999999.json/more",
        "versions/zzz",
        "99999999.json",
    ):
        objects.put(name, b"not a version")
    assert list_versions(objects) == [3]
    assert newest_version(objects) == expected


def test_no_version_is_an_error_that_names_the_set(objects: DictObjects) -> None:
    objects.put("versions/probe-1", b"")
    with pytest.raises(lsmkv.NotFoundError) as caught:
        newest_version(objects)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == "s3://bucket/set"
    assert "no version" in str(caught.value)


def test_a_version_that_is_not_there_is_an_error_that_names_it(objects: DictObjects) -> None:
    put_version(objects, 3)
    with pytest.raises(lsmkv.NotFoundError, match="there is no version 4") as caught:
        read_version(objects, 4)
    assert caught.value.filename == "s3://bucket/set/versions/00000004.json"


def test_a_version_pruned_after_the_listing_is_looked_for_again(objects: DictObjects) -> None:
    put_version(objects, 1)

    def prune(call: Call) -> None:
        if call == Call("get", version_name(1)):
            put_version(objects, 2)
            del objects.objects[version_name(1)]
            objects.before = lambda _: None

    objects.before = prune
    assert newest_version(objects).number == 2
    assert [call.kind for call in objects.calls] == ["list", "get", "list", "get"]


def test_versions_that_always_vanish_are_an_error_in_the_end(objects: DictObjects) -> None:
    def vanish(call: Call) -> None:
        objects.objects.clear()
        if call.kind == "list":
            put_version(objects, 7)

    objects.before = vanish
    with pytest.raises(lsmkv.NotFoundError, match="there is no version 7"):
        newest_version(objects)
    assert len(objects.calls) < 20


def test_a_damaged_version_is_not_passed_over(objects: DictObjects) -> None:
    put_version(objects, 1)
    put_version(objects, 2)
    objects.put(version_name(2), objects.get(version_name(2))[:-1])
    with pytest.raises(lsmkv.CorruptionError, match=r"s3://bucket/set/versions/00000002.json"):
        newest_version(objects)


def test_a_version_under_a_wrong_number_is_damage(objects: DictObjects) -> None:
    put_version(objects, 1)
    objects.put(version_name(2), objects.get(version_name(1)))
    with pytest.raises(lsmkv.CorruptionError, match="the document of version 1"):
        newest_version(objects)


def test_errors_of_the_store_are_passed_on(objects: DictObjects) -> None:
    put_version(objects, 1)

    def refuse(call: Call) -> None:
        if call.kind == "get":
            raise PermissionError(errno.EACCES, "expired", "url")

    objects.before = refuse
    with pytest.raises(PermissionError, match="expired"):
        newest_version(objects)
