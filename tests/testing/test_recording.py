"""A recorded run: every moment of it, and what a crash leaves there."""

from __future__ import annotations

import itertools
import random

import pytest

from lsmkv.engine.env.base import Env
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.testing.durable import NameModel
from lsmkv.testing.faulty import FaultyEnv
from lsmkv.testing.recording import RecordingEnv

Contents = dict[str, bytes]


def run(env: Env, at_each_step: list[object] | None = None) -> None:
    """Every change of the interface."""
    with env.open_directory("/d", create=True) as directory:
        with directory.create("x") as file:
            file.append(b"0123")
            file.sync()
            file.append(b"4567")
            file.truncate(6)
        directory.sync()
        directory.rename("x", "y")
        with directory.subdirectory("sub", create=True) as sub:
            directory.link("y", sub)
        with directory.append_to("y") as file:
            file.append(b"89")
        directory.sync()
        directory.remove("y")
    env.rename_directory("/d/sub", "/d/bus")


def contents(env: MemoryEnv, path: str = "/") -> Contents:
    """All files by their paths."""
    found: Contents = {}
    with env.open_directory(path) as directory:
        for name in directory.names():
            inner = f"{path.rstrip('/')}/{name}"
            try:
                found[inner] = directory.read_file(name, 1 << 20)
            except IsADirectoryError:
                found |= contents(env, inner)
    return found


@pytest.fixture
def env() -> RecordingEnv:
    recording = RecordingEnv()
    run(recording)
    return recording


def test_it_is_a_file_system_as_any_other(env: RecordingEnv) -> None:
    other = MemoryEnv()
    run(other)
    assert contents(env) == contents(other) == {"/d/bus/y": b"01234589"}


def test_a_kill_at_every_moment_leaves_what_was_written(env: RecordingEnv) -> None:
    states = [contents(state.env) for state in env.crash_states(models=[])]
    seen = [found for found, _ in itertools.groupby(states)]
    within = [found for found in seen if len(found.get("/d/x", b"")) % 4]
    assert [found for found in seen if found not in within] == [
        {},
        {"/d/x": b""},
        {"/d/x": b"0123"},
        {"/d/x": b"01234567"},
        {"/d/y": b"012345"},
        {"/d/y": b"012345", "/d/sub/y": b"012345"},
        next(found for found in seen if len(found.get("/d/y", b"")) == 7),
        {"/d/y": b"01234589", "/d/sub/y": b"01234589"},
        {"/d/sub/y": b"01234589"},
        {"/d/bus/y": b"01234589"},
    ]
    assert {"/d/x": b"012345"} in within
    assert len(within) >= 3, "never within a write"


def test_each_moment_is_described(env: RecordingEnv) -> None:
    moments = [state.moment for state in env.crash_states(models=[], kills=True)]
    assert moments[0] == "before the link of /d"
    assert "before the rename of /d/x to y" in moments
    assert "before the truncate of /d/x" in moments
    assert "before the unlink of /d/y" in moments
    assert any(text.startswith("in the append of 4 bytes to /d/x, ") for text in moments)
    assert moments[-1] == "at the end"


def test_the_models_are_those_of_the_faulty_env() -> None:
    """What one env can leave at the end of a run, the other one can, too."""

    def ending(env: Env) -> None:
        with env.open_directory("/d", create=True) as directory:
            with directory.create("a") as file:
                file.append(b"12")
                file.sync()
            directory.sync()
            directory.rename("a", "b")
            with directory.create("c") as file:
                file.append(b"34")

    recording, faulty = RecordingEnv(), FaultyEnv()
    ending(recording)
    ending(faulty)
    for names in NameModel:
        label = f"{recording.changes}, {names.value}, lost, seed "
        one = {str(contents(recording.state(f"{label}{n}").env)) for n in range(200)}
        other = {
            str(contents(faulty.power_cut(names, random.Random(n))._memory)) for n in range(200)
        }
        assert one == other


def test_a_label_brings_its_state_back(env: RecordingEnv) -> None:
    states = list(env.crash_states(seed=5))
    assert len({state.label for state in states}) == len(states)
    for state in states:
        again = env.state(state.label)
        assert contents(again.env) == contents(state.env)
        assert (again.moment, again.names, again.tails) == (state.moment, state.names, state.tails)


def test_another_seed_draws_others(env: RecordingEnv) -> None:
    one, two = ([contents(s.env) for s in env.crash_states(seed=seed)] for seed in (1, 2))
    assert one != two
    assert one == [contents(s.env) for s in env.crash_states(seed=1)]


@pytest.mark.parametrize(
    "label",
    [
        "", "x", "3", "3, synced", "3, synced, torn", "3, unknown, torn, seed 0",
        "3, synced, unknown, seed 0", "999, killed", "0+1, killed", "3+99, killed", "-1, killed",
        "3, killed, seed 0",
    ],
)  # fmt: skip
def test_a_malformed_label_is_refused(env: RecordingEnv, label: str) -> None:
    with pytest.raises(ValueError, match=r"label|moment|valid"):
        env.state(label)


def test_some_points_only(env: RecordingEnv) -> None:
    everywhere = {state.label for state in env.crash_states(seed=3)}
    some = [state.label for state in env.crash_states(points=3, seed=3)]
    assert len(some) == 3 * (len(NameModel) + 1)
    assert everywhere >= set(some)
    assert len(list(env.crash_states(points=10_000))) == len(everywhere)
    with pytest.raises(ValueError, match="points must be 1 or more"):
        next(env.crash_states(points=0))


def test_notes_come_with_what_was_done_before_them() -> None:
    env = RecordingEnv()
    env.note("before")
    with env.open_directory("/d", create=True) as directory, directory.create("x") as file:
        for n in range(3):
            file.append(b"%d" % n)
            env.note(n)
    for state in env.crash_states(models=[], kills=True):
        written = contents(state.env).get("/d/x", b"")
        assert state.notes == ["before", *range(len(written))]


def test_a_recording_begins_with_the_files_of_start() -> None:
    first = RecordingEnv()
    run(first)
    second = RecordingEnv(first)
    assert contents(second) == contents(first)
    assert second.changes == 0
    second.open_directory("/d").sync()
    for state in second.crash_states():
        assert contents(state.env) == contents(first)
    other = FaultyEnv()
    run(other)
    assert contents(RecordingEnv(other._memory)) == contents(first)


def test_what_a_killed_process_wrote_is_not_durable_yet() -> None:
    env = RecordingEnv()
    with env.open_directory("/d", create=True) as directory, directory.create("x") as file:
        directory.sync()
        file.append(b"1")
    killed = env.state(f"{env.changes}, killed").env
    assert contents(killed) == {"/d/x": b"1"}
    assert killed.changes == 0
    assert contents(killed.state("0, synced, lost, seed 0").env) == {"/d/x": b""}
    with killed.open_directory("/d") as directory, directory.append_to("x") as file:
        file.sync()
    assert contents(killed.state("1, synced, lost, seed 0").env) == {"/d/x": b"1"}
    cut = env.state(f"{env.changes}, synced, lost, seed 0").env
    assert contents(cut.state("0, synced, lost, seed 0").env) == contents(cut) == {"/d/x": b""}


def test_a_state_on_another_file_system(env: RecordingEnv) -> None:
    for state in env.crash_states(points=5):
        copy = MemoryEnv()
        state.write_to("/", copy)
        assert contents(copy) == contents(state.env)
    last = env.state(f"{env.changes}, killed")
    copy = MemoryEnv()
    last.write_to("/out", copy)
    with pytest.raises(FileExistsError):
        last.write_to("/out", copy)
