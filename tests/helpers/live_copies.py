"""Copies of a store that were made while a program wrote to it, at every step of a recorded run.

A copier lists the names, and then copies file after file, in an order of its own.  Meanwhile the
program goes on: a file may grow between its listing and its copy, or be removed before it.  A copy
is therefore the contents of some files at one step of the run, and of the others at a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lsmkv import DB, MemoryEnv
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.testing import RecordingEnv

STORE = "/db"

Files = dict[str, bytes]
Write = tuple[bytes, bytes | None]
State = dict[bytes, bytes]


class Copy(NamedTuple):
    """A copy, and which writes it may hold: all of the first ``before``, none after ``after``."""

    label: str
    files: Files
    before: int
    after: int

    def env(self) -> MemoryEnv:
        """A file system that holds the copy as :data:`STORE`."""
        env = MemoryEnv()
        with env.open_directory(STORE, create=True) as directory:
            for name, content in self.files.items():
                with directory.create(name) as file:
                    file.append(content)
                    file.sync()
            directory.sync()
        return env


def _kind(name: str) -> FileType | None:
    parsed = parse_filename(name)
    return None if parsed is None else parsed[1]


def _order_of(*kinds: FileType) -> Callable[[str], tuple[int, str]]:
    return lambda name: (kinds.index(kind) if (kind := _kind(name)) in kinds else len(kinds), name)


ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "by name": sorted,
    "by name, last first": lambda names: sorted(names, reverse=True),
    "tables first": lambda names: sorted(names, key=_order_of(FileType.TABLE)),
    "logs first": lambda names: sorted(names, key=_order_of(FileType.LOG)),
    "MANIFEST first": lambda names: sorted(names, key=_order_of(FileType.MANIFEST)),
    "tables, MANIFEST, logs": lambda names: sorted(
        names, key=_order_of(FileType.TABLE, FileType.MANIFEST, FileType.CURRENT, FileType.LOG)
    ),
}


class LiveRun:
    """A run of a program on a recorded store, whose states at every step are known."""

    def __init__(self, writes: list[Write], steps: list[Files], written: list[int]) -> None:
        self.writes = writes
        self.steps = steps
        """The files after each change of the disk."""
        self.written = written
        """How many writes had returned at each step."""

    def state(self, writes: int) -> State:
        """The contents of the store after its first writes."""
        state: State = {}
        for key, value in self.writes[:writes]:
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
        return state

    def copies(self, order: str, first: Sequence[int], later: Sequence[int]) -> Iterator[Copy]:
        """Every copy that lists and begins at a step of ``first``, and goes on at a later step of
        ``later`` after each number of its files."""
        for begin in first:
            names = ORDERS[order]([name for name in self.steps[begin] if name != "LOCK"])
            for end in later:
                if end <= begin:
                    continue
                for at in range(len(names)):
                    files = {name: self.steps[begin][name] for name in names[:at]}
                    now = self.steps[end]
                    files |= {name: now[name] for name in names[at:] if name in now}
                    label = f"{order}: {at} of {len(names)} files at step {begin}, then {end}"
                    yield Copy(label, files, self.written[begin], self.written[end])


def record(program: Callable[[DB, Callable[[bytes, bytes | None], None]], None]) -> LiveRun:
    """Run ``program(db, write)`` on a new store; ``write`` puts a value, or deletes for None."""
    env = RecordingEnv()
    writes: list[Write] = []
    begun = 0
    with DB(
        STORE,
        create_if_missing=True,
        env=env,
        compression=None,
        block_size=256,
        write_buffer_size=65536,
    ) as db:

        def write(key: bytes, value: bytes | None) -> None:
            writes.append((key, value))
            if value is None:
                db.delete(key)
            else:
                db.put(key, value)
            env.note(len(writes))

        begun = env.changes
        program(db, write)
        ended = env.changes
    steps: list[Files] = []
    written: list[int] = []
    for at in range(begun, ended + 1):
        state = env.state(f"{at}, killed")
        with state.env.open_directory(STORE) as directory:
            files: Files = {}
            for name in directory.names():
                if _kind(name) in (FileType.INFO_LOG, FileType.STATS) or name == "lost":
                    continue
                with directory.open(name) as file:
                    files[name] = file.read(0, file.size)
        if steps and files == steps[-1]:
            continue
        steps.append(files)
        written.append(len(state.notes))
    return LiveRun(writes, steps, written)


class Outcome(NamedTuple):
    """What a repaired copy holds, compared with the one moment that fits it best."""

    right: int
    old: int
    ghosts: int
    lost: int


def judge(run: LiveRun, copy: Copy, found: State) -> Outcome:
    """Compare the entries of a repaired copy with the one moment that fits it best.

    A store from which the newest writes are lost is one of an earlier moment.  ``lost`` is counted
    by the last moment that the copy has surely seen.  O(writes).
    """
    right, absent = [0] * (copy.after + 1), [0] * (copy.after + 1)
    state: State = {}
    lost = 0
    now_right, now_absent = 0, len(found)
    for moment in range(copy.after + 1):
        if moment > 0:
            key, value = run.writes[moment - 1]
            if key in found:
                now_right += (value == found[key]) - (state.get(key) == found[key])
                now_absent += (value is None) - (key not in state)
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
        right[moment], absent[moment] = now_right, now_absent
        if moment == copy.before:
            lost = len(state) - now_right
    best = max(range(copy.after + 1), key=lambda moment: (right[moment], moment))
    old = len(found) - right[best] - absent[best]
    return Outcome(right[best], old, absent[best], lost)
