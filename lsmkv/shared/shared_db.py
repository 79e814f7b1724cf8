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
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Literal, Unpack

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.admin.ingest import as_paths, ends_of
from lsmkv.engine.db.db import DB
from lsmkv.engine.db.handles.named_leases import NEVER, Holders, NamedLease, Request
from lsmkv.engine.db.handles.transaction import Isolation, Transaction, refuse_unknown
from lsmkv.engine.db.opening.open import MEMORY
from lsmkv.engine.db.tree.log_holds import LogHold
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.env.forks import refuse_unseen_forks
from lsmkv.engine.env.mounts import shared_file_system_of
from lsmkv.engine.env.place import absolute, resolve
from lsmkv.engine.errors import ClosedError, IOError, StaleViewError, raise_typed
from lsmkv.engine.options import OptionArguments
from lsmkv.engine.options.option import seconds
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.call_site import call_site
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.threads import new_reentrant_lock
from lsmkv.shared.connection import OwnerGone, number_in, plain
from lsmkv.shared.frames import BEGIN, NUMBERS, WAIT
from lsmkv.shared.given_options import GivenOptions
from lsmkv.shared.handle import SharedHandle
from lsmkv.shared.handover import LastCalls
from lsmkv.shared.joining import Entrance, Member, Owning
from lsmkv.shared.leases import LeaseReport, decoded, report
from lsmkv.shared.named_leases import Notes, hold
from lsmkv.shared.starting import for_others
from lsmkv.shared.system.local import SHARES
from lsmkv.shared.system.shared_file import SharedFile
from lsmkv.shared.system.shared_page import SEQUENCE, SUPERSEDED
from lsmkv.shared.system.system import LOCAL, system_of
from lsmkv.shared.transactions import MemberCommit, MemberSnapshot, OwnCommit, Registered
from lsmkv.shared.writing import denied

