"""A file system that records every change of a run, and draws states that a crash could leave.

A program runs once on a :class:`RecordingEnv`.  :meth:`RecordingEnv.crash_states` then replays the
recording from the beginning.  Before every change, and within every write, it draws states that a
power cut could leave, one for each model (see ``durable.py``), and adds the state that a kill
leaves.
"""

from __future__ import annotations

import bisect
import os
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.memory import MemoryEnv, MemoryFile, MemoryFolder, MemoryNode
from lsmkv.testing.durable import DurableFolder, NameModel, PowerCut, Tails

_LABEL = re.compile(
    r"(?P<at>[0-9]+)(\+(?P<part>[0-9]+))?, "
    r"(killed|(?P<names>[a-z ]+), (?P<tails>[a-z]+), seed (?P<seed>-?[0-9]+))"
)
_ROOT = 0


@dataclass(frozen=True)
class _Change:
    """One change of a node.  The recording numbers the nodes."""

    verb: str
    node: int
    about: str
    """The path of the changed file or directory."""
    data: bytes = b""
    length: int = 0
    """The length of a truncated file, or the offset of a store."""
    name: str = ""
    target: str = ""
    linked: int = 0
    folder: bool = False
    """True if ``linked`` is a directory."""

    def __str__(self) -> str:
        if self.verb in ("append", "store"):
            return f"{self.verb} of {len(self.data)} bytes to {self.about}"
        if self.verb == "move":
            return f"rename of {self.about} to {self.target}"
        return f"{self.verb} of {self.about}"


class _Journal:
    """The list to which all nodes of a recording append their changes."""

    def __init__(self) -> None:
        self.changes: list[_Change] = []
        self.nodes = 0

    def number(self) -> int:
        """The number of a new node."""
        self.nodes += 1
        return self.nodes - 1


class _RecordedFile(MemoryFile):
    def __init__(self, journal: _Journal) -> None:
        super().__init__()
        self._journal = journal
        self.number = journal.number()
        self.path = ""

    def append(self, data: bytes) -> None:
        if data:
            self._record("append", data=bytes(data))
        super().append(data)

    def store(self, offset: int, data: bytes) -> None:
        if data:
            self._record("store", data=bytes(data), length=offset)
        super().store(offset, data)

    def truncate(self, length: int) -> None:
        self._record("truncate", length=length)
        super().truncate(length)

    def sync(self) -> None:
        self._record("sync")

    def _record(self, verb: str, data: bytes = b"", length: int = 0) -> None:
        change = _Change(verb, self.number, self.path, data, length)
        self._journal.changes.append(change)


class _RecordedFolder(MemoryFolder):
    def __init__(self, journal: _Journal) -> None:
        super().__init__()
        self._journal = journal
        self.number = journal.number()
        self.path = "/"

    def new_file(self) -> _RecordedFile:
        return _RecordedFile(self._journal)

    def new_folder(self) -> _RecordedFolder:
        return _RecordedFolder(self._journal)

    def link(self, name: str, node: MemoryNode) -> None:
        assert isinstance(node, _RecordedFile | _RecordedFolder)
        node.path = os.path.join(self.path, name)
        self._journal.changes.append(
            _Change(
                "link",
                self.number,
                node.path,
                name=name,
                linked=node.number,
                folder=isinstance(node, _RecordedFolder),
            )
        )
        super().link(name, node)

    def unlink(self, name: str) -> None:
        self._record("unlink", name)
        super().unlink(name)

    def move(self, old: str, new: str) -> None:
        self._record("move", old, new)
        super().move(old, new)
        node = self.entries[new]
        assert isinstance(node, _RecordedFile | _RecordedFolder)
        node.path = os.path.join(self.path, new)

    def sync(self) -> None:
        self._record("sync")

    def confirm(self, name: str) -> None:
        self._record("confirm", name)

    def _record(self, verb: str, name: str = "", target: str = "") -> None:
        path = os.path.join(self.path, name) if name else self.path
        change = _Change(verb, self.number, path, name=name, target=target)
        self._journal.changes.append(change)


