"""Programs in which simulated processes share a store, are killed, and take each other's place.

They are for :func:`lsmkv.testing.simulate`.  Some processes open one store, with settings of the
seed, and write, read and rearrange, each as ``simulated_store.py`` does.

``program`` kills some of them, each at a switch point that was drawn before; some close the store
in the middle.  ``each_step`` kills one of them at each of its switch points, as the seed counts
them.  ``taking_over`` kills the owner, and then one of those that could take its place, at each
switch point; ``taking_over_by_lines`` has more of these.  ``stopped`` stops some for a while, and
``come_and_go`` has them open and close the store all the time.  ``power_fails`` kills the owner,
and takes from the disk what was not synced, while the others go on.

Some are about one thing each.  ``transactions`` has some that last, while another process deletes
what they have read, and leaves no trace of it; ``synced`` has members that read while the owner
syncs; ``versions`` has members that read while tables come and go, and ``ranges`` some that read
while ranges are deleted.  ``unanswered`` kills the
owner between the log and the answer of a member's write; ``joining_late`` has an owner that closes
the store while others are about to lease their first version.

None of them forks.  A simulated process is some threads of one interpreter, whose memory cannot be
copied; what a fork does to descriptors and locks is the system's.  ``sharing_study.py`` has real
processes that fork while they are killed, and ``tests/shared/test_handle.py`` each promise.

The programs fail if

* no order of the calls of all processes explains what they have read (``histories.py``);
* an acknowledged write is missing in the end, or has got more than one sequence;
* what a crash of all of them has left is not a prefix of the acknowledged order with everything
  synced in it;
* processes that go on after a power cut do not agree;
* nobody knows what became of a write, although an owner could be asked;
* a snapshot or an iterator cannot go on, whose version is leased;
* ``check()`` finds something, or a file is left that nobody needs.
"""

from __future__ import annotations

import errno
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from histories import NEVER, Content, History
from simulated_store import CALLS, GROUP, KEYS, UNCOUNTED, Caller
from study import finds_ranges

import lsmkv
from lsmkv import DB, SharedDB
from lsmkv.engine.format.filenames import SHARED
from lsmkv.shared import joining
from lsmkv.shared.following import Leases, _PageBound
from lsmkv.shared.listener import Listener
from lsmkv.shared.publishing import Publishing
from lsmkv.testing import NameModel, Run
from lsmkv.testing.durable import DurableFile, PowerCut, Tails
from lsmkv.testing.faulty import _FaultyWritableFile
from lsmkv.testing.processes import Process

_PATH = "/db"
_WRITES = "put put burst delete batch batch mixed_batch update transact get multi_get"
_READS = "get get_again multi_get scan held snapshot"
_REST = "flush compact sync ingest checkpoint transact update get"
_SHORT = "put put_synced get multi_get flush update snapshot"
_START = 0.2
"""Simulated seconds for which a process waits for an owner: 30 are a million switch points."""
_SPANS = (150, 600, 2000)
"""Switch points, within which a process is killed."""
_STOPS = (0.001, 0.01, 0.1)
"""Simulated seconds for which a process is stopped: less than the others wait for one that opens
the store."""
STEPS = 1000
"""Seeds of ``each_step`` that belong together: the most switch points of two processes."""
_SYNC_TAKES = 0.001
"""Simulated seconds, in ``synced``."""
_PAUSES = 0.002
"""Simulated seconds for which a process gets no processor: the others do all that they can."""
_UNTIL_ANSWERED = 3
"""Switch points of the owner from the log to the answer, at most."""
_STRIDE = 37
"""Seeds that follow each other are steps that are far from each other."""
_LINES = 8000
"""As ``STEPS``, for ``taking_over_by_lines``."""
_STRIDE_OF_LINES = 997


def program(run: Run) -> None:
    """One life."""
    rng = run.rng
    begun = _begin(run, rng)
    number = rng.choice((2, 3, 3, 4))
    some = [_Life(run, rng, at) for at in range(number)]
    for one in rng.sample(some, rng.choice((0, 1, 1, 2, number - 1))):
        one.process.kill_after(rng.randint(1, rng.choice(_SPANS)))
    _live(run, some, begun)


