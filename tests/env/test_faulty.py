"""The file system that fails on demand, and what a power cut leaves of it."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from functools import partial

import pytest

from lsmkv.env.base import Directory, Env
from lsmkv.env.durable import NameModel, Tails
from lsmkv.env.faulty import CALLS, FaultyEnv

SYNCED, ORDERED, ANY_SUBSET = NameModel.SYNCED, NameModel.ORDERED, NameModel.ANY_SUBSET


@pytest.fixture
def env() -> FaultyEnv:
    return FaultyEnv()


@pytest.fixture
def directory(env: FaultyEnv) -> Directory:
    return env.open_directory("/a", create=True)


def put(directory: Directory, name: str, data: bytes, *, sync: bool = False) -> None:
    with directory.create(name) as file:
        file.append(data)
        if sync:
            file.sync()


def contents(env: Env, path: str = "/a") -> dict[str, bytes]:
    with env.open_directory(path) as directory:
        return {name: directory.read_file(name, 1 << 20) for name in sorted(directory.names())}


def outcomes(cut: Callable[[random.Random], FaultyEnv]) -> set[tuple[tuple[str, bytes], ...]]:
    return {tuple(contents(cut(random.Random(seed))).items()) for seed in range(200)}


# Power cuts: names


def test_a_name_is_durable_after_its_directorys_sync(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "x", b"1", sync=True)
    assert contents(env.power_cut()) == {}
    directory.sync()
    assert contents(env.power_cut()) == {"x": b"1"}
    directory.rename("x", "y")
    assert contents(env.power_cut()) == {"x": b"1"}
    directory.sync()
    assert contents(env.power_cut()) == {"y": b"1"}
    directory.remove("y")
    assert contents(env.power_cut()) == {"y": b"1"}
    directory.sync()
    assert contents(env.power_cut()) == {}


def test_ordered_keeps_a_prefix(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "old", b"o", sync=True)
    directory.sync()
    put(directory, "tmp", b"n", sync=True)
    directory.rename("tmp", "new")
    directory.remove("old")
    old, tmp, new = ("old", b"o"), ("tmp", b"n"), ("new", b"n")
    assert outcomes(lambda rng: env.power_cut(ORDERED, rng)) == {
        (old,),
        (old, tmp),
        (new, old),
        (new,),
    }


def test_any_subset_keeps_any(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "old", b"o", sync=True)
    directory.sync()
    put(directory, "tmp", b"n", sync=True)
    directory.rename("tmp", "new")
    directory.remove("old")
    old, tmp, new = ("old", b"o"), ("tmp", b"n"), ("new", b"n")
    assert outcomes(lambda rng: env.power_cut(ANY_SUBSET, rng)) == {
        (old,),
        (old, tmp),
        (new, old),
        (new,),
        (tmp,),
        (),
    }
    assert outcomes(lambda rng: env.power_cut(SYNCED, rng)) == {(old,)}


def test_a_rename_over_a_name_is_atomic(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "CURRENT", b"1", sync=True)
    directory.sync()
    put(directory, "tmp", b"2", sync=True)
    directory.rename("tmp", "CURRENT")
    for model in (ORDERED, ANY_SUBSET):
        seen = outcomes(partial(env.power_cut, model))
        assert {dict(names)["CURRENT"] for names in seen} == {b"1", b"2"}


def test_a_file_never_survives_under_two_names(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "a", b"", sync=True)
    directory.sync()
    directory.rename("a", "b")
    directory.rename("b", "c")
    seen = outcomes(lambda rng: env.power_cut(ANY_SUBSET, rng))
    assert {tuple(name for name, _ in names) for names in seen} == {("a",), ("b",), ("c",)}
    directory.remove("c")
    seen = outcomes(lambda rng: env.power_cut(ANY_SUBSET, rng))
    assert {tuple(name for name, _ in names) for names in seen} == {("a",), ("b",), ("c",), ()}


def test_after_a_sync_a_power_cut_has_one_outcome(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "x", b"", sync=True)
    directory.remove("x")
    put(directory, "y", b"", sync=True)
    directory.sync()
    for model in NameModel:
        assert outcomes(partial(env.power_cut, model)) == {(("y", b""),)}


def test_a_removal_concerns_the_file_that_had_the_name(
    env: FaultyEnv, directory: Directory
) -> None:
    put(directory, "x", b"old", sync=True)
    directory.sync()
    put(directory, "tmp", b"new", sync=True)
    directory.rename("tmp", "x")
    directory.remove("x")
    old, tmp = ("x", b"old"), ("tmp", b"new")
    assert outcomes(partial(env.power_cut, ANY_SUBSET)) == {
        (old,),
        (tmp, old),
        (("x", b"new"),),
        (),
    }


def test_a_directory_in_place_of_a_file_is_durable(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "x", b"", sync=True)
    directory.remove("x")
    directory.subdirectory("x", create=True).close()
    for seed in range(20):
        after = env.power_cut(ANY_SUBSET, random.Random(seed)).open_directory("/a")
        after.subdirectory("x").close()


def test_directories_are_durable_once_made(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "x", b"1", sync=True)
    with directory.subdirectory("lost", create=True) as lost:
        put(lost, "y", b"2", sync=True)
        lost.sync()
        put(lost, "z", b"3", sync=True)
    after = env.power_cut()
    assert after.open_directory("/a").names() == ["lost"]  # and no sync of the others
    assert contents(after, "/a/lost") == {"y": b"2"}


def test_removing_a_directory_is_not_durable(env: FaultyEnv, directory: Directory) -> None:
    env.remove_directory("/a")
    env.power_cut().open_directory("/a").close()
    env.open_directory("/").sync()
    with pytest.raises(FileNotFoundError):
        env.power_cut().open_directory("/a")


# Power cuts: content


def test_content_is_durable_after_its_files_sync(env: FaultyEnv, directory: Directory) -> None:
    with directory.create("x") as file:
        directory.sync()
        assert contents(env.power_cut()) == {"x": b""}
        file.append(b"ab")
        assert contents(env.power_cut()) == {"x": b""}
        file.sync()
        file.append(b"cd")
        assert contents(env.power_cut()) == {"x": b"ab"}
        assert outcomes(lambda rng: env.power_cut(SYNCED, rng, tails=Tails.TORN)) == {
            (("x", b"ab"),),
            (("x", b"abc"),),
            (("x", b"abcd"),),
        }
    with directory.append_to("x") as file:  # a sync is the file's, not the handle's
        file.sync()
    assert contents(env.power_cut()) == {"x": b"abcd"}


def test_a_truncation_needs_a_sync_too(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "x", b"abcdef", sync=True)
    directory.sync()
    with directory.append_to("x") as file:
        file.truncate(4)
        file.truncate(2)
        file.append(b"ZY")
        assert contents(env.power_cut()) == {"x": b"abcdef"}
        assert outcomes(lambda rng: env.power_cut(SYNCED, rng, tails=Tails.TORN)) == {
            (("x", b"abcdef"),),
            (("x", b"ab"),),
            (("x", b"abZ"),),
            (("x", b"abZY"),),
        }
        file.sync()
        assert contents(env.power_cut()) == {"x": b"abZY"}
        file.append(b"X")
        file.truncate(4)
        assert outcomes(lambda rng: env.power_cut(SYNCED, rng, tails=Tails.TORN)) == {
            (("x", b"abZY"),)
        }


def test_a_power_cut_is_repeatable_and_disturbs_nothing(
    env: FaultyEnv, directory: Directory
) -> None:
    with directory.lock("LOCK"):
        for number in range(20):
            put(directory, f"{number}", bytes(number))
        before = contents(env)
        calls = env.calls
        one, two = (
            contents(env.power_cut(ANY_SUBSET, random.Random(7), tails=Tails.HOLES))
            for _ in range(2)
        )
        assert one == two
        assert env.calls == calls
        assert contents(env) == before
        directory.sync()
        after = env.power_cut()
        after.open_directory("/a").lock("LOCK").close()  # locks do not survive
        assert after.calls == 2
        assert after.power_cut().open_directory("/a").exists("19")  # what survived is durable
        put(after.open_directory("/a"), "new", b"")
        assert not env.open_directory("/a").exists("new")


def test_a_kill_keeps_what_was_written(env: FaultyEnv, directory: Directory) -> None:
    with directory.lock("LOCK"):
        put(directory, "x", b"1")
        directory.subdirectory("d", create=True).create("y").close()
        after = env.kill()
    with after.open_directory("/a") as again:
        again.lock("LOCK").close()
        assert again.read_file("x", 9) == b"1"
        assert again.subdirectory("d").names() == ["y"]
    assert sorted(after.power_cut().open_directory("/a").names()) == ["LOCK", "d", "x"]


# Faults


def run(env: Env) -> None:
    """Every call of the interface once."""
    with env.open_directory("/s", create=True) as directory, directory.lock("LOCK"):
        with directory.create("x") as file:
            file.append(b"0123456789")
            file.truncate(file.size() - 1)
            file.sync()
        directory.append_to("x").close()
        with directory.create_log("log") as log:
            log.reserve(1)
        directory.continue_log("log", 0).close()
        directory.remove("log")
        directory.sync()
        directory.rename("x", "y")
        assert directory.exists("y")
        with directory.open("y") as reader:
            assert reader.read(0, directory.size("y")) == b"012345678"
        with directory.subdirectory("d", create=True) as other:
            directory.link("y", other)
            other.remove("y")
        directory.remove("y")
        directory.names()
    env.rename_directory("/s/d", "/s/e")
    env.remove_directory("/s/e")


def test_every_call_is_counted_and_can_fail() -> None:
    clean = FaultyEnv(mapped_logs=True)
    run(clean)
    assert clean.calls == len(clean.history)
    assert set(clean.history) == CALLS
    assert clean.failures == 0
    for n, call in enumerate(clean.history, 1):
        env = FaultyEnv(mapped_logs=True)
        env.fail_at(n)
        with pytest.raises(OSError, match="/s") as caught:
            run(env)
        assert caught.value.errno == errno.EIO
        assert env.history == clean.history[:n], call
        assert env.failures == 1
        assert env.calls == n


def test_a_failed_call_does_nothing(env: FaultyEnv, directory: Directory) -> None:
    put(directory, "x", b"1")
    env.fail_at(1, sticky=True)
    file: list[object] = []
    for call in (
        lambda: directory.create("y"),
        lambda: directory.rename("x", "z"),
        lambda: directory.remove("x"),
        lambda: directory.subdirectory("d", create=True),
        lambda: env.open_directory("/b", create=True),
    ):
        with pytest.raises(OSError, match="/"):
            file.append(call())
    env.heal()
    assert contents(env) == {"x": b"1"}
    assert env.open_directory("/").names() == ["a"]
    assert env.failures == 5


def test_fail_at_fails_one_call_or_all_from_it_on(env: FaultyEnv, directory: Directory) -> None:
    def failing(count: int) -> list[bool]:
        results = []
        for _ in range(count):
            try:
                directory.names()
                results.append(False)
            except OSError:
                results.append(True)
        return results

    env.fail_at(2)
    assert failing(4) == [False, True, False, False]
    env.fail_at(2, sticky=True)
    assert failing(4) == [False, True, True, True]
    env.heal()
    assert failing(2) == [False, False]


def test_chosen_calls_alone_are_counted_and_fail(env: FaultyEnv, directory: Directory) -> None:
    env.fail_at(2, calls=["append", "sync"], sticky=True)
    with directory.create("x") as file:
        file.append(b"1")
        directory.sync()
        with pytest.raises(OSError, match="/a/x"):
            file.sync()
        with pytest.raises(OSError, match="/a/x"):
            file.append(b"2")
        assert file.size() == 1


def test_the_error_is_the_one_asked_for(env: FaultyEnv, directory: Directory) -> None:
    env.fail_at(1, OSError(errno.ENOSPC, "disk full"), sticky=True)
    with pytest.raises(OSError, match="disk full") as caught:
        directory.create("x")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/a/x")
    with pytest.raises(OSError, match="disk full") as again:
        directory.names()
    assert again.value is not caught.value
    env.fail_at(1, OSError(errno.EACCES, "no"))
    with pytest.raises(PermissionError):
        directory.names()
    env.fail_at(1, OSError("bare"))
    with pytest.raises(OSError, match="/a") as caught:
        directory.names()
    assert caught.value.errno == errno.EIO


def test_a_short_write_writes_half(env: FaultyEnv, directory: Directory) -> None:
    with directory.create("x") as file:
        env.fail_at(1, short=True)
        with pytest.raises(OSError, match="/a/x"):
            file.append(b"0123456")
        assert file.size() == 3
        file.append(b"-")
        file.sync()
    directory.sync()
    assert contents(env.power_cut()) == {"x": b"012-"}


def test_a_failed_sync_is_final(env: FaultyEnv, directory: Directory) -> None:
    with directory.create("x") as file:
        directory.sync()
        file.append(b"1")
        file.sync()
        file.append(b"2")
        env.fail_at(1, calls={"sync"})
        with pytest.raises(OSError, match="/a/x"):
            file.sync()
        file.sync()  # reports success, as the kernel does
        file.append(b"3")
        file.sync()
    assert contents(env) == {"x": b"123"}
    assert contents(env.power_cut()) == {"x": b"1"}
    assert outcomes(lambda rng: env.power_cut(SYNCED, rng, tails=Tails.TORN)) == {
        (("x", b"1"),),
        (("x", b"12"),),
        (("x", b"123"),),
    }


def test_a_failed_directory_sync_makes_nothing_durable(
    env: FaultyEnv, directory: Directory
) -> None:
    put(directory, "x", b"")
    env.fail_at(1, calls={"dir_sync"})
    with pytest.raises(OSError, match="/a"):
        directory.sync()
    assert contents(env.power_cut()) == {}


def test_wrong_arguments_of_fail_at_are_refused(env: FaultyEnv) -> None:
    with pytest.raises(ValueError, match="fsync"):
        env.fail_at(1, calls={"fsync"})
    with pytest.raises(ValueError, match="from 1"):
        env.fail_at(0)


def test_notes_come_with_what_was_done_before_them() -> None:
    env = FaultyEnv()
    env.note("begun")
    env.fail_at(1, sticky=True)
    env.note({"a": 1})  # no call, so it does not fail
    assert (env.calls, env.failures) == (0, 0)
    cut, killed = env.power_cut(), env.kill()
    env.note("later")
    cut.note("after the cut")
    assert killed.notes == ["begun", {"a": 1}]
    assert cut.notes == ["begun", {"a": 1}, "after the cut"]
    assert cut.kill().notes == cut.notes
    assert env.notes == ["begun", {"a": 1}, "later"]
