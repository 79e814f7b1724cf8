"""Which store a URL opens."""

from __future__ import annotations

import builtins
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.shards.remote.objects import open as opening
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.open import CLOUD_SCHEMES, open_objects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """As if these packages were not installed."""
    importing = builtins.__import__

    def refuse(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> object:
        for package in missing:
            if name == f"lsmkv.shards.remote.objects.{package}_objects":
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return importing(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_paths_open_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "a b" / "c%20d"
    spellings = [
        *(str(place), place, f"{place}/", os.path.relpath(place)),
        *(f"file://{tmp_path}/a%20b/c%2520d", f"file://localhost{tmp_path}/a%20b/c%2520d/"),
    ]
    for at, url in enumerate(spellings):
        with pytest.raises(FileNotFoundError) if at == 0 else open_objects(place, create=True):
            open_objects(url)
        with open_objects(url, create=True) as store:
            assert isinstance(store.inner, LocalObjects)
            assert store.url == str(place)
            store.put(f"x{at}", b"1")
    assert sorted(os.listdir(place)) == [f"x{at}" for at in range(len(spellings))]


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_objects("place", create=True) as store:
        monkeypatch.chdir("/")
        store.put("a/b/x", b"1")
        store.delete(["a/b/x"])
        assert list((tmp_path / "place").iterdir()) == []


def test_an_env_holds_the_directory() -> None:
    env = MemoryEnv()
    with open_objects("place", env=env, create=True) as store:
        store.put("x", b"1")
    with open_objects("file:///place", env=env) as store:
        assert store.get("x") == b"1"
    with pytest.raises(ValueError, match="env= can be combined"):
        open_objects("s3://bucket", env=env)


def test_limits_are_passed_on(tmp_path: Path) -> None:
    assert open_objects(tmp_path).limits == DEFAULT_LIMITS == Limits()
    assert open_objects(tmp_path, limits=Limits(attempts=2)).limits.attempts == 2


@pytest.mark.parametrize(
    "url",
    [
        *("file://host/path", "file://", "file:///x?y", "file:///x#y"),
        *("s3://", "s3:///", "s3://bucket/x?y=z", "s3://bucket/x#y"),
    ],
)
def test_urls_that_cannot_be(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|query|bucket"):
        open_objects(url)


def test_a_directory_takes_no_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"takes no options: .*'region'"):
        open_objects(tmp_path, options={"region": "x"})


def test_other_schemes_open_by_fsspec() -> None:
    pytest.importorskip("fsspec")
    from lsmkv.shards.remote.objects.fsspec_objects import FsspecObjects

    with open_objects(f"memory://{uuid.uuid4().hex}/x/") as store:
        assert isinstance(store.inner, FsspecObjects)
        assert not store.url.endswith("/")
        store.put("y", b"1")
        assert store.get("y") == b"1"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3", "gs", "az", "abfs", "http", "https"])
def test_cloud_schemes_open_by_obstore(scheme: str) -> None:
    pytest.importorskip("obstore")
    from lsmkv.shards.remote.objects.obstore_objects import ObstoreObjects

    options = {"account_name": "me"} if scheme in ("az", "abfs") else {}
    with open_objects(f"{scheme}://bucket/x/y/", options=options) as store:
        assert isinstance(store.inner, ObstoreObjects)
        assert store.url == f"{scheme}://bucket/x/y"


@pytest.mark.parametrize("scheme", sorted(CLOUD_SCHEMES))
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    without(monkeypatch, "obstore", "fsspec")
    with pytest.raises(ImportError, match=r"needs obstore: pip install '.\[remote\]'") as error:
        open_objects(f"{scheme}://bucket")
    assert error.value.name == "obstore"
    with pytest.raises(ImportError, match=r"memory:// needs fsspec: pip install") as error:
        open_objects("memory://x")
    assert error.value.name == "fsspec"


def test_fsspec_takes_the_place_of_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec_objects = pytest.importorskip("lsmkv.shards.remote.objects.fsspec_objects")
    asked: list[tuple[str, object]] = []
    monkeypatch.setattr(
        fsspec_objects,
        "open_fsspec",
        lambda url, options: asked.append((url, options)) or LocalObjects(MemoryEnv(), "/"),
    )
    without(monkeypatch, "obstore")
    open_objects("s3://bucket/x", options={"anon": True})
    assert asked == [("s3://bucket/x", {"anon": True})]


def test_a_broken_package_is_not_taken_for_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ImportError("cannot import name 'get' from 'obstore'", name="obstore_core")
    with pytest.raises(ImportError) as caught:
        opening._require_missing(broken, "obstore")
    assert caught.value is broken
