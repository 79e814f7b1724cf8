"""What is a problem, what is a remark, and what to do about each."""

from __future__ import annotations

from typing import Any

import pytest

from lsmkv.tools.doctor.engine import Advice, Engine
from lsmkv.tools.doctor.findings import problems, remarks, works
from lsmkv.tools.doctor.place import Place
from lsmkv.tools.doctor.trial import Trials

ENGINE = Engine(
    version="1.2.3",
    compiled=True,
    pure=None,
    python="CPython 3.12.0",
    system="Linux",
    codecs={"snappy": True, "zstd": True},
    crc32c="google-crc32c",
    dependencies={},
    extras={},
)
TRIALS = Trials("", "", "", "", "", True, True)
PLACE = Place(
    path="~/data",
    missing="",
    holds_store=False,
    file_system="ext4",
    tried_in="the directory",
    trials=TRIALS,
    not_tried="",
    free_bytes=1 << 40,
    open_file_limit=4096,
)


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsmkv.tools.doctor.findings.sys.platform", "linux")


def found(changes: dict[str, Any]) -> tuple[list[Advice], list[Advice]]:
    """The problems and remarks once fields of the engine, the place or its trials are others."""
    of_trials = {name: value for name, value in changes.items() if name in Trials._fields}
    of_engine = {name: value for name, value in changes.items() if name in Engine._fields}
    of_place = {name: value for name, value in changes.items() if name in Place._fields}
    engine = ENGINE._replace(**of_engine)
    place = PLACE._replace(trials=TRIALS._replace(**of_trials))._replace(**of_place)
    return problems(engine, place), remarks(engine, place)


def test_nothing_to_say() -> None:
    assert found({}) == ([], [])
    assert found({"free_bytes": None, "open_file_limit": None}) == ([], [])


@pytest.mark.parametrize(
    ("changes", "what", "do"),
    [
        ({"codecs": {"snappy": False, "zstd": True}}, "snappy cannot", "cramjam"),
        ({"missing": "gone", "trials": None}, "~/data cannot be listed: gone", "Name a"),
        ({"not_tried": "read-only", "trials": None}, "in ~/data: read-only", "read_only=True"),
        ({"files": "EIO"}, "written, synced and read: EIO", "another file system"),
        ({"renames": "EIO"}, "renamed over another: EIO", "another file system"),
        ({"directory_sync": "EIO"}, "durable: EIO", "another file system"),
        ({"lock": "no locks"}, "no lock can be taken", "NFS"),
        ({"free_bytes": 1 << 20}, "1.0 MiB are free", "64.0 MiB"),
        ({"open_file_limit": 63}, "63 files", "ulimit -n"),
    ],
)
def test_problems(changes: dict[str, Any], what: str, do: str) -> None:
    wrong, lesser = found(changes)
    assert len(wrong) == 1
    assert what in wrong[0].what
    assert do in wrong[0].do
    assert lesser == []


@pytest.mark.parametrize(
    ("changes", "what", "do"),
    [
        ({"compiled": False, "pure": Advice("so", "do that")}, "not compiled: so", "do that"),
        ({"mapped_log": False}, "not mapped", "ext4"),
        ({"links": "EPERM"}, "no hard links: EPERM", "copies"),
        ({"is_ofd": False}, "POSIX", "one place"),
        ({"open_file_limit": 256}, "256 files", "max_open_files=128"),
        ({"holds_store": True, "trials": None}, "another file system", "empty directory"),
        ({"holds_store": True, "trials": None, "not_tried": "no"}, ": no", "empty directory"),
    ],
)
def test_remarks(changes: dict[str, Any], what: str, do: str) -> None:
    wrong, lesser = found(changes)
    assert wrong == []
    assert len(lesser) == 1
    assert what in lesser[0].what
    assert do in lesser[0].do


def test_pure_python_is_advised_to_use_filters_that_suit_it() -> None:
    (advice,) = found({"compiled": False, "pure": Advice("so", "Do that.")})[1]
    assert advice.do.startswith("Do that. Without that, filter_policy=lsmkv.Bloom64Policy()")


def test_slow_checksums_are_remarked_where_nothing_is_compiled() -> None:
    pure = {"compiled": False, "pure": Advice("so", "do that"), "crc32c": "lsmkv"}
    assert ["checksums" in one.what for one in found(pure)[1]] == [False, True]
    assert found({"crc32c": "lsmkv"}) == ([], [])


def test_other_systems_have_neither_ofd_locks_nor_mapped_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lsmkv.tools.doctor.findings.sys.platform", "darwin")
    assert found({"is_ofd": False, "mapped_log": False}) == ([], [])


def test_a_write_protected_directory_is_one_problem() -> None:
    wrong, _ = found({"not_tried": "read-only", "trials": None, "free_bytes": 0})
    assert len(wrong) == 1


def test_what_works_by_name() -> None:
    assert all(works(TRIALS).values())
    for name, key in (("links", "hard_links"), ("lock", "lock"), ("renames", "renames")):
        answers = works(TRIALS._replace(**{name: "EIO"}))  # type: ignore[arg-type]
        assert [one for one, good in answers.items() if not good] == [key]
