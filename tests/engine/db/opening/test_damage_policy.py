"""lsmkv.engine.db.opening.damage_policy: every row of its table, on stores that are opened."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable

import pytest
from crashed_stores import (
    TORN,
    content,
    damage,
    directory_of,
    everything,
    fresh,
    logs_of,
    lost,
    made,
    names_of,
    record,
    record_ends,
    remove,
    replace,
    with_tables,
)
from numbered import PATH

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.opening import damage_policy
from lsmkv.engine.db.opening.damage_policy import ACCEPT, LEAVE_OUT, NOTE, REFUSE, SET_ASIDE, WARN
from lsmkv.engine.db.tree.manifest import read_manifest
from lsmkv.engine.format.filenames import FileType
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import frame
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.testing.faulty import FaultyEnv

pytestmark = pytest.mark.usefixtures("quiet")

ROWS = {
    name: row for name, row in vars(damage_policy).items() if isinstance(row, damage_policy.Damage)
}


def the(kind: FileType, env: FaultyEnv) -> str:
    """The first file of a kind."""
    return names_of(env, kind)[0]


def without(kind: FileType) -> FaultyEnv:
    """A store with tables, and without the first file of a kind."""
    env, _ = with_tables()
    remove(env, the(kind, env))
    return env


def with_manifest(more: bytes) -> FaultyEnv:
    """A store whose MANIFEST has these bytes at its end."""
    env, _ = with_tables()
    name = the(FileType.MANIFEST, env)
    replace(env, name, content(env, name) + more)
    return env


def with_logs(*logs: bytes) -> FaultyEnv:
    """A new store, with these logs after its own."""
    env = fresh()
    logs_of(env, list(logs))
    return env


def manifest_cut() -> FaultyEnv:
    env = with_manifest(b"torn")
    name = the(FileType.TABLE, env)
    replace(env, name, content(env, name)[:-1])
    return env


def too_deep() -> FaultyEnv:
    """A table is moved to level 7."""
    env, _ = with_tables()
    name = the(FileType.MANIFEST, env)
    with directory_of(env) as directory:
        state = read_manifest(directory, name)
    edit = VersionEdit()
    for level, files in enumerate(state.levels):
        for file in list(files.values())[:1]:
            edit.deleted_files.add((level, file.number))
            edit.new_files = [(7, file)]
    replace(env, name, content(env, name) + frame(edit.encode(), state.end))
    return env


def log_missing() -> FaultyEnv:
    env = without(FileType.LOG)
    replace(env, "000099.log", record(100, 1))
    return env


def out_of_range() -> FaultyEnv:
    env = fresh()
    replace(env, the(FileType.LOG, env), record(MAX_SEQUENCE, 1, 2))
    return env


def zeros_at_end() -> FaultyEnv:
    env, _ = made(40)
    name = the(FileType.LOG, env)
    data = content(env, name)
    end = record_ends(data)[19]
    replace(env, name, data[:end] + bytes(len(data) - end))
    return env


MAKERS: dict[str, Callable[[], FaultyEnv]] = {
    "MANIFEST_MISSING": lambda: without(FileType.MANIFEST),
    "MANIFEST_TORN": lambda: with_manifest(b"torn"),
    "MANIFEST_CUT": manifest_cut,
    "TOO_DEEP": too_deep,
    "TABLE_MISSING": lambda: without(FileType.TABLE),
    "LOG_MISSING": log_missing,
    "NO_LOG": lambda: without(FileType.LOG),
    "TORN_RECORD": lambda: with_logs(record(1, 1, 2, 3) + TORN + record(4, 4)),
    "GAP": lambda: with_logs(record(1, 1, 2, 3) + TORN + record(5, 5)),
    "SWAPPED_LOGS": lambda: with_logs(record(1, 1, 2, 3), record(2, 2)),
    "OUT_OF_RANGE": out_of_range,
    "TORN_END": lambda: with_logs(record(1, 1, 2, 3) + TORN),
    "DAMAGED_END": lambda: with_logs(record(1, 1) + damage(record(2, 2), 20)),
    "ZEROS_AT_END": zeros_at_end,
}


def done(
    env: FaultyEnv, caplog: pytest.LogCaptureFixture, read_only: bool, paranoid: bool
) -> tuple[str, int]:
    """What an opening does, in the words of the table, and how often it lists the directory."""
    before = everything(env)
    start = len(env.history)
    caplog.clear()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            db = DB(PATH, env=env, read_only=read_only, paranoid_checks=paranoid)
        except (lsmkv.CorruptionError, lsmkv.ForeignFormatError):
            assert everything(env) == before
            assert lost(env) == {}
            return REFUSE, 0
    listed = env.history[start:].count("names")
    with db:
        if read_only:
            assert everything(env) == before
        assert bool(db.recovery) == any(one.category is lsmkv.RecoveryWarning for one in given)
        if db.recovery:
            aside = lost(env)
            assert aside.items() <= before.items()
            kept = {log.kept_as for log in db.recovery.dropped}
            assert kept == ({f"lost/{name}" for name in aside} or {None})
            return SET_ASIDE if aside else LEAVE_OUT, listed
    levels = {one.levelno for one in caplog.records}
    action = WARN if logging.WARNING in levels else NOTE if logging.INFO in levels else ACCEPT
    return action, listed


@pytest.mark.parametrize("paranoid", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_an_opening_does_what_the_table_says(
    name: str, read_only: bool, paranoid: bool, caplog: pytest.LogCaptureFixture
) -> None:
    env = MAKERS[name]()
    row = ROWS[name]
    with caplog.at_level(logging.INFO, logger="lsmkv"):
        found, listed = done(env, caplog, read_only, paranoid)
    expected = row.read_only if read_only else row.writing
    assert found == (row.paranoid or expected if paranoid else expected)
    if read_only and found != REFUSE:
        assert listed == (7 if row.read_again else 3)  # a reading does so twice, and looks around
    if not read_only and found != REFUSE:  # what was found is settled
        assert done(env, caplog, False, True)[0] == ACCEPT


def test_the_drawn_table_is_the_one_in_force() -> None:
    """The docstring has a line for each row."""
    drawn: dict[str, damage_policy.Damage] = {}
    _, _, text, _ = re.split(r"^===.*===$", damage_policy.__doc__ or "", flags=re.MULTILINE)
    for line in text.strip().splitlines():
        name, _, writing, read_only, paranoid = re.split(r"  +", line)
        drawn[name] = damage_policy.Damage(
            writing, read_only.rstrip("*"), paranoid.strip("-"), read_only.endswith("*")
        )
    assert drawn == ROWS
    assert list(MAKERS) == list(ROWS)