def each_step(run: Run) -> None:
    """The same calls for all seeds that belong together: only the schedule is drawn.

    The first process owns the store until the others have ended or it is killed.  It only reads, so
    that it leaves no write of which nobody knows.
    """
    rng = random.Random(f"{run.seed // STEPS} each step")
    begun = _begin(run, rng)
    some = [_Life(run, rng, at, kinds) for at, kinds in enumerate((_READS, _WRITES, _WRITES))]
    some[0].stays_for = some[1:]
    point, victim = divmod(run.seed * _STRIDE % STEPS, 2)
    some[victim].process.kill_after(point + 1)
    _live(run, some, begun)


def taking_over(run: Run) -> None:
    """The owner dies in the middle of members' writes, and then one that may be the next owner, at
    one of its points.  The last one goes on."""
    _take_over(run, STEPS, _STRIDE)


def taking_over_by_lines(run: Run) -> None:
    """The same where each line of ``lsmkv/shared`` is a switch point, too."""
    _take_over(run, _LINES, _STRIDE_OF_LINES)


def _take_over(run: Run, steps: int, stride: int) -> None:
    rng = random.Random(f"{run.seed // steps} taking over")
    begun = _begin(run, rng)
    some = [_Life(run, rng, at, kinds) for at, kinds in enumerate((_READS, _WRITES, _WRITES))]
    some[0].stays_for = some[1:]
    point, victim = divmod(run.seed * stride % steps, 2)
    owner, heir = some[0].process, some[1 + victim].process
    kill = owner.kill

    def kill_both() -> None:
        kill()
        heir.kill_after(point + 1)

    owner.kill = kill_both  # type: ignore[method-assign]
    # By chance, since what they write begins only when they have joined.
    owner.kill_after(run.rng.randint(100, 1500))
    _live(run, some, begun)


def stopped(run: Run) -> None:
    """The others wait for a stopped process, or give up; then it goes on, or is killed."""
    rng = run.rng
    begun = _begin(run, rng)
    some = [_Life(run, rng, at, patience=rng.choice((None, None, 0.0005, 0.02))) for at in range(3)]
    victims = rng.sample(some, rng.choice((1, 1, 2)))
    for one in victims:
        one.process.stop_after(rng.randint(1, rng.choice(_SPANS)))
    stops = [(rng.choice(_STOPS), rng.random() < 0.25) for _ in victims]
    for one in some:
        one.process.start(one.live)
    while not all(one.has_ended for one in some):
        halted = next((one.process for one in victims if one.process.stopped), None)
        if halted is None or not stops:
            run.sleep(0.0005)
            continue
        seconds, ends = stops.pop()
        run.sleep(seconds)
        if ends:
            halted.kill()
        halted.go_on()
    for one in victims:  # which may come to that point while they close the store
        one.process.stop_after(1 << 40)
        one.process.go_on()
    _live(run, [], begun, some)


def come_and_go(run: Run) -> None:
    """Each process opens the store, makes a call or two, and closes it, again and again."""
    rng = run.rng
    begun = _begin(run, rng)
    kinds = (_SHORT, _SHORT, rng.choice((_SHORT, "get multi_get snapshot")))
    some = [_Life(run, rng, at, kind, rounds=3) for at, kind in enumerate(kinds)]
    for one in rng.sample(some, rng.choice((0, 0, 1))):
        one.process.kill_after(rng.randint(1, rng.choice(_SPANS)))
    _live(run, some, begun)


def synced(run: Run) -> None:
    """Members read while the owner syncs: the log has then what has not happened yet."""
    rng = run.rng
    begun = _begin(run, rng)
    kinds = ("put_synced put_synced put_first", "get_first multi_get", "get_first put_synced")
    some = [_Life(run, rng, at, kind) for at, kind in enumerate(kinds)]
    some[0].add("get_first get_first")
    some[0].stays_for = some[1:]
    with _instead(_FaultyWritableFile, "sync", _slow_sync(run)):
        _live(run, some, begun)


_SYNC = _FaultyWritableFile.sync


def _slow_sync(run: Run) -> Callable[[_FaultyWritableFile], None]:
    """A sync that takes as long as a few other calls."""

    def sync(file: _FaultyWritableFile) -> None:
        run.sleep(_SYNC_TAKES)
        _SYNC(file)

    return sync


