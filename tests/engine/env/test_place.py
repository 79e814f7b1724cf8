"""lsmkv.engine.env.place: where a new directory goes, and who may enter it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import lsmkv
from lsmkv.engine.env.place import absolute, make_directory, resolve


@pytest.fixture(autouse=True)
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("mode", "made"),
    [(0o644, 0o755), (0o600, 0o700), (0o640, 0o750), (0o000, 0o700), (0o666, 0o777)],
)
def test_readers_of_the_files_may_enter_the_directory(tmp_path: Path, mode: int, made: int) -> None:
    assert make_directory(str(tmp_path / "new"), mode)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == made


def test_a_directory_that_cannot_be_made_returns_false(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"mine")
    assert not make_directory(str(tmp_path / "taken"), 0o644)
    assert not make_directory(str(tmp_path / "no" / "new"), 0o644)
    assert (tmp_path / "taken").read_bytes() == b"mine"


def test_a_dangling_link_leads_to_where_a_directory_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    target = resolve(str(tmp_path / "link"))
    assert target == os.path.realpath(tmp_path / "target")
    assert make_directory(target, 0o644)
    assert (tmp_path / "link").is_dir()


def test_a_working_directory_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    store = str(tmp_path / "store")
    assert absolute(store) == resolve(store) == store
    with lsmkv.DB(store, create_if_missing=True) as db:
        for call in (
            lambda: absolute("it"),
            lambda: resolve("it"),
            lambda: lsmkv.Cache("it"),
            lambda: db.checkpoint("it"),
            lambda: db.ingest(["it"]),
        ):
            with pytest.raises(lsmkv.NotFoundError, match=r"working directory, which .* removed"):
                call()
