"""lsmkv.engine.db.tree.info_log: LOG tells what the engine did, and never stops a store."""

from __future__ import annotations

import errno
import logging
import re

import pytest
from stores import contents

from lsmkv import DB, MemoryEnv
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.testing.faulty import FaultyEnv


def test_the_log_of_events_is_rotated(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    first = contents(path)["LOG"]
    assert b"Level-2 table" in first
    DB(path).close()
    assert contents(path)["LOG.old"] == first
    assert contents(path)["LOG"] != first


def test_a_line_has_local_time_thread_and_message() -> None:
    directory = MemoryEnv().open_directory("db", create=True)
    log = InfoLog(directory)
    log.write("first")
    log.write("second \udcff")  # a name that is no UTF-8
    log.close()
    log.write("not in the file")
    line = rb"\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d\.\d{6} [0-9a-f]+ "
    text = directory.read_file("LOG", 1000)
    assert re.fullmatch(line + rb"first\n" + line + rb"second \\udcff\n", text)


def test_events_go_to_logging_with_their_level(caplog: pytest.LogCaptureFixture) -> None:
    directory = MemoryEnv().open_directory("db", create=True)
    caplog.set_level(logging.DEBUG, logger="lsmkv")
    log = InfoLog(directory, to_file=False)
    log.write("quiet")
    log.warn("loud")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.DEBUG, "db: quiet"),
        (logging.WARNING, "db: loud"),
    ]
    assert directory.names() == []


def test_a_log_that_cannot_be_made_is_warned_of_and_done_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    env.fail_at(1, OSError(errno.ENOSPC, "disk full"), calls={"create"})
    log = InfoLog(directory)
    log.begin()
    assert "no LOG is written" in caplog.text
    log.write("event")
    log.close()
    assert directory.names() == []


def test_nothing_is_changed_before_the_first_event(caplog: pytest.LogCaptureFixture) -> None:
    """The directory may be another engine's, which keeps its LOG."""
    directory = FaultyEnv().open_directory("db", create=True)
    with directory.create("LOG") as file:
        file.append(b"what another engine did")
    InfoLog(directory).close()
    assert directory.names() == ["LOG"]
    log = InfoLog(directory)
    log.begin()
    log.begin()
    log.close()
    assert sorted(directory.names()) == ["LOG", "LOG.old"]
    assert directory.read_file("LOG.old", 100) == b"what another engine did"


def test_a_log_that_cannot_be_written_is_given_up() -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    log = InfoLog(directory)
    log.write("before")
    env.fail_at(1, OSError(errno.EIO, "disk failed"), calls={"append"})
    log.write("failed")
    env.heal()
    log.write("after")
    text = directory.read_file("LOG", 1000)
    assert b"before" in text
    assert b"after" not in text


def test_a_log_goes_on_after_a_full_disk() -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    log = InfoLog(directory)
    log.write("before")
    env.fail_at(1, OSError(errno.ENOSPC, "disk full"), short=True, calls={"append"})
    log.write("failed")
    env.heal()
    log.write("after")
    log.write("later")
    lines = directory.read_file("LOG", 1000).splitlines()
    assert [line.rpartition(b" ")[2] for line in lines if b"failed" not in line][-2:] == [
        b"after",
        b"later",
    ]
    assert len(lines) == 4