def versions(run: Run) -> None:
    """Tables come and go while members begin to read, some of which pause after their lease."""
    rng = run.rng
    begun = _begin(run, rng)
    # Where there is one member, no other's lease keeps the tables that it reads.
    members = ["held scan get_again late_snapshot late_snapshot"] * rng.choice((1, 1, 2))
    kinds = ("burst flush compact pause", *members)
    some = [_Life(run, rng, at, kind) for at, kind in enumerate(kinds)]
    some[0].add("flush compact burst pause")
    some[0].stays_for = some[1:]
    pauses = random.Random(f"{run.seed} pauses")

    def lease(bound: _PageBound) -> None:
        _LEASE(bound)
        if pauses.random() < 0.5:
            run.sleep(_PAUSES)

    with _instead(_PageBound, "lease", lease):
        _live(run, some, begun)


_LEASE = _PageBound.lease


def unanswered(run: Run) -> None:
    """The owner dies between the log and the answer of a member's write.  One of those that may be
    next dies some time later, or takes a while from its first connection until it has said what it
    has recovered."""
    rng = run.rng
    begun = _begin(run, rng)
    kinds = (_READS, _WRITES, rng.choice((_WRITES, _READS)))
    some = [_Life(run, rng, at, kind) for at, kind in enumerate(kinds)]
    some[0].stays_for = some[1:]
    owner, heir = some[0].process, rng.choice(some[1:]).process
    left = [rng.randint(1, 6)]
    points = rng.randint(1, _UNTIL_ANSWERED)
    heirs_points = rng.choice((0, rng.randint(1, rng.choice(_SPANS))))
    kill = owner.kill

    def kill_both() -> None:
        kill()
        if heirs_points > 0:
            heir.kill_after(heirs_points)

    owner.kill = kill_both  # type: ignore[method-assign]

    def publish(publishing: Publishing, sequence: int) -> None:
        if publishing.head.pid == owner.pid and publishing._noted:
            left[0] -= 1
            if left[0] == 0:
                owner.kill_after(points)
        _PUBLISH(publishing, sequence)

    def start(listener: Listener) -> None:
        _START_LISTENER(listener)
        run.sleep(_PAUSES)

    with _instead(Publishing, "publish", publish), _instead(Listener, "start", start):
        _live(run, some, begun)


_PUBLISH = Publishing.publish
_START_LISTENER = Listener.start


def joining_late(run: Run) -> None:
    """As ``come_and_go``; and a process that joins pauses now and then before its first lease."""
    pauses = random.Random(f"{run.seed} pauses")

    def take(leases: Leases, version: int) -> None:
        if leases._newest < 0 and pauses.random() < 0.3:
            run.sleep(_PAUSES)
        _TAKE(leases, version)

    with _instead(Leases, "take", take):
        come_and_go(run)


_TAKE = Leases.take


@contextmanager
def _instead(holder: type, name: str, function: Callable[..., object]) -> Iterator[None]:
    """Let a class have another method."""
    before = getattr(holder, name)
    setattr(holder, name, function)
    try:
        yield
    finally:
        setattr(holder, name, before)


def transactions(run: Run) -> None:
    """Nothing but its registration keeps what is deleted in the middle of a transaction; nothing
    at all what is deleted between a read and a write that depends on it."""
    rng = run.rng
    begun = _begin(run, rng)
    kinds = (_READS, "slow_transact slow_exchange put_first", "vanish vanish put_first")
    some = [_Life(run, rng, at, kind) for at, kind in enumerate(kinds)]
    some[0].stays_for = some[1:]
    if rng.random() < 0.3:
        some[0].process.kill_after(rng.randint(1, rng.choice(_SPANS)))
    _live(run, some, begun)


def ranges(run: Run) -> None:
    """Tables are dropped while members read, by the owner and for members."""
    rng = run.rng
    begun = _begin(run, rng)
    some = [
        _Life(run, rng, at, f"{kinds} flush delete_range")
        for at, kinds in enumerate((_WRITES, _READS, _WRITES))
    ]
    some[0].stays_for = some[1:]
    some[0].add(_READS)
    if rng.random() < 0.4:
        some[0].process.kill_after(rng.randint(1, rng.choice(_SPANS)))
    _live(run, some, begun)


def _live(run: Run, some: list[_Life], begun: int, running: list[_Life] | None = None) -> None:
    """Let them live, and look at what they have done; ``running`` are those that live already."""
    history: History = run.kept["history"]
    for one in some:
        one.process.start(one.live)
    run.join()
    run.kept["lives"] = some, running  # a killed process finalizes nothing
    history.check()
    _look_at_images(run, history)
    _look_at_what_is_left(run, history, begun)