class _Rerun:
    """The recorded run, replayed up to some moment in another directory."""

    def __init__(self, changes: list[_Change], root: MemoryFolder) -> None:
        self._changes = changes
        self._at = 0
        self._part = 0  # bytes of the next change that were written
        self._nodes: dict[int, MemoryNode] = {_ROOT: root}

    def advance(self, at: int, part: int) -> None:
        """Replay until ``at`` changes are done, and ``part`` bytes of the next one, which is a
        write."""
        while self._at < at:
            self._apply(self._changes[self._at], self._part)
            self._at += 1
            self._part = 0
        if part > self._part:
            self._write(self._changes[at], self._part, part)
            self._part = part

    def _write(self, change: _Change, start: int, end: int) -> None:
        file = self._file(change.node)
        if change.verb == "append":
            file.append(change.data[start:end])
        else:
            file.store(change.length + start, change.data[start:end])

    def _apply(self, change: _Change, done: int) -> None:
        if change.verb in ("append", "store"):
            self._write(change, done, len(change.data))
            return
        if change.verb == "truncate":
            self._file(change.node).truncate(change.length)
            return
        node = self._nodes[change.node]
        if change.verb == "sync":
            node.sync()
            return
        assert isinstance(node, MemoryFolder)
        if change.verb == "link":
            if change.linked not in self._nodes:
                made = node.new_folder() if change.folder else node.new_file()
                self._nodes[change.linked] = made
            node.link(change.name, self._nodes[change.linked])
        elif change.verb == "unlink":
            node.unlink(change.name)
        elif change.verb == "move":
            node.move(change.name, change.target)
        else:
            assert change.verb == "confirm"
            node.confirm(change.name)

    def _file(self, number: int) -> MemoryFile:
        node = self._nodes[number]
        assert isinstance(node, MemoryFile)
        return node


class CrashState:
    """A state that a crash could leave.  See :class:`RecordingEnv` for an example, errors and cost.

    >>> env = RecordingEnv()
    >>> with env.open_directory("/d", create=True) as directory, directory.create("f") as file:
    ...     file.append(b"0123456789")
    >>> state = env.state("3+4, killed")
    >>> state.moment
    'in the append of 10 bytes to /d/f, 4 of them written'
    >>> state.env.open_directory("/d").read_file("f", 99)
    b'0123'
    """

    def __init__(
        self,
        env: RecordingEnv,
        label: str,
        moment: str,
        names: NameModel | None,
        tails: Tails | None,
        notes: list[object],
    ) -> None:
        self.env = env
        """The disk after the restart: another recording env, so that a run on it, such as a
        recovery, can be explored as well.  After a power cut everything that is left is durable.
        After a kill, what was written is as durable as before."""
        self.label = label
        """The name of this state within its recording: see :meth:`RecordingEnv.state`."""
        self.moment = moment
        """The change of the disk before which, or the write within which, the crash was."""
        self.names = names
        """The unsynced names that were left; None if only the process was killed, which leaves
        everything that was written."""
        self.tails = tails
        """The unsynced content that was left; None as for ``names``."""
        self.notes = notes
        """The notes of the run up to the crash, oldest first."""

    def write_to(self, path: str | os.PathLike[str], env: Env | None = None) -> None:
        """Copy the state into a directory, by default of the local file system, to look at it.

        Raises ``OSError``: ``FileExistsError`` if a name is taken.

        >>> import os, tempfile
        >>> recording = RecordingEnv()
        >>> recording.open_directory("/d", create=True).create("f").close()
        >>> with tempfile.TemporaryDirectory() as place:
        ...     recording.state("3, killed").write_to(place)
        ...     os.listdir(f"{place}/d")
        ['f']
        """
        with (env or LocalEnv()).open_directory(os.fspath(path), create=True) as target:
            _copy(self.env.root, target)


