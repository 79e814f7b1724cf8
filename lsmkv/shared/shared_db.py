"""SharedDB: a store that any number of processes of one machine have open.

Each opens it in the same way.  The one that gets ``LOCK`` is the owner: its store is open as any
other, and a :class:`~lsmkv.shared.listener.Listener` serves the others.  All others are members:
they read the owner's files (``following.py``) and send it their writes (``writing.py``).  When the
owner goes, or is killed, the first member that needs one takes its place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Unpack

from mypy_extensions import mypyc_attr

from lsmkv.db.db import DB
from lsmkv.db.handles.snapshot import Snapshot
from lsmkv.db.handles.transaction import Isolation, Transaction, refuse_unknown
from lsmkv.db.handles.turns import Turns
from lsmkv.db.opening.directory import open_database_directory
from lsmkv.db.opening.open import MEMORY, OpenStore, open_store
from lsmkv.db.read.reader import Reader
from lsmkv.db.read.scan import Bounds
from lsmkv.db.tree.sharing import Sharing
from lsmkv.db.tree.store import Store
from lsmkv.db.write.write_path import WritePath
from lsmkv.env.base import Directory
from lsmkv.env.local import LocalDirectory, LocalEnv
from lsmkv.env.shared_file import SharedFile
from lsmkv.env.shared_page import HAS_PAGES, find_page
from lsmkv.errors import (
    ClosedError,
    ConflictError,
    Error,
    LockedError,
    NotFoundError,
    StaleViewError,
    raise_typed,
)
from lsmkv.format.batch import WriteBatch
from lsmkv.format.filenames import LOCK, SHARED
from lsmkv.format.keys import InternalKeyComparator
from lsmkv.options import OptionArguments, make_options
from lsmkv.shared.connection import Joined, OwnerGone, number_in, plain, result_in
from lsmkv.shared.following import EpochOver, Leases, MemberFollower, SharedReader
from lsmkv.shared.frames import BEGIN, CALL, END, NUMBER, NUMBERS, WAIT, json_frame
from lsmkv.shared.listener import Listener
from lsmkv.shared.publishing import Publishing
from lsmkv.shared.writing import MemberWriter
from lsmkv.util.arguments import BytesLike, as_bytes
from lsmkv.util.introspection import described
from lsmkv.util.progress import Progress
from lsmkv.util.threads import ThreadLock, new_reentrant_lock, pause

_PAUSE = 0.002
"""Seconds between two attempts to join, or to own."""
_START = 30.0
"""Seconds that a process which holds ``LOCK`` may take to recover the store before it answers."""
_GRACE = 1.0
"""Seconds from the lock on ``LOCK`` until its holder is expected to have said that it shares."""


class _Owning:
    """What an owner has besides its store."""

    def __init__(self, publishing: Publishing, listener: Listener) -> None:
        self.publishing = publishing
        self.listener = listener
        self.page = publishing.page


class _Member:
    """What a member has besides its view."""

    def __init__(self, joined: Joined, follower: MemberFollower) -> None:
        self.joined = joined
        self.follower = follower
        self.page = joined.page


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class SharedDB(DB):
    """A store that any number of processes of this machine open for reading and writing.

    It has the methods and the options of :class:`DB`.  Every process opens it in the same way; the
    first one owns it and serves the others, its members.  When the owner closes the store or is
    killed, a member takes its place.  A write that any process was told of survives the kill of any
    other, and is seen by every read that begins later, in any process.

    ``may_own=False`` is for processes that must not own the store, since they are stopped or
    restarted often.  ``patience`` is for how many seconds a call waits for an owner that does not
    answer (:class:`IOError` with ``errno.ETIMEDOUT`` then); None waits for ever.

    Linux alone; the options ``env``, ``read_only`` and ``':memory:'`` are refused.
    """

    _owning: _Owning | None = None
    _member: _Member | None = None
    _leases: Leases | None = None
    _left = False
    _forked = False
    """Whether this is the copy of a handle in a forked child, which has not joined yet."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        may_own: bool = True,
        patience: float | None = None,
        **options: Unpack[OptionArguments],
    ) -> None:
        """Open the store, or join the process that has it open.

        Raises what :class:`DB` raises, and :class:`LockedError` if a process has the store open
        that does not share it.
        """
        if not HAS_PAGES:
            raise NotImplementedError("only Linux can share a store between processes")
        for name in ("env", "read_only"):
            if options.get(name):
                raise ValueError(f"a shared store has no option {name}")
        if os.fsdecode(path) == MEMORY:
            raise ValueError("a store in memory belongs to one process")
        self._may_own = may_own
        self._patience = patience
        self._join_lock = new_reentrant_lock()
        self._names = _names_of(options)
        super().__init__(path, **options)

    # Who owns the store

    @property
    def role(self) -> str:
        """``"owner"`` or ``"member"``, at this moment."""
        return "owner" if self._owning is not None else "member"

    @property
    def owner(self) -> int:
        """The process id of the owner."""
        member = self._member
        return os.getpid() if member is None else member.joined.owner

    @property
    def members(self) -> list[int]:
        """The process ids of the members, as their owner knows them; [] elsewhere."""
        owning = self._owning
        return [] if owning is None else owning.listener.members

    def __repr__(self) -> str:
        if self.closed:
            return f"<lsmkv.SharedDB {self.path!r} (closed)>"
        if self._owning is not None:
            return f"<lsmkv.SharedDB {self.path!r} (owner)>"
        return f"<lsmkv.SharedDB {self.path!r} (member of process {self.owner})>"

    # Joining

    def _open_parts(self) -> OpenStore:
        """Join, or own, whatever comes first.

        A process that holds ``LOCK`` and does not share the store is waited for as long as
        ``lock_timeout`` says, but at least for the moment in which an owner has just got it.
        """
        patience = make_options(**self._arguments).lock_timeout
        holder = -1
        since = 0.0
        while True:
            opened = self._join()
            if opened is not None:
                return opened
            held = LockedError(self.path)
            if self._may_own:
                try:
                    return self._own()
                except LockedError as error:
                    held = error
            holding, shares = self._holder()
            if holding != holder:
                holder = holding
                since = time.monotonic()
            if time.monotonic() - since > max(_START if shares else _GRACE, patience):
                raise held
            pause(_PAUSE)

    def _holder(self) -> tuple[int, bool]:
        """Who holds ``LOCK``, 0 if nobody does; and whether that process shares the store, or may
        be about to."""
        try:
            with LocalEnv().open_directory(self.path) as directory:
                assert isinstance(directory, LocalDirectory)
                holder = directory.lock_holder(LOCK)
                if holder is None:
                    return 0, True
                file = directory.shared_file(SHARED, False)
                try:
                    head = file.read_head()
                finally:
                    file.close()
                return holder, head is not None and head.pid == holder
        except FileNotFoundError:
            return -1, False
        except OSError as error:
            raise_typed(error)

    def _own(self) -> OpenStore:
        """Open the store as its owner; :class:`LockedError` if another process has it."""
        arguments = self._arguments.copy()
        arguments["lock_timeout"] = 0.0
        opened = open_store(self.path, arguments, self._share)
        publishing = opened.sharing
        assert isinstance(publishing, Publishing)
        try:
            writer = opened.writer
            assert writer is not None
            listener = Listener(opened.store, writer, publishing, self._names, self._run_method)
            listener.start()
        except BaseException:
            self._close_parts(opened)
            raise
        publishing.file.announce(publishing.head, opened.store.versions.last_sequence)
        opened.reader = SharedReader(
            opened.store, opened.background, publishing.page.words, _wait_for_commit
        )
        self._owning = _Owning(publishing, listener)
        self._member = None
        return opened

    def _share(self, directory: Directory) -> Sharing:
        """Begin an epoch; the store's lock is held, and nothing has been changed."""
        assert isinstance(directory, LocalDirectory)
        file = directory.shared_file(SHARED, True)
        try:
            before = file.read_head()
            if before is not None:
                self._supersede(file, before.epoch, before.token)
            head = file.begin_epoch()
            return Publishing(directory, file, head)
        except BaseException:
            file.close()
            raise

    def _supersede(self, file: SharedFile, epoch: int, token: int) -> None:
        """Let the members of the last epoch know that it is over, before anything changes.

        A member's page is found by what the owner has noted of its members.  If none can be found,
        members that still lease a version of that epoch are waited for: they read what nobody can
        update.  Members of earlier epochs know already.
        """
        ours = self._member
        page = None if ours is None or ours.page.words[2] != token else ours.page
        if page is not None:
            page.supersede()
            return
        started = time.monotonic()
        while True:
            for pid, fd in file.members():
                found = find_page(pid, fd, token)
                if found is not None:
                    try:
                        found.supersede()
                    finally:
                        found.close()
                    return
            if not file.is_leased_in_epoch(epoch):
                return
            if time.monotonic() - started > _START:
                raise LockedError(self.path)
            pause(_PAUSE)

    def _join(self) -> OpenStore | None:
        """Join the owner; None if there is none, or none that answers."""
        options = make_options(**self._arguments)
        try:
            directory = open_database_directory(LocalEnv(), self.path, False)
        except NotFoundError:
            return None
        try:
            assert isinstance(directory, LocalDirectory)
            try:
                file = directory.shared_file(SHARED, False)
            except FileNotFoundError:
                directory.close()
                return None
            try:
                head = file.read_head()
                if head is None or not head.ready:
                    raise ConnectionRefusedError
                joined = Joined(file, head, self._names, self._patience)
            except BaseException:
                file.close()
                raise
            leases = self._leases
            if leases is None or leases.file.inode() != file.inode():
                leases = Leases(file)
            else:
                file.close()
            self._leases = leases
            return self._follow(directory, options, joined, leases)
        except (ConnectionError, EpochOver):
            directory.close()
            return None
        except OSError as error:
            directory.close()
            raise_typed(error)
        except BaseException:
            directory.close()
            raise

    def _follow(
        self, directory: LocalDirectory, options: Any, joined: Joined, leases: Leases
    ) -> OpenStore:
        options = options._replace(read_only=True)
        comparator = InternalKeyComparator(options.comparator)
        try:
            follower = MemberFollower(directory, options, comparator, joined.page, leases)
            store = follower.open()
            opened = OpenStore(LocalEnv(), directory, None, options)
            opened.start(store, None, None)
            opened.follower = follower
            opened.reader = SharedReader(store, None, joined.page.words, follower.catch_up)
        except BaseException:
            joined.close()
            raise
        self._owning = None
        self._member = _Member(joined, follower)
        return opened

    def _adopt(self, opened: OpenStore) -> None:
        super()._adopt(opened)
        member = self._member
        if member is not None:
            self._writer = MemberWriter(member.joined, self)
        self._pid = os.getpid()

    def _abandon(self, store: Store) -> None:
        """In a forked child: close what belongs to the parent, at once; join at the next use."""
        if self._opened.released:
            return
        owning, member = self._owning, self._member
        if owning is not None:
            owning.listener.close_in_child()
        if member is not None:
            member.joined.close_in_child()
            member.page.close()
        super()._abandon(store)
        if self._leases is not None:
            self._leases.file.close()
        self._owning = self._member = self._leases = None
        self._store = self._reader = self._writer = None
        self._join_lock = new_reentrant_lock()
        self._close_lock = ThreadLock()
        self._turns = Turns()
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

    def _open_reader(self) -> Reader:
        if self._forked:
            self._join_in_child()
        return super()._open_reader()

    def _rejoin(self, gone: _Member) -> None:
        """Join the next owner, or become it, unless another thread has."""
        with self._join_lock:
            if self._member is not gone:
                return
            store = self._store
            if store is None or store.view is None:
                raise ClosedError("the database is closed")
            gone.joined.close()
            opened = self._open_parts()
            gone.page.close()
            self._opened = opened
            self._adopt(opened)

    def _move_on(self, error: StaleViewError) -> None:
        if not isinstance(error, EpochOver):
            super()._move_on(error)
            return
        member = self._member
        if member is not None and member.page.superseded:
            self._rejoin(member)

    def _open_store(self) -> Store:
        if self._forked:
            self._join_in_child()
        while True:
            store = super()._open_store()
            member = self._member
            if member is None:
                return store
            try:
                member.follower.refresh(store)
            except EpochOver as error:
                self._move_on(error)
            except OSError as error:
                store.raise_failure(error)
            else:
                return store

    # What a member's writer asks for

    def resolve(self, joined: Joined, gone: OwnerGone, wait: bool) -> WritePath | None:
        """Find out what became of a request whose owner has gone; see :mod:`lsmkv.shared.writing`.

        Not for users.
        """
        member = self._member
        if member is not None and member.joined is joined:
            self._rejoin(member)
        writer = self._open_writer()
        if gone.left or gone.slot < 0 or gone.request == 0:
            return writer
        request, last = joined.page.noted(gone.slot)
        if request != gone.request:
            return writer
        recovered = self._recovered_after(joined.head.epoch)
        if recovered is None:
            raise Error("it is not known whether the write has happened: too many owners since")
        if recovered < last:
            return writer
        if wait:
            writer.sync()
        return None

    def _recovered_after(self, epoch: int) -> int | None:
        owning = self._owning
        if owning is not None:
            return owning.publishing.file.recovered_after(epoch)
        assert self._leases is not None
        return self._leases.file.recovered_after(epoch)

    def call(self, method: str, arguments: dict[str, object]) -> object:
        """Let the owner run a method of the store.  Not for users."""
        return self._call(method, arguments, None)

    def _call(self, method: str, arguments: dict[str, Any], progress: Progress | None) -> Any:
        """Run a method where the store is owned: here, or in the owner's process."""
        while True:
            member = self._member
            if member is None:
                told = arguments if progress is None else arguments | {"progress": progress}
                return getattr(self, method)(**told)
            call = {"method": method, "arguments": _as_json(arguments)}
            try:
                return result_in(member.joined.ask(partial(_call_frame, call), progress))
            except OwnerGone:
                self._rejoin(member)

    def _run_method(self, name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        """Run a method that a member asks for."""
        if name not in _CALLS:
            raise ValueError(f"no member may call {name!r}")
        told = _from_json(arguments)
        if name in _WITH_PROGRESS:
            told["progress"] = tell
        return getattr(self, name)(**told)

    # Methods that run at the owner

    def compact_range(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        if self._is_member():
            begin = None if start is None else as_bytes(start, "start key")
            end = None if stop is None else as_bytes(stop, "stop key")
            self._call("compact_range", {"start": begin, "stop": end}, progress)
        else:
            super().compact_range(start, stop, progress=progress)

    def rewrite_tables(self, *, progress: Progress | None = None) -> None:
        if self._is_member():
            self._call("rewrite_tables", {}, progress)
        else:
            super().rewrite_tables(progress=progress)

    def checkpoint(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        if self._is_member():
            self._call("checkpoint", {"path": os.path.abspath(os.fsdecode(path))}, progress)
        else:
            super().checkpoint(path, progress=progress)

    def ingest(
        self, files: Iterable[str | os.PathLike[str]], *, progress: Progress | None = None
    ) -> None:
        if self._is_member():
            paths = [os.path.abspath(os.fsdecode(path)) for path in files]
            self._call("ingest", {"files": paths}, progress)
        else:
            super().ingest(files, progress=progress)

    def acknowledge_recovery(self) -> list[str]:
        if self._is_member():
            names: list[str] = self._call("acknowledge_recovery", {}, None)
            return names
        return super().acknowledge_recovery()

    def _is_member(self) -> bool:
        self._open_store()
        return self._member is not None

    # Transactions

    def transaction(
        self, *, isolation: Isolation = "serializable", sync: bool = False
    ) -> Transaction:
        if not self._is_member():
            return super().transaction(isolation=isolation, sync=sync)
        serializable = isolation == "serializable"
        if not serializable:
            refuse_unknown(isolation)
        while True:
            member = self._member
            if member is None:
                return super().transaction(isolation=isolation, sync=sync)
            try:
                number = number_in(member.joined.ask(plain(BEGIN, member.joined.ended())))
                break
            except OwnerGone:
                self._rejoin(member)
        registered = _Registered(member.joined, number)
        reader = self._open_reader()
        try:
            read = reader.snapshot_view()
        except StaleViewError as error:
            read = self._again(error, "snapshot_view")
        snapshot = _MemberSnapshot(self._open_reader(), read, self)
        snapshot.registered = registered
        commit = _MemberCommit(self, registered)
        return Transaction(
            snapshot, snapshot.sequence, commit, sync, self.options.comparator, serializable
        )

    # Copying and pickling: another handle joins

    def __copy__(self) -> DB:
        reopen, arguments = self.__reduce__()
        return reopen(*arguments)

    def __reduce__(self) -> tuple[Callable[..., DB], tuple[str, dict[str, Any]]]:
        """A shared store is pickled as its path and options; unpickling it joins the store."""
        arguments: dict[str, Any] = dict(self._arguments)
        for name in ("block_cache", "trace"):  # which belong to one process
            arguments.pop(name, None)
        arguments |= {"may_own": self._may_own, "patience": self._patience}
        return _reopen, (os.path.abspath(self.path), arguments)

    # Changes

    def _wait_for_write(self, store: Store, sequence: int, seconds: float) -> None:
        member = self._member
        if member is None:
            super()._wait_for_write(store, sequence, seconds)
            return
        try:
            wanted = NUMBERS.pack(sequence, int(1000 * seconds) + 1)
            number_in(member.joined.ask(plain(WAIT, wanted)))
        except OwnerGone:
            self._rejoin(member)

    # Closing

    def _close(self) -> None:
        owning = self._owning
        if owning is not None and os.getpid() == self._pid and not self._left:
            self._left = True
            owning.listener.stop()
            owning.publishing.leave()
        super()._close()
        member = self._member
        if member is not None:
            member.joined.close()
            member.page.close()
        if self._leases is not None:
            self._leases.file.close()

    def _close_parts(self, opened: OpenStore) -> None:
        if opened.background is not None:
            opened.background.stop()
        if opened.writer is not None:
            opened.writer.close()
        opened.store.view = None
        opened.store.versions.close()
        opened.store.info_log.close()
        opened.release()


@mypyc_attr(native_class=False)
class _Registered:
    """A transaction that the owner knows, and what its snapshot needs until it is over."""

    def __init__(self, joined: Joined, number: int) -> None:
        self.joined = joined
        self._number = number

    def take(self) -> int:
        """The number, once: whoever has it ends the transaction; 0 after that."""
        number, self._number = self._number, 0
        return number

    def end(self) -> None:
        """Tell the owner that the transaction is over."""
        number = self.take()
        if number > 0:
            try:
                self.joined.tell(END, NUMBER.pack(number))
            except OwnerGone:
                pass  # it ended with the connection

    def __del__(self) -> None:
        # A finalizer may run anywhere: the owner learns of it with the next transaction.
        number = self.take()
        if number > 0:
            self.joined.over.append(number)


@mypyc_attr(native_class=False)
class _MemberSnapshot(Snapshot):
    """The snapshot of a member's transaction."""

    registered: _Registered | None = None

    def close(self) -> None:
        super().close()
        registered, self.registered = self.registered, None
        if registered is not None:
            registered.end()


@mypyc_attr(native_class=False)
class _MemberCommit:
    """Commits a member's transaction, at the owner that it began under."""

    def __init__(self, db: SharedDB, registered: _Registered) -> None:
        self._db = db
        self._registered = registered

    def __call__(
        self,
        batch: WriteBatch,
        sequence: int,
        tables: frozenset[int],
        keys: set[bytes],
        ranges: list[Bounds],
        sync: bool,
    ) -> None:
        writer = MemberWriter(self._registered.joined, self._db)
        number = self._registered.take()
        operations = list(batch.operations)
        if not writer.commit(number, operations, sequence, keys, ranges, sync):
            raise ConflictError("the owner of the store has gone since the transaction began")


_CALLS = frozenset(
    (
        *("sync", "flush", "compact_range", "rewrite_tables", "checkpoint", "ingest"),
        "acknowledge_recovery",
    )
)
_WITH_PROGRESS = frozenset(("compact_range", "rewrite_tables", "checkpoint", "ingest"))


def _reopen(path: str, arguments: dict[str, Any]) -> DB:
    return SharedDB(path, **arguments)


def _wait_for_commit(store: Store) -> None:
    """In the owner: wait for the memtable, which is about to get what the page says."""
    if not store.lock.must_not_wait:
        with store.lock.afterwards, store.lock.guard:
            store.lock.claim()


def _names_of(arguments: OptionArguments) -> dict[str, str]:
    """What all processes of a shared store agree on, by name."""
    options = make_options(**arguments)
    policy = options.filter_policy
    prefixes = options.prefix_extractor
    return {
        "comparator": options.comparator.name,
        "filter policy": "none" if policy is None else policy.name,
        "prefix extractor": "none" if prefixes is None else prefixes.name,
    }


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