def _look_at_images(run: Run, history: History) -> None:
    """What the disk would have if the power failed now: all that was synced, and all before it."""
    rng = random.Random(f"{run.seed} images")
    for _ in range(2):
        image = run.env.power_cut(rng.choice(list(NameModel)), rng, tails=rng.choice(list(Tails)))
        with DB(_PATH, env=image, create_if_missing=True, background="inline") as db:
            history.check(frozenset(db), power_cut=True)
            db.check()


def power_fails(run: Run) -> None:
    """The owner's power: the others have seen what is lost, and rebuild what they hold."""
    rng = run.rng
    _begin(run, rng)
    history: History = run.kept["history"]
    owner, other, third = (run.process(name) for name in ("owner", "other", "third"))
    opened: dict[Process, SharedDB] = {}
    for process in (owner, other, third):
        process.start(_open, process, _options(rng), opened)
        run.join()
    kinds = _WRITES + " sync flush compact"
    for number, (process, db) in enumerate(opened.items()):
        caller = _Caller(run, rng, number, kinds, True)
        caller.use(db)
        process.start(caller.run)
    run.join()
    seen: dict[Process, Content] = {}
    held: dict[Process, lsmkv.Snapshot] = {}
    for process in (other, third):
        process.start(_see, process, opened[process], seen, held)
    run.join()
    assert seen[other] == seen[third]
    history.check(seen[other])

    owner.kill()
    _lose_what_is_not_synced(run, rng)
    written = rng.choice((other, third))
    written.start(_put, opened[written], rng.random() < 0.5)
    for process in (other, third):
        process.start(_see_again, process, opened[process], seen, held)
    run.join()
    for process in (other, third):
        process.start(_look_and_close, process, opened[process], seen)
    run.join()
    assert seen[other] == seen[third]
    left = dict(seen[other])
    assert left.pop(b"next") == b"1"
    history.check(frozenset(left.items()), power_cut=True)
    with DB(_PATH, env=run.env) as db:
        assert frozenset(db) == seen[other]
        db.check()
    run.kept["opened"] = opened


def _open(process: Process, options: dict[str, Any], opened: dict[Process, SharedDB]) -> None:
    opened[process] = SharedDB(_PATH, env=process.env, **options)


def _put(db: SharedDB, sync: bool) -> None:
    db.put(b"next", b"1", sync=sync)


def _see(
    process: Process,
    db: SharedDB,
    seen: dict[Process, Content],
    held: dict[Process, lsmkv.Snapshot],
) -> None:
    held[process] = db.snapshot()
    seen[process] = frozenset(held[process])


def _see_again(
    process: Process,
    db: SharedDB,
    seen: dict[Process, Content],
    held: dict[Process, lsmkv.Snapshot],
) -> None:
    """A snapshot of before shows what it has shown, or nothing; a Get shows one of two states."""
    try:
        assert frozenset(held[process]) == seen[process], "a snapshot that changes"
        held[process].close()
    except lsmkv.StaleViewError:
        pass
    db.multi_get(GROUP)


def _look_and_close(process: Process, db: SharedDB, seen: dict[Process, Content]) -> None:
    db.refresh()
    seen[process] = frozenset(db)
    db.check()
    db.close()


def _lose_what_is_not_synced(run: Run, rng: random.Random) -> None:
    """Of the store's files: every name stays, and so does ``SHARED``, which is memory."""
    cut = PowerCut(NameModel.SYNCED, rng.choice(list(Tails)), rng)
    folder = run.env._memory._folder_at(_PATH)
    assert folder is not None
    for name, file in folder.entries.items():
        if isinstance(file, DurableFile) and name != SHARED:
            file.data[:] = file.survivor(cut).data


def _begin(run: Run, rng: random.Random) -> int:
    """What the life before has left, as a process finds it; the last sequence."""
    logging.getLogger("lsmkv").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    joining._START = _START  # type: ignore[misc]
    kept = run.kept
    # The life before may have ended before anybody had opened the store.
    kept["power cut"] = kept.get("power cut", False) or run.crash == "power cut"
    process = run.process("first")
    process.start(_look, process, _options(rng), kept)
    run.join()
    before: History | None = kept.get("history")
    start: Content = kept["start"]
    if before is not None:
        before.check(start, kept["power cut"])
    kept["history"] = History(start)
    kept["power cut"] = False
    sequence: int = kept["sequence"]
    return sequence


