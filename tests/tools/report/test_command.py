from __future__ import annotations

import json
from pathlib import Path

from commands import fails, lsm
from inspected import levelled_store
from stores import contents


def test_one_file_of_less_than_three_megabytes(tmp_path: Path) -> None:
    store, file = levelled_store(tmp_path / "db"), tmp_path / "report.html"
    before = contents(str(store))
    done = lsm("report", store, "-o", file, "--key", "word 00009")
    assert (done.status, done.out) == (0, "")
    assert f"{file}: " in done.err
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "word 00009" in page
    assert file.stat().st_size < 3_000_000
    assert contents(str(store)) == before
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".tmp")] == []


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    store, file = levelled_store(tmp_path / "db"), tmp_path / "report.html"
    file.write_text("mine")
    fails(lsm("report", store, "-o", file), "it exists already", "--force")
    assert file.read_text() == "mine"
    done = lsm("report", store, "-o", file, "--force", "--json")
    assert json.loads(done.out)["bytes"] == file.stat().st_size


def test_what_is_refused(tmp_path: Path) -> None:
    fails(lsm("report", tmp_path / "nothing", "-o", tmp_path / "r.html"), "no database here")
    fails(lsm("report", tmp_path, "-o", "-", "--json"), "--json requires")
    assert not (tmp_path / "r.html").exists()