def _copy(folder: MemoryFolder, target: Directory) -> None:
    for name, node in folder.entries.items():
        if isinstance(node, MemoryFolder):
            with target.subdirectory(name, create=True) as inner:
                _copy(node, inner)
        else:
            with target.create(name) as file:
                file.append(bytes(node.data))


class RecordingEnv(MemoryEnv):
    """A file system in memory that draws states that a crash of its run could leave.

    It begins empty, or with a copy of ``start``, all of it durable.  Run something on it, note what
    was acknowledged (:meth:`note`), and look at the :meth:`crash_states`:

    >>> from lsmkv import DB
    >>> env = RecordingEnv()
    >>> with DB("/db", create_if_missing=True, env=env) as db:
    ...     for n in range(3):
    ...         db.put(b"%d" % n, b"value", sync=True)
    ...         env.note(n)
    >>> lost = 0
    >>> for state in env.crash_states():
    ...     if state.notes:  # before, nothing was promised
    ...         with DB("/db", env=state.env) as db:
    ...             lost += any(db.get(b"%d" % n) is None for n in state.notes)
    >>> lost
    0

    Errors are those of :class:`MemoryEnv`.  Every write is kept, so memory grows with the total of
    all writes.  A state costs O(bytes on the disk); for a killed process, O(bytes ever written).
    """

    def __init__(self, start: MemoryEnv | None = None, *, mapped_logs: bool = False) -> None:
        """``mapped_logs``: see :class:`MemoryEnv`; a power cut leaves any of the stored pages."""
        self._journal = _Journal()
        self._notes: list[object] = []
        self._noted: list[int] = []  # how many changes there were at each note
        root = _RecordedFolder(self._journal)
        super().__init__(root, mapped_logs=mapped_logs)
        if start is not None:
            with start.mutex:
                _adopt(start.root, root, {})
        self._start = len(self._journal.changes)

    @property
    def changes(self) -> int:
        """The number of changes of the disk so far: writes, syncs, names made or removed.

        >>> env = RecordingEnv()
        >>> env.open_directory("/d", create=True).create("f").close()
        >>> env.changes  # a directory, which is durable at once, and a file
        3
        """
        with self.mutex:
            return len(self._journal.changes) - self._start

    def note(self, value: object) -> None:
        """Keep ``value`` for states of later crashes: for example, what was acknowledged.

        Any thread may call it.  Concurrent changes of the disk by other threads may count as before
        or after.  O(1).
        """
        with self.mutex:
            self._notes.append(value)
            self._noted.append(len(self._journal.changes))

    def crash_states(
        self,
        *,
        points: int | None = None,
        models: Collection[NameModel] = tuple(NameModel),
        kills: bool = True,
        seed: int = 0,
    ) -> Iterator[CrashState]:
        """The states that crashes of this run could leave, oldest first, drawn from ``seed``.

        There is a point before each change, after the last one, and at a random place within each
        write. ``points`` limits their number, at random.  Each point gives one state for each of
        the ``models``, with content of random :class:`Tails`, and one for a killed process unless
        ``kills`` is false.

        >>> env = RecordingEnv()
        >>> with env.open_directory("/d", create=True) as directory:
        ...     with directory.create("f") as file:
        ...         file.append(b"1")
        >>> len(list(env.crash_states()))  # 4 changes: 5 points, 4 states each
        20
        >>> for state in env.crash_states(models=[NameModel.SYNCED], kills=False):
        ...     print(state.label, state.moment, sep=": ")
        0, synced, pages, seed 0: before the link of /d
        1, synced, zeroed, seed 0: before the confirm of /d
        2, synced, lost, seed 0: before the link of /d/f
        3, synced, lost, seed 0: before the append of 1 bytes to /d/f
        4, synced, holes, seed 0: at the end

        Raises ``ValueError`` if ``points`` is below 1.
        """
        if points is not None and points < 1:
            raise ValueError(f"points must be 1 or more, not {points}")
        with self.mutex:
            changes = list(self._journal.changes)
        rng = random.Random(seed)
        moments: list[tuple[int, int]] = []
        for at in range(self._start, len(changes)):
            moments.append((at, 0))
            if len(changes[at].data) > 1:
                moments.append((at, rng.randrange(1, len(changes[at].data))))
        moments.append((len(changes), 0))
        if points is not None and points < len(moments):
            moments = sorted(rng.sample(moments, points))
        disk = DurableFolder()
        rerun = _Rerun(changes, disk)
        for at, part in moments:
            rerun.advance(at, part)
            if kills:
                yield self._killed(changes, at, part)
            for names in models:
                tails = random.Random(f"{at}+{part} {names.value} {seed}").choice(list(Tails))
                yield self._cut(disk, at, part, names, tails, seed)

    def state(self, label: str) -> CrashState:
        """The state that a label names.

        A label belongs to this recording: another run has the same labels only if it makes the same
        changes in the same order.  O(changes before it).  Raises ``ValueError`` for an invalid
        label.

        >>> env = RecordingEnv()
        >>> env.open_directory("/d", create=True).create("f").close()
        >>> for label in ("3, killed", "3, synced, torn, seed 0"):
        ...     env.state(label).env.open_directory("/d").names()
        ['f']
        []
        """
        match = _LABEL.fullmatch(label)
        if match is None:
            raise ValueError(f"not a label of a crash state: {label!r}")
        at, part = int(match["at"]) + self._start, int(match["part"] or 0)
        with self.mutex:
            changes = list(self._journal.changes)
        if at > len(changes) or (part > 0 and (at == len(changes) or part > len(changes[at].data))):
            raise ValueError(f"this recording has no such moment: {label!r}")
        if match["names"] is None:
            return self._killed(changes, at, part)
        disk = DurableFolder()
        _Rerun(changes, disk).advance(at, part)
        names, tails = NameModel(match["names"]), Tails(match["tails"])
        return self._cut(disk, at, part, names, tails, int(match["seed"]))

    def _cut(
        self, disk: DurableFolder, at: int, part: int, names: NameModel, tails: Tails, seed: int
    ) -> CrashState:
        label = f"{self._point(at, part)}, {names.value}, {tails.value}, seed {seed}"
        left = disk.survivor(PowerCut(names, tails, random.Random(label)))
        env = RecordingEnv(MemoryEnv(left), mapped_logs=self.mapped_logs)
        moment = self._moment(at, part)
        return CrashState(env, label, moment, names, tails, self._notes_at(at))

    def _killed(self, changes: list[_Change], at: int, part: int) -> CrashState:
        """The state after a kill: the machine keeps running, so what was not durable still is
        not."""
        env = RecordingEnv(mapped_logs=self.mapped_logs)
        _Rerun(changes, env.root).advance(at, part)
        env._start = len(env._journal.changes)
        label = f"{self._point(at, part)}, killed"
        return CrashState(env, label, self._moment(at, part), None, None, self._notes_at(at))

    def _point(self, at: int, part: int) -> str:
        return f"{at - self._start}+{part}" if part else f"{at - self._start}"

    def _notes_at(self, at: int) -> list[object]:
        return self._notes[: bisect.bisect_right(self._noted, at)]

    def _moment(self, at: int, part: int) -> str:
        if at == len(self._journal.changes):
            return "at the end"
        change = self._journal.changes[at]
        return f"in the {change}, {part} of them written" if part else f"before the {change}"


def _adopt(source: MemoryFolder, target: MemoryFolder, made: dict[int, MemoryFile]) -> None:
    """Copy a directory's content, and make all of it durable.  A file may have several names."""
    for name, node in source.entries.items():
        if isinstance(node, MemoryFolder):
            folder = target.new_folder()
            target.link(name, folder)
            _adopt(node, folder, made)
            continue
        known = made.get(id(node))
        file = target.new_file() if known is None else known
        target.link(name, file)
        if known is None:
            made[id(node)] = file
            file.append(bytes(node.data))
            file.sync()
    target.sync()