def _look(process: Process, options: dict[str, Any], kept: dict[str, Any]) -> None:
    with SharedDB(_PATH, env=process.env, **options) as db:
        kept["start"] = frozenset(db)
        kept["sequence"] = db.sequence


def _options(rng: random.Random) -> dict[str, Any]:
    return {
        "create_if_missing": True,
        "background": rng.choice(("thread", "thread", "inline")),
        "write_buffer_size": rng.choice((1024, 1024, 4096)),
        "max_file_size": rng.choice((1024, 1 << 20)),
        "block_size": 256,
        "lru_cache_size": rng.choice((0, 2000, 1 << 20)),
        "mapped_log": rng.random() < 0.5,
        "reuse_logs": rng.random() < 0.5,
    }


def _look_at_what_is_left(run: Run, history: History, begun: int) -> None:
    """The store as a single process opens it."""
    with DB(_PATH, env=run.env, create_if_missing=True, background="inline") as db:
        history.check(frozenset(db))
        db.check()
        made = db.sequence - begun
        tables = sum(level.files for level in db.stats().levels)
    sizes = [
        (len(one.writes), one.end != NEVER) for one in history.calls if one.what not in UNCOUNTED
    ]
    least = sum(size for size, acknowledged in sizes if acknowledged)
    most = sum(size for size, _ in sizes)
    uncounted = any(one.what in UNCOUNTED for one in history.calls)
    assert uncounted or least <= made <= most, f"{made} sequences for {least} to {most} operations"
    with run.env.open_directory(_PATH) as directory:
        names = [name for name in directory.names() if not name.startswith("LOG")]
    kinds = [name.rpartition(".")[2] if "." in name else name.split("-")[0] for name in names]
    for kind, number in (("MANIFEST", 1), ("log", 1), ("ldb", tables)):
        assert kinds.count(kind) == number, names


class _Life:
    """One process."""

    def __init__(
        self,
        run: Run,
        rng: random.Random,
        number: int,
        kinds: str = "",
        patience: float | None = None,
        rounds: int = 1,
    ) -> None:
        """``kinds`` are those of the calls; drawn, if none are given.  ``rounds`` is how often it
        opens the store."""
        self.process = run.process(f"process {number}")
        self._run = run
        self._rng = rng
        self._number = number
        self._rounds = rounds
        self._options = _options(rng) | {"patience": patience}
        # The others could wait for ever for an owner.
        self._may_own = number == 0 or rounds > 1 or rng.random() < 0.8
        self._late = rng.random() < 0.3
        self._closes = rng.random() < 0.15
        drawn = rng.choices((_WRITES, _READS, _REST), (4, 2, 2), k=rng.choice((1, 1, 2)))
        self._callers = [
            _Caller(run, rng, 10 * number + at, kind, self._may_own)
            for at, kind in enumerate([kinds] if kinds else drawn)
        ]
        self._left = len(self._callers)
        self.stays_for: list[_Life] = []
        """Those that are to end before this one."""

    def add(self, kinds: str) -> None:
        """Another thread, which makes such calls."""
        number = 10 * self._number + len(self._callers)
        self._callers.append(_Caller(self._run, self._rng, number, kinds, self._may_own))
        self._left += 1

    @property
    def has_ended(self) -> bool:
        """Whether it does nothing more."""
        return self.process.killed or self._left == 0

    def live(self) -> None:
        """Open the store, call it, and close it."""
        if self._late and not self.stays_for:
            self._run.sleep(0.001)
        for _ in range(self._rounds - 1):
            with self._open() as db:
                (caller,) = self._callers[:1]
                caller.use(db)
                caller.run(2)
        try:
            db = self._open()
        except lsmkv.LockedError:
            if self._may_own:
                raise
            self._left = 0  # all others have ended
            return
        except lsmkv.IOError as error:
            if not self._gives_up(error):
                raise
            self._left = 0
            return
        self._left += 1
        for caller in self._callers:
            caller.use(db)
            self.process.start(self._call, caller, db)
        if self._closes and not self.stays_for:
            db.close()
        while not all(one.has_ended for one in self.stays_for):
            self._run.sleep(0.001)
        self._leave(db)

    def _open(self) -> SharedDB:
        return finds_ranges(
            SharedDB(_PATH, env=self.process.env, may_own=self._may_own, **self._options)
        )

    def _gives_up(self, error: lsmkv.IOError) -> bool:
        """Whether it is the error of an owner that is stopped."""
        return self._options["patience"] is not None and error.errno == errno.ETIMEDOUT

    def _call(self, caller: _Caller, db: SharedDB) -> None:
        caller.run()
        self._leave(db)

    def _leave(self, db: SharedDB) -> None:
        self._left -= 1
        if self._left == 0:
            db.close()


