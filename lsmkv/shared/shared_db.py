"""SharedDB: a store that any number of processes of one machine have open.

Each opens it in the same way.  The one that gets ``LOCK`` is the owner: its store is open as any
other, and a :class:`~lsmkv.shared.listener.Listener` serves the others.  All others are members:
they read the owner's files (``following.py``) and send it their writes (``writing.py``).  When the
owner goes, or is killed, the first member that needs one takes its place (``joining.py``).
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, Unpack

from mypy_extensions import mypyc_attr

from lsmkv.db.admin.ingest import as_paths
from lsmkv.db.db import DB
from lsmkv.db.handles.named_leases import NEVER, Holders, NamedLease
from lsmkv.db.handles.transaction import Isolation, Transaction, refuse_unknown
from lsmkv.db.handles.turns import Turns
from lsmkv.db.opening.open import MEMORY, OpenStore
from lsmkv.db.read.reader import Reader
from lsmkv.db.tree.log_holds import LogHold
from lsmkv.db.tree.store import Store
from lsmkv.db.write.write_path import WritePath
from lsmkv.env.local_sharing import SHARES
from lsmkv.env.mounts import shared_file_system_of
from lsmkv.env.place import absolute
from lsmkv.env.shared_page import SEQUENCE, SUPERSEDED
from lsmkv.errors import (
    ClosedError,
    Error,
    IOError,
    NestedCallError,
    OutcomeUnknownError,
    StaleViewError,
    raise_typed,
)
from lsmkv.options import OptionArguments
from lsmkv.options.option import seconds
from lsmkv.shared.connection import Joined, OwnerGone, number_in, plain, result_in
from lsmkv.shared.following import EpochOver
from lsmkv.shared.frames import BEGIN, CALL, NUMBERS, WAIT, json_frame
from lsmkv.shared.joining import Entrance, Member, Owning
from lsmkv.shared.leases import LeaseReport, decoded, report
from lsmkv.shared.named_leases import Notes, hold
from lsmkv.shared.system import LOCAL, system_of
from lsmkv.shared.transactions import MemberCommit, MemberSnapshot, Registered
from lsmkv.shared.writing import DeniedWriter, MemberWriter, denied
from lsmkv.util.arguments import BytesLike, as_bytes
from lsmkv.util.introspection import described
from lsmkv.util.progress import Progress
from lsmkv.util.threads import ThreadLock, new_reentrant_lock


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class SharedDB(DB):
    """A store that any number of processes of this machine open, all for reading and writing.

    It has the methods and the options of :class:`DB`.  Every process opens it in the same way: the
    first one owns it and serves the others, its members.  When the owner closes the store or is
    killed, a member takes its place.  No acknowledged write is lost when any of them is killed, and
    a read sees every write that was acknowledged, in any process, before the read began.

    ``may_own=False`` is for processes that should not own the store, since they are often stopped
    or restarted; it waits for an owner, 30 seconds or ``lock_timeout``.  ``owner="process"`` leaves
    the store to a small process that does nothing else.  The first member starts it, with its own
    options; if it is killed, the next member that needs it starts another; and it ends two or three
    seconds after its last member.  All should be opened in the same way.  ``patience`` is for how
    many seconds a write waits for an owner that does not answer, since it is stopped; None waits
    for ever.  A write that was waited for in this way may still happen.

    Methods have the errors and costs of those of :class:`DB`.  A write of a member also costs a
    message to the owner and back, and so does a transaction at its begin and at its end; a read
    costs a look at a word of shared memory, and reads what the others have written since.  Where
    the owner does not answer in time, :class:`IOError` has ``errno.ETIMEDOUT``.  A transaction
    raises :class:`~lsmkv.ConflictError` if its owner has gone since it began, and any write
    :class:`~lsmkv.OutcomeUnknownError` if it cannot be known what became of it.

    A process that may read the directory and its files, but not write to it, is a member that only
    reads: its writes raise :class:`~lsmkv.PermissionDeniedError`, and it never owns the store.

    ``read_only``, ``':memory:'``, and any ``env`` but that of a simulated process
    (:meth:`lsmkv.testing.Run.process`) are refused (``ValueError``), and a directory on a
    network file system (:class:`IOError` with ``errno.EOPNOTSUPP``); Linux and macOS have what it
    takes (``NotImplementedError`` elsewhere).

    >>> import tempfile, lsmkv
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with SharedDB(f"{place}/store", create_if_missing=True) as db:
    ...         with SharedDB(f"{place}/store") as another:  # most often in another process
    ...             another.put(b"k", b"v")
    ...             db.get(b"k"), db.role, another.role, db.members == [another.owner]
    (b'v', 'owner', 'member', True)

    What runs at the owner, and a transaction of a member:

    >>> with tempfile.TemporaryDirectory() as place:
    ...     with SharedDB(f"{place}/store", create_if_missing=True) as db:
    ...         another = SharedDB(f"{place}/store")
    ...         with another.transaction() as transaction:
    ...             transaction.put(b"n", b"%d" % (int(transaction.get(b"n", b"0")) + 1))
    ...         another.compact_range()
    ...         another.rewrite_tables()
    ...         another.refresh()
    ...         another.checkpoint(f"{place}/copy")
    ...         with lsmkv.TableWriter(f"{place}/more.ldb") as table:
    ...             table.add(b"m", b"2")
    ...         another.ingest([f"{place}/more.ldb"])
    ...         another.close()
    ...         dict(db), another.closed, another.name == db.name, db.acknowledge_recovery()
    ({b'm': b'2', b'n': b'1'}, True, True, [])
    """

    _part: Owning | Member | None = None
    _joining = False
    """Whether the holder of ``_join_lock`` is joining."""
    _forked = False
    """Whether this is the copy of a handle in a forked child, which has not joined yet."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        may_own: bool = True,
        owner: Literal["process"] | None = None,
        patience: float | None = None,
        **options: Unpack[OptionArguments],
    ) -> None:
        """Open the store, or join the process that has it open.

        Raises what :class:`DB` raises, and :class:`LockedError` if a process has the store open
        that does not share it.
        """
        is_local = system_of(options.get("env")) is LOCAL
        if is_local and not SHARES:
            raise NotImplementedError("only Linux and macOS can share a store between processes")
        if options.get("read_only"):
            raise ValueError("a shared store has no option read_only")
        where = os.fsdecode(path)
        if where == MEMORY:
            raise ValueError("a store in memory belongs to one process")
        if owner not in (None, "process"):
            raise ValueError(f"owner must be 'process' or None, not {owner!r}")
        network = shared_file_system_of(where) if is_local else ""
        if network:
            raise IOError(
                errno.EOPNOTSUPP,
                f"a store on {network} cannot be shared: processes of other machines may have it",
                where,
            )
        self._may_own = may_own
        self._owner = owner
        self._patience = _checked_patience(patience)
        self._join_lock = new_reentrant_lock()
        self._notes = Notes()
        handle = weakref.ref(self)  # the listener's thread must not keep it from being collected
        run_method = partial(_run_method_of, handle)
        starts = owner is not None
        self._entrance = Entrance(where, options, may_own, starts, self._patience, run_method)
        super().__init__(path, **options)

    # Who owns the store

    @property
    def role(self) -> str:
        """``"owner"`` or ``"member"``, at this moment."""
        return "owner" if isinstance(self._part, Owning) else "member"

    @property
    def owner(self) -> int:
        """The process id of the owner."""
        part = self._part
        return part.joined.owner if isinstance(part, Member) else os.getpid()

    @property
    def members(self) -> list[int]:
        """The process ids of the members, each once, as their owner knows them; [] at a member."""
        part = self._part
        return part.listener.members if isinstance(part, Owning) else []

    def leases(self) -> LeaseReport:
        """Who leases which versions of the store, and how much space that takes up.

        A member leases the version that it has read last, and those of its iterators and snapshots;
        the owner keeps their tables.  The same at a member, which asks its owner.  Cost: a look at
        each file of the directory, and at the descriptors of each member.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with SharedDB(f"{place}/store", create_if_missing=True) as db:
        ...         with SharedDB(f"{place}/store") as member:
        ...             (lease,) = db.leases().leases
        ...             lease.pid == os.getpid(), len(lease.versions), lease.log, lease.bytes
        (True, 1, None, 0)
        """
        if self._is_member():
            return decoded(self._call_owner("leases", {}))
        part = self._part
        assert isinstance(part, Owning)
        store = self._open_store()
        background = part.opened.background
        assert background is not None
        pids = {*part.listener.members, os.getpid()}
        try:
            return report(store, part.publishing, background.pending_outputs, pids)
        except OSError as error:
            store.raise_failure(error)

    def __repr__(self) -> str:
        role = "owner" if self.role == "owner" else f"member of process {self.owner}"
        return f"<lsmkv.SharedDB {self.path!r} ({'closed' if self.closed else role})>"

    # Joining

    def _open_parts(self) -> OpenStore:
        self._part = self._entrance.enter()
        self._entrance.claim()
        return self._part.opened

    def _adopt(self, opened: OpenStore) -> None:
        super()._adopt(opened)
        part = self._part
        if isinstance(part, Member):
            writes = part.may_write
            self._writer = (
                MemberWriter(part.joined, self) if writes else DeniedWriter(opened.directory.path)
            )
        self._pid = os.getpid()

    def _rejoin(self, gone: Member) -> None:
        """Join the next owner, or become it, unless another thread has."""
        with self._join_lock:
            self._finish_adoption()
            if self._part is not gone:
                return
            if self._joining:  # by this thread, in the call that this one has interrupted
                raise NestedCallError(
                    "not possible here: a signal handler or finalizer has interrupted a call that"
                    " joins the next owner of the store"
                )
            store = self._store
            if store is None or store.view is None:
                raise ClosedError("the database is closed")
            self._joining = True
            try:
                gone.joined.close()
                self._part = self._entrance.enter(gone)
                self._finish_adoption()
                gone.page.close()
                if self._entrance.cancelled:  # by a nested call, in the middle of this
                    self._close_part()
                    raise ClosedError("the database is closed")
            except OSError as error:
                raise_typed(error)
            finally:
                self._joining = False

    def _finish_adoption(self) -> None:
        """Take over what was joined, if an interrupt has prevented it."""
        part = self._part
        if part is not None and part.opened is not self._opened:
            self._opened = part.opened
            self._adopt(part.opened)
        self._entrance.claim()

    def _move_on(self, error: StaleViewError) -> None:
        if not isinstance(error, EpochOver):
            try:
                super()._move_on(error)
                return
            except EpochOver:
                pass
        part = self._part
        if isinstance(part, Member) and part.page.superseded:
            self._rejoin(part)
        elif part is not None and part.opened is not self._opened:
            with self._join_lock:
                self._finish_adoption()

    def _open_reader(self) -> Reader:
        if self._forked:
            self._join_in_child()
        return super()._open_reader()

    def _open_store(self) -> Store:
        if self._forked:
            self._join_in_child()
        while True:
            part = self._part
            store = super()._open_store()
            if not isinstance(part, Member):
                return store
            try:
                part.follower.refresh(part.opened.store)
            except EpochOver as error:
                self._move_on(error)
            except OSError as error:
                store.raise_failure(error)
            else:
                return part.opened.store

    def refresh(self) -> None:
        """Do nothing but check that the store is open: it always shows the current state."""
        self._open_store()

    # Forks

    def _abandon(self, store: Store) -> None:
        """In a forked child: close what belongs to the parent, at once; join at the next use."""
        if self._opened.released:
            return
        part = self._part
        if isinstance(part, Owning):
            part.listener.close_in_child()
        elif part is not None:
            part.page.close()
        super()._abandon(store)
        self._entrance.close()
        self._part = None
        self._store = self._reader = self._writer = None
        self._join_lock = new_reentrant_lock()
        self._close_lock = ThreadLock()
        self._turns = Turns()
        self._holders = Holders()
        self._notes = Notes()
        self._joining = self._close_asked = self._entrance.cancelled = False
        self._forked = True

    def _join_in_child(self) -> None:
        with self._join_lock:
            if self._forked:
                try:
                    self._opened = self._open_parts()
                except OSError as error:
                    raise_typed(error)
                self._adopt(self._opened)
                self._forked = False

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return not self._forked and super().closed

    # What a member's writer asks for

    def _resolve(self, joined: Joined, gone: OwnerGone, sync: bool) -> WritePath | None:
        part = self._part
        try:
            if isinstance(part, Member) and part.joined is joined:
                self._rejoin(part)
            writer = self._open_writer()
        except Error as error:
            if gone.left or gone.slot < 0:
                raise
            if joined.page.superseded and joined.page.noted(gone.slot)[0] != gone.request:
                raise  # its owner is dead, and has not begun to write it
            raise OutcomeUnknownError(
                f"{self.path}: the owner was lost before it answered, and none can be asked"
            ) from error
        if gone.left or gone.slot < 0:
            return writer
        part = self._part
        recovered = None
        if part is not None and part.epoch != joined.epoch:  # else the slot may be another's now
            recovered = self._entrance.recovered_after(joined.epoch, part)
        if recovered is None:
            raise OutcomeUnknownError(
                f"{self.path}: the owner was lost before it answered, and nobody knows whether the"
                " write has happened"
            )
        request, last = joined.page.noted(gone.slot)
        if request != gone.request:
            return writer
        if recovered < last:
            return writer
        if sync:
            writer.sync()
        return None

    def _call_owner(
        self, method: str, arguments: dict[str, Any], progress: Progress | None = None
    ) -> Any:
        """Run a method where the store is owned: here, or in the owner's process."""
        while True:
            part = self._part
            if not isinstance(part, Member):
                given = arguments if progress is None else arguments | {"progress": progress}
                return getattr(self, method)(**given)
            if not part.may_write and method not in _READS:
                raise denied(part.opened.directory.path)
            call = {"method": method, "arguments": _as_json(arguments)}
            try:
                made = partial(_call_frame, call)
                return result_in(part.joined.ask(made, progress, may_take_long=True))
            except OwnerGone as gone:
                if method in _ONCE and gone.slot >= 0 and not gone.left:
                    raise OutcomeUnknownError(
                        f"{self.path}: the owner was lost in the middle of {method}()"
                    ) from gone
                self._rejoin(part)

    def _run_method(self, name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        """Run a method that a member asks for."""
        if name not in _CALLS:
            raise ValueError(f"no member may call {name!r}")
        given = _from_json(arguments)
        if name in _WITH_PROGRESS:
            given["progress"] = tell
        return getattr(self, name)(**given)

    def _is_member(self) -> bool:
        self._open_store()
        return isinstance(self._part, Member)

    # Methods that run at the owner

    def compact_range(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """:meth:`DB.compact_range`, at the owner."""
        if self._is_member():
            begin = None if start is None else as_bytes(start, "start key")
            end = None if stop is None else as_bytes(stop, "stop key")
            self._call_owner("compact_range", {"start": begin, "stop": end}, progress)
        else:
            super().compact_range(start, stop, progress=progress)

    def rewrite_tables(self, *, progress: Progress | None = None) -> None:
        """:meth:`DB.rewrite_tables`, at the owner and with its options."""
        if self._is_member():
            self._call_owner("rewrite_tables", {}, progress)
        else:
            super().rewrite_tables(progress=progress)

    def checkpoint(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """:meth:`DB.checkpoint`, at the owner.  A relative path is this process's."""
        if self._is_member():
            self._call_owner("checkpoint", {"path": absolute(os.fsdecode(path))}, progress)
        else:
            super().checkpoint(path, progress=progress)

    def ingest(
        self, files: Iterable[str | os.PathLike[str]], *, progress: Progress | None = None
    ) -> None:
        """:meth:`DB.ingest`, at the owner.  Relative paths are this process's."""
        if self._is_member():
            paths = [absolute(path) for path in as_paths(files)]
            self._call_owner("ingest", {"files": paths}, progress)
        else:
            super().ingest(files, progress=progress)

    def acknowledge_recovery(self) -> list[str]:
        """:meth:`DB.acknowledge_recovery`, at the owner."""
        if self._is_member():
            names: list[str] = self._call_owner("acknowledge_recovery", {})
            return names
        return super().acknowledge_recovery()

    # Transactions

    def transaction(
        self, *, isolation: Isolation = "serializable", sync: bool = False
    ) -> Transaction:
        """:meth:`DB.transaction`; a member's is checked and committed by the owner."""
        serializable = isolation == "serializable"
        if not serializable:
            refuse_unknown(isolation)
        self._open_store()
        while True:
            part = self._part
            if not isinstance(part, Member) or not part.may_write:
                return super().transaction(isolation=isolation, sync=sync)
            try:
                number = number_in(part.joined.ask(plain(BEGIN, part.joined.ended())))
                break
            except OwnerGone:
                self._rejoin(part)
        registered = Registered(part.joined, number)
        try:
            reader, read = self._open_reader().snapshot_view()
        except StaleViewError as error:
            reader, read = self._again(error, "snapshot_view")
        snapshot = MemberSnapshot(reader, read, self)
        snapshot.registered = registered
        commit = MemberCommit(self, registered)
        return Transaction(
            snapshot, snapshot.sequence, commit, sync, self.options.comparator, serializable
        )

    # Named leases

    def _take_lease(
        self, name: bytes, permits: int, limit: float | None, timeout: float | None
    ) -> NamedLease | None:
        until = NEVER if timeout is None else time.monotonic() + timeout
        while True:
            self._open_store()
            part = self._part
            left = None if timeout is None else max(0.0, until - time.monotonic())
            if isinstance(part, Owning):
                return part.listener.leases.queue.take(name, permits, limit, left)
            if not isinstance(part, Member):
                continue  # it is just being closed
            if not part.may_write:
                raise denied(part.opened.directory.path)
            leases = self._entrance.leases
            if leases is None:
                continue
            try:
                return hold(part.joined, self._notes, leases.file, name, permits, limit, left)
            except OwnerGone:
                self._rejoin(part)
            except OSError as error:
                raise_typed(error)

    # Changes

    def _wait_for_write(self, store: Store, sequence: int, seconds: float) -> None:
        part = self._part
        if not isinstance(part, Member):
            super()._wait_for_write(store, sequence, seconds)
            return
        try:
            if self._patience is not None:
                seconds = min(seconds, self._patience / 2)  # so that it is the owner who ends it
            wanted = NUMBERS.pack(sequence, int(1000 * seconds) + 1)
            number_in(part.joined.ask(plain(WAIT, wanted)))
        except OwnerGone:
            self._rejoin(part)

    def _follow_logs(self, hold: LogHold) -> tuple[Store, int]:
        if self._forked:
            self._join_in_child()
        while True:
            store = super()._open_store()
            part = self._part
            if not isinstance(part, Member):
                return super()._follow_logs(hold)
            last: int = part.page.words[SEQUENCE]
            leases = self._entrance.leases
            if last == SUPERSEDED or leases is None:
                self._rejoin(part)
            elif part.opened.store is store:
                try:
                    leases.logs.add(hold)
                except OSError as error:
                    store.raise_failure(error)
                return store, last

    # Copying and pickling: another handle joins

    def __copy__(self) -> DB:
        reopen, arguments = self.__reduce__()
        return reopen(*arguments)

    def __reduce__(self) -> tuple[Callable[..., DB], tuple[str, dict[str, Any]]]:
        """A shared store is pickled as its path and options; unpickling it joins the store."""
        arguments: dict[str, Any] = dict(self._arguments)
        for name in ("block_cache", "trace"):  # which belong to one process
            arguments.pop(name, None)
        arguments |= {
            "may_own": self._may_own,
            "owner": self._owner,
            "patience": self._patience,
        }
        return _reopen, (absolute(self.path), arguments)

    # Closing

    def _settle_at_exit(self) -> None:
        """Serve no member any more: a thread that is frozen at the end may hold a lock."""
        part = self._part
        if isinstance(part, Owning) and os.getpid() == self._pid:
            part.listener.stop()
        super()._settle_at_exit()

    def _close(self) -> None:
        self._entrance.cancel()
        with self._join_lock:
            self._close_part()

    def _close_part(self) -> None:
        """Caller holds ``_join_lock``: no other thread joins an owner, or becomes one."""
        if self._store is not None:
            self._finish_adoption()
        part = self._part
        if isinstance(part, Owning) and os.getpid() == self._pid:
            part.listener.stop()
            part.publishing.leave()
            self._entrance.close()  # of when it was a member
        super()._close()
        if isinstance(part, Member):
            part.joined.close()
            part.page.close()
        self._entrance.close()


_FOR_EVER = 1e9
"""Seconds."""
_WITH_PROGRESS = frozenset(("compact_range", "rewrite_tables", "checkpoint", "ingest"))
_READS = frozenset(("leases",))
"""What a process may call that may not write."""
_ONCE = frozenset(("checkpoint", "ingest", "acknowledge_recovery"))
"""What must not be done twice."""
_CALLS = _WITH_PROGRESS | {"sync", "flush", "acknowledge_recovery", "leases"}


def _checked_patience(value: object) -> float | None:
    """A number of seconds above 0; None for what nobody lives to see."""
    if value is None:
        return None
    patience = seconds("patience", value)
    if patience == 0.0:
        raise ValueError("patience must be above 0; None waits for ever")
    return patience if patience < _FOR_EVER else None


def _run_method_of(
    handle: weakref.ref[SharedDB],
    name: str,
    arguments: dict[str, Any],
    tell: Callable[..., None],
) -> Any:
    db = handle()
    if db is None:
        raise ClosedError("the database is closed")
    return db._run_method(name, arguments, tell)


def _reopen(path: str, arguments: dict[str, Any]) -> DB:
    return SharedDB(path, **arguments)


def _call_frame(call: dict[str, Any], request: int) -> bytes:
    return json_frame(CALL, request, call)


def _as_json(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"bytes": value.hex()} if isinstance(value, bytes) else value
        for name, value in arguments.items()
    }


def _from_json(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value
        for name, value in arguments.items()
    }
