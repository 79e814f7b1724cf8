"""The store that lab 9 has flushed: it is sound before, and needs each of its files."""

from __future__ import annotations

import pytest

from lsmkv.course.labs.flushing import work
from lsmkv.course.labs.power_cuts import PATH, content_differs
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.testing.recording import RecordingEnv


def copy() -> MemoryEnv:
    return RecordingEnv(work().env)


def test_the_store_is_sound_before_the_flush() -> None:
    job = work()
    assert content_differs(copy(), PATH, job.content) == ""
    with job.env.open_directory(PATH) as directory:
        assert job.table_name not in directory.names()


@pytest.mark.parametrize("kind", ["log", "manifest"])
def test_the_store_needs_what_a_flush_replaces(kind: str) -> None:
    job, env = work(), copy()
    with env.open_directory(PATH) as directory:
        directory.remove(job.old_log if kind == "log" else job.manifest)
    assert content_differs(env, PATH, job.content) != ""


def test_deletions_are_in_the_log_that_is_flushed() -> None:
    job = work()
    assert len(job.content) < 41  # 40 keys and a later one: some were deleted last
    with job.env.open_directory(PATH) as directory:
        tables = [name for name in directory.names() if name.endswith(".ldb")]
    assert tables, "older values are in a table, so a lost deletion brings one back"