class _Caller(Caller):
    """One thread's calls."""

    def __init__(
        self,
        run: Run,
        rng: random.Random,
        number: int,
        kinds: str,
        may_own: bool,
    ) -> None:
        history: History = run.kept["history"]
        super().__init__(run, None, history, rng, number, kinds)  # type: ignore[arg-type]
        self._may_own = may_own

    def use(self, db: SharedDB) -> None:
        """The store, once it is open."""
        self._db = db

    def run(self, most: int = CALLS) -> None:
        """Make the calls, some of which end with an error that is an answer."""
        for kind in self._kinds[:most]:
            try:
                getattr(self, kind)()
            except lsmkv.ClosedError:
                pass
            except lsmkv.StaleViewError:
                if not self._db.closed:  # which has ended its leases
                    raise
            except lsmkv.OutcomeUnknownError as error:
                # Another thread may have closed the store meanwhile.
                # Or its owner was stopped after it had read the request.
                is_closed = isinstance(error.__cause__, lsmkv.ClosedError | BlockingIOError)
                if self._may_own and not is_closed and kind not in (*UNCOUNTED, "checkpoint"):
                    raise
            except lsmkv.LockedError:
                if self._may_own:
                    raise
            except lsmkv.IOError as error:
                if error.errno != errno.ETIMEDOUT:
                    raise

    def pause(self) -> None:
        """Let others go on."""
        self._run.sleep(2 * _PAUSES * self._rng.random())

    def late_snapshot(self) -> None:
        """A snapshot is read only after others have done all that they can."""
        call = self._begin("snapshot")
        with self._db.snapshot() as snapshot:
            self._history.end(call)
            end, call.end = call.end, NEVER
            self._run.sleep(2 * _PAUSES)
            found: Content = frozenset(snapshot)
        call.scan = found
        call.end = end

    def put_synced(self) -> None:
        """The key that all are about."""
        call = self._begin("put")
        call.writes = {KEYS[0]: self._value()}
        call.synced = True
        self._db.put(KEYS[0], call.writes[KEYS[0]], sync=True)
        self._history.end(call)

    def get_first(self) -> None:
        """The same key, at any moment of a sync."""
        self._run.sleep(self._rng.random() * _SYNC_TAKES)
        self._get(KEYS[0])

    def put_first(self) -> None:
        """The key that the next two are about."""
        call = self._begin("put")
        call.writes = {KEYS[0]: self._value()}
        self._db.put(KEYS[0], call.writes[KEYS[0]])
        self._history.end(call)

    def slow_transact(self) -> None:
        """Read the key, let others do much, and write it."""
        new = self._value()
        call = self._begin("transaction")
        call.writes = {KEYS[0]: new}
        try:
            with self._db.transaction() as transaction:
                found = transaction.get(KEYS[0])
                self._run.sleep(0.001)
                transaction.put(KEYS[0], new)
        except lsmkv.ConflictError:
            self._history.calls.remove(call)
            return
        call.reads = {KEYS[0]: found}
        self._history.end(call)

    def slow_exchange(self) -> None:
        """The same without a transaction, as a step of a cache does it."""
        new = self._value()
        call = self._begin("transaction")
        call.writes = {KEYS[0]: new}
        writer = self._db._open_writer()
        sequence = self._db.sequence
        found = self._db.get(KEYS[0])
        self._run.sleep(0.001)
        try:
            writer.write_unless_changed([(KEYS[0], new)], sequence, [KEYS[0]])
        except lsmkv.ConflictError:
            self._history.calls.remove(call)
            return
        call.reads = {KEYS[0]: found}
        self._history.end(call)

    def vanish(self) -> None:
        """Delete the key, and let a compaction drop the deletion."""
        self._run.sleep(self._rng.choice((0.0002, 0.0006, 0.002)))
        call = self._begin("delete")
        call.writes = {KEYS[0]: None}
        self._db.delete(KEYS[0])
        self._history.end(call)
        self._db.compact_range()
        call = self._begin("get")
        call.reads = {KEYS[0]: self._db.get(KEYS[0])}
        self._history.end(call)
