"""A procedure is run once, and judged in all states that a crash of it can leave."""

from __future__ import annotations

import pytest

from lsmkv import DB, MemoryEnv
from lsmkv.course.failure import CheckFailure
from lsmkv.course.labs.formats import write
from lsmkv.course.labs.power_cuts import (
    CONTENT,
    NAME,
    PATH,
    Operation,
    Rule,
    Run,
    content_differs,
)
from lsmkv.engine.env.base import Directory, Env

MADE = ("create", "a"), ("append", "a"), ("sync", "a"), ("sync", ""), ("remove", "b")


def ended(*operations: tuple[str, str]) -> list[Operation]:
    return [Operation(*operation) for operation in operations]


def test_a_rule_about_content() -> None:
    rule = Rule("a", CONTENT, ("remove", "b"), "")
    assert rule.holds(ended(*MADE))
    assert rule.holds(ended(*MADE[:2]))  # nothing was removed
    assert not rule.holds(ended(*MADE[:2], *MADE[3:]))
    assert not rule.holds(ended(*MADE[:3], ("append", "a"), *MADE[3:]))
    assert not rule.holds(ended(MADE[4], *MADE[:4]))


def test_a_rule_about_a_name() -> None:
    rule = Rule("a", NAME, None, "")
    assert rule.holds(ended(*MADE))
    assert not rule.holds(ended(*MADE[:3]))
    assert not rule.holds(ended(("sync", ""), *MADE[:3]))
    assert rule.holds(ended(("rename", "a"), ("sync", "")))


def rename_a_to_b(directory: Directory) -> None:
    write(directory, "a", b"123")
    directory.rename("a", "b")
    directory.remove("old")


def remove_too_early(directory: Directory) -> None:
    write(directory, "a", b"123")
    directory.remove("old")
    directory.rename("a", "b")


def started() -> MemoryEnv:
    env = MemoryEnv()
    with env.open_directory(PATH, create=True) as directory:
        write(directory, "old", b"1")
    return env


def test_a_run_tells_what_was_done() -> None:
    run = Run(started(), rename_a_to_b)
    assert [one.words for one in run.operations] == [
        "create a",
        "append 3 bytes to a",
        "sync a",
        "sync the directory",
        "rename a to b",
        "remove old",
    ]
    assert run.operations[4][:2] == ("rename", "b")
    assert run.listing().splitlines()[1:3] == ["   1  create a", "   2  append 3 bytes to a"]
    assert "nothing" in Run(started(), lambda directory: None).listing()


def test_states_are_judged_and_the_moment_is_reported() -> None:
    run = Run(started(), remove_too_early)
    assert run.survives(lambda env: "", "It", (), "Sync.") >= 160

    def judge(env: Env) -> str:
        with env.open_directory(PATH) as directory:
            return "" if {"b", "old"} & set(directory.names()) else "it is gone."

    with pytest.raises(CheckFailure) as failed:
        run.survives(judge, "It", (), "Sync the directory.")
    message = str(failed.value)
    assert message.startswith("It does not survive a kill of its process before operation 6: it i")
    assert message.endswith("   6  rename a to b\nSync the directory.")
    rule = Rule("b", NAME, ("remove", "old"), "b is not durable.")
    with pytest.raises(CheckFailure, match=r"a to b\nb is not durable\.$"):
        run.survives(judge, "It", (rule,), "Sync the directory.")
    with pytest.raises(CheckFailure, match=r"^It: b is not durable\.\n"):
        run.survives(lambda env: "", "It", (rule,), "Sync the directory.")


def test_the_content_of_a_store_is_compared() -> None:
    env = MemoryEnv()
    with DB(PATH, create_if_missing=True, env=env) as db:
        db.put(b"k", b"v")
    assert content_differs(env, PATH, {b"k": b"v"}) == ""
    assert "where b'w' was written" in content_differs(env, PATH, {b"k": b"w"})
    assert "where it was deleted" in content_differs(env, PATH, {})
    assert "lsmkv does not open the store" in content_differs(env, "/none", {})
