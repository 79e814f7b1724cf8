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
from parsed import docstring_of

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


STORES: dict[str, tuple[Callable[[], FaultyEnv], str]] = {
    "MANIFEST_MISSING": (
        lambda: without(FileType.MANIFEST),
        r"/CURRENT: CURRENT names MANIFEST-\d+, which is missing$",
    ),
    "MANIFEST_TORN": (lambda: with_manifest(b"torn"), r"/MANIFEST-\d+: .* at \d+$"),
    "MANIFEST_CUT": (
        manifest_cut,
        r"/MANIFEST-\d+: .*, and 000006.ldb is missing or not of \d+ bytes \(at offset \d+\)$",
    ),
    "TOO_DEEP": (too_deep, "level 7"),
    "TABLE_MISSING": (lambda: without(FileType.TABLE), "/000006.ldb: the table is missing$"),
    "LOG_MISSING": (log_missing, r"/\d+.log: the log is missing, and so are its writes$"),
    "NO_LOG": (
        lambda: without(FileType.LOG),
        r"\d+.log is missing: writes that no table holds are lost$",
    ),
    "TORN_RECORD": (
        lambda: with_logs(record(1, 1, 2, 3) + TORN + record(4, 4)),
        "000013.log: .* at 43; no acknowledged write is missing$",
    ),
    "GAP": (
        lambda: with_logs(record(1, 1, 2, 3) + TORN + record(5, 5)),
        "/000013.log: .*, and writes are missing there",
    ),
    "SWAPPED_LOGS": (
        lambda: with_logs(record(1, 1, 2, 3), record(2, 2)),
        r"/000018.log: the log begins with write 2, not 4 \(at offset 0\)$",
    ),
    "OUT_OF_RANGE": (out_of_range, f"/db: a batch that ends at write {MAX_SEQUENCE + 1}$"),
    "TORN_END": (lambda: with_logs(record(1, 1, 2, 3) + TORN), "000013.log: ends at 43: "),
    "DAMAGED_END": (
        lambda: with_logs(record(1, 1) + damage(record(2, 2), 20)),
        "/000013.log: .* at 27, and writes are missing there, it is unknown how many",
    ),
    "ZEROS_AT_END": (zeros_at_end, r"000003.log: zeros from \d+ to the end"),
}
"""A store with each kind of damage, and what is reported of it."""


def done(
    env: FaultyEnv, caplog: pytest.LogCaptureFixture, read_only: bool, paranoid: bool
) -> tuple[str, str, int]:
    """What an opening does, in the words of the table; what it reports; and how often it lists the
    directory."""
    before = everything(env)
    start = len(env.history)
    caplog.clear()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            db = DB(PATH, env=env, read_only=read_only, paranoid_checks=paranoid)
        except (lsmkv.CorruptionError, lsmkv.ForeignFormatError) as error:
            assert everything(env) == before
            assert lost(env) == {}
            return REFUSE, str(error), 0
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
            return SET_ASIDE if aside else LEAVE_OUT, str(given[-1].message), listed
    reports = [one for one in caplog.records if one.levelno >= logging.INFO]
    if not reports:
        return ACCEPT, "", listed
    (report,) = reports
    return WARN if report.levelno == logging.WARNING else NOTE, report.getMessage(), listed


@pytest.mark.parametrize("paranoid", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_an_opening_does_what_the_table_says(
    name: str, read_only: bool, paranoid: bool, caplog: pytest.LogCaptureFixture
) -> None:
    make, text = STORES[name]
    env = make()
    row = ROWS[name]
    with caplog.at_level(logging.INFO, logger="lsmkv"):
        found, report, listed = done(env, caplog, read_only, paranoid)
    expected = row.read_only if read_only else row.writing
    assert found == (row.paranoid or expected if paranoid else expected)
    assert found == ACCEPT or re.search(text, report)
    if read_only and found != REFUSE:
        assert listed == (7 if row.read_again else 3)  # a reading does so twice, and looks around
    if not read_only and found != REFUSE:  # what was found is settled
        assert done(env, caplog, False, True)[0] == ACCEPT


def test_the_drawn_table_is_the_one_in_force() -> None:
    """The docstring has a line for each row."""
    drawn: dict[str, damage_policy.Damage] = {}
    _, _, text, _ = re.split(
        r"^===.*===$", docstring_of(damage_policy.__name__), flags=re.MULTILINE
    )
    for line in text.strip().splitlines():
        name, _, writing, read_only, paranoid = re.split(r"  +", line)
        drawn[name] = damage_policy.Damage(
            writing, read_only.rstrip("*"), paranoid.strip("-"), read_only.endswith("*")
        )
    assert drawn == ROWS
    assert list(STORES) == list(ROWS)
