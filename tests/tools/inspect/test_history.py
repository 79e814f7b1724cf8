from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from inspected import damage

import lsmkv
from lsmkv.engine.db.tree.manifest import read_manifest
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.filenames import read_current
from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.history import WINDOW
from lsmkv.tools.inspect.plain import NotThereError

EDITS = 1150


@pytest.fixture
def long_store(tmp_path: Path) -> Iterator[Directory]:
    """A store whose MANIFEST has some 1,150 edits over several blocks; its tables do not exist."""
    path = str(tmp_path / "db")
    lsmkv.DB(path, create_if_missing=True).close()
    with LocalEnv().open_directory(path) as directory:
        add_edits(directory, EDITS)
        yield directory


def add_edits(directory: Directory, edits: int, first: int = 100) -> None:
    """Flushes, and after each four of them a compaction into one table."""
    name = read_current(directory)
    numbers: list[int] = []
    with directory.append_to(name) as file:
        writer = LogWriter(file, directory.size(name))
        for number in range(first, first + edits):
            edit = VersionEdit()
            key = b"key %08d" % number * 3
            table = FileMetaData(number, 1000, pack(key, 5, 1), pack(key + b"z", 5, 1))
            if len(numbers) == 4:
                for old in numbers:
                    edit.delete_file(0, old)
                edit.add_file(1, table)
                numbers = []
            else:
                edit.log_number = number
                edit.add_file(0, table)
                numbers.append(number)
            edit.next_file_number = number + 1
            writer.add_record(edit.encode())


def all_known(api: Api) -> int:
    return api.history().wait(None, 60)


def test_the_last_state_is_the_manifests(long_store: Directory) -> None:
    expected = read_manifest(long_store, read_current(long_store))
    with contextlib.closing(Api(long_store.path)) as api:
        known = all_known(api)
        state = api.answer("history/state", {"step": str(known - 1)})
    listed = {
        (level["level"], table["number"]) for level in state["levels"] for table in level["tables"]
    }
    assert known > EDITS
    assert listed == {
        (level, number) for level, files in enumerate(expected.levels) for number in files
    }


def test_windows_and_states_agree_at_every_step(long_store: Directory) -> None:
    with contextlib.closing(Api(long_store.path)) as api:
        known = all_known(api)
        for first in (0, WINDOW, 150, known - 10):
            window = api.answer("history/window", {"from": str(first)})
            tables = {(one["level"], one["number"]) for one in window["before"]}
            assert [edit["step"] for edit in window["edits"]] == list(
                range(first, min(first + WINDOW, known))
            )
            for edit in window["edits"]:
                tables -= {(one["level"], one["number"]) for one in edit["removed"]}
                tables |= {(one["level"], one["number"]) for one in edit["added"]}
                if edit["step"] % 97 == 0:
                    state = api.answer("history/state", {"step": str(edit["step"])})
                    assert tables == {
                        (level["level"], table["number"])
                        for level in state["levels"]
                        for table in level["tables"]
                    }
                    assert state["edit"] == edit


def test_many_tables(tmp_path: Path) -> None:
    """A state is kept only for as many changes; every step is right all the same."""
    path = str(tmp_path / "db")
    lsmkv.DB(path, create_if_missing=True).close()
    with LocalEnv().open_directory(path) as directory:
        name = read_current(directory)
        with directory.append_to(name) as file:
            writer = LogWriter(file, directory.size(name))
            for first in range(0, 30_000, 3000):
                edit = VersionEdit()
                for number in range(100 + first, 3100 + first):
                    key = pack(b"%08d" % number, 1, 1)
                    edit.add_file(1, FileMetaData(number, 10, key, key))
                writer.add_record(edit.encode())
            for number in range(100, 1100):
                edit = VersionEdit()
                edit.delete_file(1, number)
                writer.add_record(edit.encode())
    with contextlib.closing(Api(path)) as api:
        known = all_known(api)
        start = known - 1000
        for gone in (1, 350, 777, 1000):
            window = api.answer("history/window", {"from": str(start + gone - 1)})
            assert len(window["before"]) == 30_000 - gone + 1
            assert window["edits"][0]["removed"] == [{"level": 1, "number": 99 + gone}]


def test_write_amplification_so_far(long_store: Directory) -> None:
    with contextlib.closing(Api(long_store.path)) as api:
        known = all_known(api)
        last = api.answer("history/state", {"step": str(known - 1)})["edit"]
        curve = api.answer("history", {})["curve"]
    assert last["flushed_so_far"] == 4 * EDITS // 5 * 1000
    assert last["compacted_so_far"] == EDITS // 5 * 1000
    assert last["write_amplification"] == 1.25
    assert curve["flushed"][-1] == last["flushed_so_far"]
    assert curve["steps"][-1] == known - 1
    assert len(curve["steps"]) < 900


def test_it_goes_on_when_a_writer_adds_edits(long_store: Directory) -> None:
    with contextlib.closing(Api(long_store.path)) as api:
        before = all_known(api)
        add_edits(long_store, 300, first=5000)
        assert api.answer("history", {})["edits"] >= before
        assert all_known(api) == before + 300
        state = api.answer("history/state", {"step": str(before + 299)})
        assert state["edit"]["added"][0]["number"] == 5299
        assert api.answer("history/state", {"step": "3"})["step"] == 3


def test_a_new_manifest_is_followed(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    lsmkv.DB(path, create_if_missing=True).close()
    with contextlib.closing(Api(path)) as api:
        first = api.answer("history", {})["manifest"]
        for _ in range(2):
            with lsmkv.DB(path) as db:
                db.put(b"k", b"v")
        all_known(api)
        second = api.answer("history", {})
    assert second["manifest"] != first
    assert second["edits"] >= 2


def test_damage_is_reported_and_skipped(long_store: Directory) -> None:
    name = read_current(long_store)
    damage(Path(long_store.path) / name, 3000)
    with contextlib.closing(Api(long_store.path)) as api:
        known = all_known(api)
        summary = api.answer("history", {})
        assert summary["complete"]
        assert summary["damage"]
        assert abs(summary["damage"][0]["offset"] - 3000) < 200
        assert 0 < known < EDITS + 2
        for step in range(0, known, 100):
            api.answer("history/state", {"step": str(step)})


def test_a_step_that_is_not_there(long_store: Directory) -> None:
    with contextlib.closing(Api(long_store.path)) as api:
        known = all_known(api)
        with pytest.raises(NotThereError, match=f"no edit {known:,}: {known:,} are known"):
            api.answer("history/state", {"step": str(known)})


def test_a_flush_that_skips_levels_says_why(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True) as db:
        for _ in range(3):  # each overlaps the ones before
            db.put(b"a", b"")
            db.put(b"z", b"")
            db.flush()
    with contextlib.closing(Api(path)) as api:
        all_known(api)
        edits = api.answer("history/window", {"from": "0"})["edits"]
    flushes = [edit for edit in edits if edit["kind"] == "flush"]
    assert [edit["added"][0]["level"] for edit in flushes] == [2, 1, 0]
    assert "It skips levels 0 and 1, because no table" in flushes[0]["why"]
    assert "PickLevelForMemTableOutput" in flushes[0]["why"]
    assert "It skips level 0, because no table of levels 0 and 1" in flushes[1]["why"]
    assert flushes[2]["why"] == ""