DB._import_for_methods()  # a program may drop its rights before it makes a handle


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class SharedDB(SharedHandle):
    """A store that any number of processes of this machine open, all for reading and writing.

    It has the methods and the options of :class:`DB`.  Every process opens it in the same way: the
    first one owns it and serves the others, its members.  When the owner closes the store or is
    killed, a member takes its place.  No acknowledged write is lost when any of them is killed, and
    a read sees every write that was acknowledged, in any process, before the read began.

    ``may_own=False`` is for processes that should not own the store, since they are often stopped
    or restarted; it waits for an owner, 30 seconds or ``lock_timeout``.  ``owner="process"`` leaves
    the store to a small process that does nothing else.  The first member starts it, with its own
    options; if it is killed, the next member that needs it starts another; and it ends two or three
    seconds after its last member.  A process that opens the store without it joins as well, and
    may be the next owner; where such a one owns the store already, ``owner="process"`` joins it
    with a ``RuntimeWarning``.  ``python`` is the path of the Python that this process is started
    with; by default it is ``sys.executable``, or where that is another program, such as uWSGI, the
    Python of the same installation.

    ``patience`` is for how many seconds a call waits for an owner that does not answer, since it is
    stopped; None waits for ever.  So does an opening, unless ``lock_timeout`` is less: if that is
    above 0, an opening waits so many seconds for everything together.

    A process of a newer release of lsmkv that may own the store takes it over, from a process that
    only owns it if it has ``owner="process"`` itself.  So does one with ``handover=True``, unless
    the owner's options are the same or its release is newer.  Calls of all processes wait for it.

    The comparator, the filter policy and the prefix extractor must have the names that the owner's
    have: :class:`~lsmkv.ComparatorMismatchError`, and :class:`Error` for the others.  Of the other
    options, the owner's are in force for what it does: the log, flushes, compactions, statistics
    and traces.  ``options`` shows them.  A member that was given other values gets one
    ``RuntimeWarning``, which names these options with both values.

    Methods have the errors and costs of those of :class:`DB`.  A write of a member also costs a
    message to the owner and back, and so does a transaction at its begin and at its end; a read
    costs a look at a word of shared memory, and reads what the others have written since.  Where
    the owner does not answer in time, :class:`IOError` has ``errno.ETIMEDOUT`` and says whether the
    owner is stopped: a write has not happened then, and never does.  ``run`` and ``update`` take
    turns among all processes: for them, the n of :meth:`DB.run` is the number of all their threads,
    and an owner that goes adds at most n + 1 calls.  A transaction
    raises :class:`~lsmkv.ConflictError` if its owner has gone since it began, and any write
    :class:`~lsmkv.OutcomeUnknownError` if it cannot be known what became of it.

    A process that may read the directory and its files, but not write to it, is a member that only
    reads: its writes raise :class:`~lsmkv.PermissionDeniedError`, and so does its opening while no
    other process shares the store.  It never owns the store.

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
    ...         another.delete_range(b"a", b"c")
    ...         another.close()
    ...         dict(db), another.closed, another.name == db.name, db.acknowledge_recovery()
    ({b'm': b'2', b'n': b'1'}, True, True, [])
    """

    _only_owns = False
    """True if this process does nothing but own the store."""
    _defaults: Collection[str] = ()
    """The names of options that the user has not given."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        may_own: bool = True,
        owner: Literal["process"] | None = None,
        patience: float | None = 30.0,
        python: str | os.PathLike[str] | None = None,
        handover: bool = False,
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
        if python is not None and owner is None:
            raise ValueError("python= requires owner='process'")
        if is_local:
            refuse_unseen_forks(where)
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
        self._real_path = resolve(where)
        self._handover = handover
        self._last_calls = LastCalls()
        self._notes = Notes()
        handle = weakref.ref(self)  # the listener's thread must not keep it from being collected
        run_method = partial(_run_method_of, handle)
        self._entrance = Entrance(
            *(where, options, may_own, owner is not None),
            *(self._patience, run_method, self._only_owns, handover),
        )
        if python is not None:
            self._entrance.python = absolute(os.fsdecode(python))
        self._given = GivenOptions(options, self._defaults)
        self._site = call_site()
        super().__init__(path, **options)
        part = self._part
        texts = [self._difference()]
        if owner is not None and isinstance(part, Member) and part.joined.owner_does_more:
            texts.append(
                f"{where}: process {part.joined.owner} owns the store, and has opened it without"
                " owner='process': members wait while it computes"
            )
        try:
            for text in texts:
                if text:
                    self._site.warn(text, RuntimeWarning)
        except BaseException:
            self.close()
            raise

    @classmethod
    def _with_defaults(
        cls, path: str, defaults: OptionArguments, options: OptionArguments
    ) -> SharedDB:
        """The store, opened by a caller that has its own defaults: if the owner has other values
        there is no warning, since the user has given only ``options``."""
        db = cls.__new__(cls)
        db._defaults = defaults.keys() - options.keys()
        cls.__init__(db, path, **(defaults | options))
        return db

    # Who owns the store

    @property
    def role(self) -> str:
        """``"owner"`` or ``"member"``, at this moment."""
        return "owner" if isinstance(self._part, Owning) else "member"

    @property
    def owner(self) -> int:
        """The process id of the owner."""
        if self._forked:
            self._join_in_child()
        part = self._part
        return part.joined.owner if isinstance(part, Member) else os.getpid()

    @property
    def members(self) -> list[int]:
        """The process ids of the members, each once, as their owner knows them; [] at a member."""
        part = self._part
        return part.listener.members if isinstance(part, Owning) else []

    def leases(self) -> LeaseReport:
        """Report which processes lease which versions of the store, and how much space it takes.

        A member leases the version that it has read last, and those of its iterators and snapshots;
        the owner keeps their tables.  ``names`` are the leases of locks and of other callers that
        agree on a name.  The same at a member, which asks its owner.  Cost: a look at each file of
        the directory, and at the descriptors of each member.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with SharedDB(f"{place}/store", create_if_missing=True) as db:
        ...         with SharedDB(f"{place}/store") as member:
        ...             (lease,) = db.leases().leases
        ...             lease.pid == os.getpid(), len(lease.versions), lease.log, lease.bytes
        (True, 1, None, 0)
        """
        while True:
            part = self._part
            if self._is_member():
                return decoded(self._call_owner("leases", {}))
            if not isinstance(part, Owning) or part is not self._part:
                continue  # it has just become the owner, or another process has
            store = part.opened.store
            background = part.opened.background
            assert background is not None
            pids = {*part.listener.members, os.getpid()}
            try:
                return report(store, part.publishing, background.pending_outputs, pids)
            except (OSError, ValueError) as error:  # ValueError: the files are closed
                if part.retiring:
                    continue
                if isinstance(error, OSError):
                    store.raise_failure(error)
                raise ClosedError("the database is closed") from error

    def __repr__(self) -> str:
        role = "owner" if self.role == "owner" else f"member of process {self.owner}"
        return f"<lsmkv.SharedDB {self.path!r} ({'closed' if self.closed else role})>"

    def refresh(self) -> None:
        """Do nothing but check that the store is open: it always shows the current state."""
        self._open_store()

    # Methods that run at the owner

    def compact_range(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """:meth:`DB.compact_range`, at the owner."""
        if self._runs_here(partial(super().compact_range, start, stop, progress=progress)):
            return
        begin = None if start is None else as_bytes(start, "start key")
        end = None if stop is None else as_bytes(stop, "stop key")
        self._call_owner("compact_range", {"start": begin, "stop": end}, progress)

    def rewrite_tables(self, *, progress: Progress | None = None) -> None:
        """:meth:`DB.rewrite_tables`, at the owner and with its options."""
        if not self._runs_here(partial(super().rewrite_tables, progress=progress)):
            self._call_owner("rewrite_tables", {}, progress)

    def checkpoint(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """:meth:`DB.checkpoint`, by this process, also at a member."""
        if self._runs_once_here():
            try:
                super().checkpoint(path, progress=progress)
            finally:
                self._last_calls.end()
            return
        part = self._part
        if isinstance(part, Member) and not part.may_write:
            raise denied(part.opened.directory.path)
        super().checkpoint(path, progress=progress)

    def ingest(
        self, files: Iterable[str | os.PathLike[str]], *, progress: Progress | None = None
    ) -> None:
        """:meth:`DB.ingest`, at the owner.  Relative paths are this process's.

        :class:`Error` if the owner finds another file at a path, as it does in another container.
        """
        if not self._runs_once_here():
            paths = [absolute(path) for path in as_paths(files)]
            try:
                ends = ends_of(self._opened.env, paths)
            except OSError as error:
                raise_typed(error)
            self._call_owner("ingest", {"files": paths}, progress, ends)
            return
        try:
            super().ingest(files, progress=progress)
        finally:
            self._last_calls.end()

    def delete_range(
        self,
        start: BytesLike | None,
        stop: BytesLike | None,
        *,
        prefix: BytesLike | None = None,
        tables_only: bool = False,
    ) -> None:
        """:meth:`DB.delete_range`, at the owner.

        Raises :class:`OutcomeUnknownError` if the owner is lost in the middle of it.
        """
        if not self._runs_once_here():
            given = {
                "start": None if start is None else as_bytes(start, "start key"),
                "stop": None if stop is None else as_bytes(stop, "stop key"),
                "prefix": None if prefix is None else as_bytes(prefix, "prefix"),
                "tables_only": tables_only,
            }
            self._call_owner("delete_range", given)
            return
        try:
            super().delete_range(start, stop, prefix=prefix, tables_only=tables_only)
        finally:
            self._last_calls.end()

    def acknowledge_recovery(self) -> list[str]:
        """:meth:`DB.acknowledge_recovery`, at the owner."""
        if not self._runs_once_here():
            names: list[str] = self._call_owner("acknowledge_recovery", {})
            return names
        try:
            return super().acknowledge_recovery()
        finally:
            self._last_calls.end()

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
                store = self._open_store()
                own = DB.snapshot(self)  # a subclass may have snapshots of another kind
                commit = OwnCommit(self._commit_unless_changed, store, self._open_store)
                return Transaction(
                    *(own, own.sequence, commit, sync),
                    *(self.options.comparator, serializable),
                )
            try:
                number = number_in(part.joined.ask(plain(BEGIN, part.joined.ended())))
                break
            except OwnerGone:
                self._rejoin(part)
        registered = Registered(part.joined, number)
        reader = self._open_reader()
        while True:
            try:
                reader, read = reader.snapshot_view()
                break
            except StaleViewError as error:
                reader = self._newer_reader(error)
        snapshot = MemberSnapshot(reader, read, self)
        snapshot.registered = registered
        return Transaction(
            *(snapshot, snapshot.sequence, MemberCommit(self, registered), sync),
            *(self.options.comparator, serializable),
        )

    # Named leases

    def _abandon(self, store: Store) -> None:
        super()._abandon(store)
        self._holders = Holders()
        self._notes = Notes()

    @property
    def _lease_place(self) -> object:
        return self._real_path

    def _take_lease(self, request: Request, timeout: float | None) -> NamedLease | None:
        until = NEVER if timeout is None else time.monotonic() + timeout
        while not request.wait.withdrawn:
            self._open_store()
            part = self._part
            left = None if timeout is None else max(0.0, until - time.monotonic())
            if isinstance(part, Owning):
                try:
                    return part.listener.leases.queue.take(request, left)
                except ClosedError as error:
                    self._after_handover(part, error)
                    continue
            if not isinstance(part, Member):
                continue  # it is just being closed
            if not part.may_write:
                raise denied(part.opened.directory.path)
            leases = self._entrance.leases
            if leases is None:
                continue
            try:
                return hold(part.joined, self._notes, leases.file, request, left)
            except OwnerGone:
                if not request.wait.withdrawn:
                    self._rejoin(part)
            except OSError as error:
                raise_typed(error)
        return None

    def _lease_number(self, number: int) -> Callable[[], None] | None:
        file = self._shared_file()
        try:
            if file is not None:
                file.lease_number(number)
                return partial(file.release_number, number)
        except (OSError, ValueError):
            pass  # it is just being closed
        return None

    def _is_number_leased(self, number: int) -> bool:
        file = self._shared_file()
        return file is not None and file.is_number_leased(number)

    def _shared_file(self) -> SharedFile | None:
        """The file by which this process has leases."""
        self._open_store()
        part = self._part
        if isinstance(part, Owning):
            return part.publishing.file
        leases = self._entrance.leases
        return None if leases is None else leases.file

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
        arguments = for_others(self._arguments) | {
            "may_own": self._may_own,
            "owner": self._owner,
            "patience": self._patience,
            "python": self._entrance.python or None,
            "handover": self._handover,
        }
        return _reopen, (absolute(self.path), arguments)


_FOR_EVER = 1e9
"""Seconds."""


def _checked_patience(value: object) -> float | None:
    """A number of seconds above 0; None for a time beyond any practical limit."""
    if value is None:
        return None
    patience = seconds("patience", value)
    if patience == 0.0:
        raise ValueError("patience must be above 0; None waits forever")
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
