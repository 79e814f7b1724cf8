"""The file system that fails on demand, and what a power cut leaves of it."""

from __future__ import annotations

import errno
import random

import pytest
from states import Case, Drawing, StatesError, states
from trees import words_text

from lsmkv.engine.env.base import Directory, Env, WritableFile
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import CALLS, FaultyEnv

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


# Power cuts


def done(calls: str) -> FaultyEnv:
    """An env after these calls, on the files of one directory."""
    env = FaultyEnv()
    directory = env.open_directory("/a", create=True)
    files: dict[str, WritableFile] = {}
    for name, *arguments in map(str.split, calls.split(",")):
        match name, *arguments:
            case ["create", file, *content]:
                files[file] = directory.create(file)
                files[file].append("".join(content).encode())
            case ["append", file, content]:
                files[file].append(content.encode())
            case ["truncate", file, size]:
                files[file].truncate(int(size))
            case ["reopen", file]:
                files[file] = directory.append_to(file)
            case ["sync", *some]:
                (files[some[0]] if some else directory).sync()
            case ["rename" | "remove", *names]:
                getattr(directory, name)(*names)
            case ["fail", call]:
                env.fail_at(1, calls={call})
                with pytest.raises(OSError, match="/a"):
                    (directory if call == "dir_sync" else files["x"]).sync()
            case ["short", file, content]:
                env.fail_at(1, short=True)
                with pytest.raises(OSError, match="/a/x"):
                    files[file].append(content.encode())
            case _:
                raise StatesError(f"not a call: {name}")
    return env


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the calls that are drawn: what may be left, by the contents of 200 directories."""
    env = done(dict(drawing)["calls"])
    match words:
        case ["kill"]:
            found = {tuple(contents(env).items())}
        case ["synced" | "ordered" | "any" as model, *torn]:
            names = {"synced": SYNCED, "ordered": ORDERED, "any": ANY_SUBSET}[model]
            tails = Tails.TORN if torn else Tails.LOST
            cuts = (env.power_cut(names, random.Random(at), tails=tails) for at in range(200))
            found = {tuple(contents(cut).items()) for cut in cuts}
        case _:
            raise NotImplementedError
    texts = [words_text(f"{name}={data.decode()}" for name, data in each) for each in sorted(found)]
    return " | ".join(texts)


@states("power_cuts.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="calls")


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
