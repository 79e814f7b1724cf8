"""Entry of a process into a shared store: :class:`Entrance` makes it an owner or a member.

The process that gets ``LOCK`` is the owner.  It begins an epoch: it lets the members of the last
one know that theirs is over, before it changes anything, and recovers the store as any opening
does.  A member connects to the owner, gets the page, leases the newest version, and reads the
files.

:meth:`Entrance.enter` tries to join an owner, then to be one.  If neither works, it looks at
``LOCK``, waits a moment, and tries again:

==========  =======================================  ==============================================
state       found                                    what follows
==========  =======================================  ==============================================
(joined)    an owner answers                         :class:`Member`
(owned)     ``LOCK`` was free, and this process may  :class:`Owning`
            own the store
NOBODY      no process has the owner's part          an owner is started if this process does that;
                                                     after 30 s :class:`LockedError`; now
                                                     :class:`PermissionDeniedError` if this process
                                                     may not write, and none reads the store
SHARING     its holder shares the store, and does    it recovers the store, or closes it; after
            not answer                               30 s :class:`LockedError`
ELSEWHERE   its holder answers, in another network   :class:`LockedError` now
            namespace
UNKNOWN     its holder has all of it, as others      it may be an owner of revision 1 that has yet
            than owners have                         to say so; after 1 s :class:`LockedError`, but
                                                     after 30 s if this process was a member: only a
                                                     process that shares the store can have taken it
                                                     since
==========  =======================================  ==============================================

A wait begins again with another holder, and when the holder says that it shares the store.  If
there is a ``lock_timeout``, an opening waits exactly so long instead, in all that it waits for, an
owner that is stopped included.  A handle that is open already waits as long as ``lock_timeout`` if
that is longer.
"""

from __future__ import annotations

import errno
import math
import time
from functools import partial

from lsmkv.engine.db.handles.transaction_turns import SharedQueue
from lsmkv.engine.db.opening.directory import open_database_directory
from lsmkv.engine.db.opening.open import OpenStore, Share, open_store
from lsmkv.engine.db.tree.sharing import Sharing
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.env.base import Directory, FileLock
from lsmkv.engine.errors import (
    ClosedError,
    ComparatorMismatchError,
    Error,
    IOError,
    LockedError,
    NotFoundError,
    PermissionDeniedError,
    ReadOnlyError,
    raise_typed,
)
from lsmkv.engine.format.filenames import LOCK, SHARED
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.options import OptionArguments, Options, in_stored_order, make_options
from lsmkv.engine.options.whose import in_force, sent
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import pause
from lsmkv.shared.calls import RunMethod
from lsmkv.shared.counting import Counting
from lsmkv.shared.following import CountedReader, EpochOver, Leases, MemberFollower, SharedReader
from lsmkv.shared.handover import Succession
from lsmkv.shared.joined import Joined
from lsmkv.shared.listener import Listener
from lsmkv.shared.lock_holder import LockState, Look, Wait, look_at_lock
from lsmkv.shared.publishing import Publishing, begin_publishing
from lsmkv.shared.starting import start_owner
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.shared_file import VERSIONS_OF_EPOCH, Head, SharedFile
from lsmkv.shared.system.shared_page import SEQUENCE, TOKEN, SharedPage
from lsmkv.shared.system.system import system_of
from lsmkv.shared.turns import MemberTurns

_PAUSE = 0.002
"""Seconds between two attempts to join, or to own."""
_LONGER_PAUSE = 0.05
"""Seconds between two attempts of a process that gives ``LOCK`` up each time: members want it."""
_START = 30.0
"""Seconds that a process which holds ``LOCK`` may take to recover the store before it answers."""
_GRACE = 1.0
"""Seconds from the lock on ``LOCK`` until its holder is expected to have said that it shares."""


class Owning:
    """The state of an owner."""

    def __init__(self, opened: OpenStore, publishing: Publishing, listener: Listener) -> None:
        self.opened = opened
        self.publishing = publishing
        self.page = publishing.page
        self.listener = listener
        self.retiring = False
        """True if the store is being handed over, or was."""
        self.epoch = publishing.head.epoch
        self.turns: SharedQueue = listener.turns

    @property
    def is_needed_here(self) -> bool:
        """True if threads of this process have objects that would not outlive a handover: their
        own named leases, and iterators over batches."""
        return self.listener.leases.has_own or self.opened.store.log_holds.oldest() is not None

    def wait_for_commit(self, store: Store) -> None:
        """Let the store show every write that has happened: members have been answered before.

        Raises :class:`EpochOver` once the store was handed over.
        """
        if self.page.words[SEQUENCE] != store.versions.last_sequence:
            _see_commits(self.page, store)


class Member:
    """The state of a member."""

    def __init__(
        self, opened: OpenStore, joined: Joined, follower: MemberFollower, may_write: bool
    ) -> None:
        self.may_write = may_write
        """True if this process may write to the directory."""
        self.opened = opened
        self.joined = joined
        self.follower = follower
        self.page = joined.page
        self.epoch = joined.epoch
        self.turns: SharedQueue = MemberTurns(joined, may_write)


class Entrance:
    """The way of one handle into one store.  One thread at a time calls it."""

    def __init__(
        self,
        path: str,
        arguments: OptionArguments,
        may_own: bool,
        starts_owner: bool,
        patience: float | None,
        run_method: RunMethod,
        only_owns: bool,
        handover: bool,
    ) -> None:
        """``starts_owner``: a separate process owns the store, and this one starts it if necessary;
        then ``may_own`` has no meaning.  ``only_owns``: this is such a process.  ``handover``: the
        owner is asked for the store if its options are others."""
        self._path = path
        self._system = system_of(arguments.get("env"))
        self._arguments = arguments.copy()
        self._may_own = may_own and not starts_owner
        self._starts_owner = starts_owner
        self._patience = patience
        self._run_method = run_method
        self._only_owns = only_owns
        self._succession = Succession(self._arguments, handover)
        self._names = names_of(make_options(**arguments))
        if arguments.get("comparator") is None:
            del self._names["comparator"]  # the store's own order decides
        self.counting = Counting(self._system)
        """Counters that the handle keeps for its owners."""
        self.cancelled = False
        """Set when the handle is closed."""
        self.python = ""
        """The path of the Python that an owner is started with; empty if it is to be found."""
        self._wants = False
        """True if this process may own the store, and so takes it over where it should."""
        self._joining: Joined | None = None
        self._lock: FileLock | None = None  # this member's part of LOCK
        self._unclaimed: Owning | None = None
        self._ended = -1  # the epoch whose page this process has ended
        self.leases: Leases | None = None
        """The versions that this process leases, in this epoch and in earlier ones."""

    def enter(self, before: Member | None = None) -> Owning | Member:
        """Join, or own, whatever comes first; ``before`` is what the handle was.  Caller defers
        signals.

        The module's table has the states.  Raises what opening raises.
        """
        try:
            return self._enter(before)
        finally:
            self._succession.end()

    def _enter(self, before: Member | None) -> Owning | Member:
        left, self._unclaimed = self._unclaimed, None
        if left is not None:
            return left  # of a call that was interrupted before it could have it
        if before is not None:
            self.counting.lost_owner()
        may_write = self._may_write()
        may_own = self._may_own and may_write
        starts_owner = self._starts_owner and may_write
        timeout = make_options(**self._arguments).lock_timeout
        for_owner = max(_START, timeout)
        if before is None:
            wait = Wait(for_owner, max(_GRACE, timeout), timeout or math.inf)
        else:
            wait = Wait(for_owner, for_owner)
        # A process that another one starts to own the store does not ask: its starter has.
        wants = self._wants = (may_own or starts_owner) and not self._only_owns
        since = time.monotonic()
        while True:
            if self.cancelled:
                raise ClosedError("the database is closed")
            member = self._join(wait.left)
            if member is not None:
                return member
            refusal: Error | None = None
            others_first = wants and self._succession.waits(self._system.env, self._path, since)
            if may_own and not others_first:
                try:
                    return self._own(before)
                except LockedError as error:
                    refusal = error
            look = look_at_lock(self._system.env, self._path)
            if look.state is LockState.ELSEWHERE:
                raise self._refusal(look, may_own)
            if look.state is LockState.NOBODY:
                if before is not None:
                    self._end_epoch(before)
                if starts_owner and not others_first:
                    self._start_owner(wait)
                elif before is None and not may_write and not self._is_read():
                    refusal = _may_not_own(self._path)
            if wait.is_over(look) or (timeout == 0.0 and isinstance(refusal, ReadOnlyError)):
                raise refusal or self._refusal(look, may_own)
            deferred.deliver()
            gave_up = isinstance(refusal, LockedError) and refusal.shared
            pause(_LONGER_PAUSE if gave_up else _PAUSE)

    def recovered_after(self, epoch: int, now: Owning | Member) -> int | None:
        """Return the last sequence that the owner after an epoch recovered; None if unknown."""
        if isinstance(now, Owning):
            return now.publishing.file.recovered_after(epoch)
        assert self.leases is not None
        return self.leases.file.recovered_after(epoch)

    def keep_reading(self, owning: Owning) -> None:
        """Lease what threads of this process still read, before the store is handed over.

        It is a version of the epoch before, which keeps all tables that a later owner finds, and
        does not count as one of this epoch: no process still reads by its page.
        """
        store = owning.opened.store
        assert self.leases is not None
        version = owning.epoch * VERSIONS_OF_EPOCH - 1
        self.leases.take(version)
        for numbers in store.versions.live():
            self.leases.keep(version, numbers)
        store.log_holds.move_to(self.leases.logs)  # of an iterator that was begun just now
        self.leases.forget_newest()

    def begin_handover(self, owning: Owning) -> None:
        """Have what :meth:`keep_reading` needs, and a member's part of ``LOCK``.  ``OSError``, and
        nothing has changed."""
        place = place_of(owning.opened.directory)
        if self.leases is None:
            self.leases = Leases(place.shared_file(SHARED, False))
        self._lock = place.lock_as_member(LOCK)

    def claim(self) -> None:
        """Note that the handle has the result of :meth:`enter`: the store exists from now on."""
        self._unclaimed = None
        self.counting.found_owner()
        self._arguments.pop("create_if_missing", None)
        self._arguments.pop("error_if_exists", None)

    def cancel(self) -> None:
        """End another thread's :meth:`enter`, which may be waiting for an owner that has stopped:
        the handle is closed."""
        self.cancelled = True
        joining = self._joining
        if joining is not None:
            joining.close()

    def close(self) -> None:
        """End the leases, and what this process has of ``LOCK``; in a forked child, also
        close the descriptors of the parent."""
        if self.leases is not None:
            self.leases.close()
            self.leases = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _may_write(self) -> bool:
        """True if this process may write to the directory; True also if there is none yet."""
        try:
            with self._system.env.open_directory(self._path) as directory:
                return place_of(directory).is_writable()
        except OSError:
            return True  # which opening reports

    def _is_read(self) -> bool:
        """Return True if another process reads the store, as all do that share it."""
        try:
            with self._system.env.open_directory(self._path) as directory:
                file = place_of(directory).shared_file(SHARED, False)
                try:
                    return file.is_leased_at_all()
                finally:
                    file.close()
        except OSError:
            return False

    def _refusal(self, look: Look, may_own: bool) -> LockedError:
        """The error of a process that has looked at ``LOCK`` for long enough."""
        pid = look.holder
        reason: str | None = None
        if look.state is LockState.NOBODY and not may_own:
            reason = "no process owns the shared store, and this one may not become its owner"
        elif look.state is LockState.SHARING:
            reason = f"process {pid}, which owns the shared store, has not answered"
        elif look.state is LockState.ELSEWHERE:
            reason = (
                f"process {pid} owns the shared store in another network namespace, for example in"
                " a container: only processes of one namespace can share it"
            )
        return LockedError(self._path, pid or None, False, reason)

    def _go_on(self, wait: Wait) -> None:
        """Raise if the handle is closed, or no time is left."""
        if self.cancelled:
            raise ClosedError("the database is closed")
        if wait.left == 0.0:
            reason = "the process that was started to own the store has not opened it in time"
            raise IOError(errno.ETIMEDOUT, reason, self._path)

    # Owning

    def _start_owner(self, wait: Wait) -> None:
        """Start a process that owns the store, unless another member is about to."""
        create = self._arguments.get("create_if_missing", False)
        try:
            with open_database_directory(self._system.env, self._path, create) as directory:
                place = place_of(directory)
                if not place.claim_start():
                    return
                try:
                    if directory.lock_holder(LOCK) is not None:
                        return
                    if start_owner(
                        *(self._path, self._arguments, self.python, lambda: self._go_on(wait))
                    ):
                        self._arguments.pop("error_if_exists", None)  # it did not
                except LockedError:
                    pass  # another process was faster, as the next look will show
                finally:
                    place.end_start()
        except OSError as error:
            raise_typed(error)

    def _own(self, before: Member | None) -> Owning:
        """Open the store as its owner; :class:`LockedError` if another process has it."""
        arguments = self._arguments.copy()
        arguments["lock_timeout"] = 0.0
        opened = open_store(
            *(self._path, arguments),
            Share(_lock_as_owner, lambda directory: self._begin_epoch(directory, before)),
        )
        listener: Listener | None = None
        try:
            publishing = opened.sharing
            writer = opened.writer
            assert isinstance(publishing, Publishing)
            assert writer is not None
            names = names_of(opened.options)
            publishing.counts.wanted = opened.options.publish_stats
            listener = Listener(
                *(self._system, opened.store, writer, publishing, names),
                *(sent(opened.options), self._run_method, self._only_owns),
            )
            listener.start()
            page = publishing.page
            opened.reader = SharedReader(
                opened.store, opened.background, page.words, partial(_see_commits, page)
            )
            if self.leases is not None:
                self.leases.forget_newest()
                publishing.release_unread = self.leases.release_unread
            publishing.counts.own = self.counting
            self.counting.stop()
            publishing.file.announce(publishing.head, opened.store.versions.last_sequence)
            owning = Owning(opened, publishing, listener)
            if self._lock is not None:  # an owner's part is more
                self._lock.close()
                self._lock = None
            self._unclaimed = owning
        except BaseException:
            with deferred.undisturbed():
                if listener is not None:
                    listener.stop()
                opened.close()
            raise
        return owning

    def _begin_epoch(self, directory: Directory, before: Member | None) -> Sharing:
        """Begin an epoch; the store's lock is held, and nothing has been changed."""
        file = place_of(directory).shared_file(SHARED, True)
        try:
            last = file.read_head()
            if last is not None:
                if before is not None and before.page.words[TOKEN] == last.token:
                    before.page.supersede()
                else:
                    self._supersede(file, last.epoch, last.token)
                self._system.sockets.forget(last.token, last.epoch)
            return begin_publishing(self._system, directory, file)
        except BaseException:
            file.close()
            raise

    def _supersede(self, file: SharedFile, epoch: int, token: int) -> None:
        """Let the members of the last epoch know that it is over.

        Their page is found by its name, or by what the owner has noted of its members.  If it
        cannot be found, as by a process of another pid namespace, no member may still lease a
        version of that epoch: its view cannot be updated.  It has the page, and owns the store
        when it next needs an owner.  Members of earlier epochs know already.
        """
        if self._system.pages.end_page(file.members(), token) or file.is_over(epoch):
            return
        if file.is_leased_in_epoch(epoch):
            reason = (
                "processes that this one cannot see, in another pid namespace, read the shared"
                " store, and none of them has taken the place of its last owner"
            )
            raise LockedError(self._path, None, True, reason)

    def _end_epoch(self, before: Member) -> None:
        """Let all members know that their owner has gone, and the next owner that they know.

        It may be unable to find their page: it sees no member in another pid namespace, nor one
        that has changed its user, as the workers of a server do that root starts.
        """
        if self._ended == before.epoch or self.leases is None:
            return
        if not before.page.superseded:
            try:
                before.page.supersede()
            except PermissionError:
                return  # its name is gone (macOS): another process has just ended it
        self.note_over(before.epoch)

    def note_over(self, epoch: int) -> None:
        """Let the next owner know that the page of an epoch is ended."""
        assert self.leases is not None
        self._ended = epoch
        self.leases.file.note_over(epoch)

    # Joining

    def _join(self, left: float) -> Member | None:
        """Join the owner, within so many seconds; None if there is none, if it does not answer, or
        has just handed over."""
        try:
            directory = open_database_directory(self._system.env, self._path, False)
        except NotFoundError:
            return None
        try:
            joined = self._connect(directory, left)
            try:
                if self._wants:
                    self._take_over(joined, left)
                return self._follow(directory, joined)
            except BaseException:
                joined.close()
                joined.page.close()
                raise
        except BaseException as error:
            directory.close()
            if isinstance(error, ConnectionError | EpochOver):
                return None
            if isinstance(error, OSError):
                raise_typed(error)
            raise

    def _connect(self, directory: Directory, left: float) -> Joined:
        """Connect to the owner; ``ConnectionError`` if there is none that answers."""
        try:
            file = place_of(directory).shared_file(SHARED, False)
        except FileNotFoundError:
            raise ConnectionRefusedError from None
        try:
            head = file.read_head()
            if head is None or not head.ready or head.is_elsewhere:
                raise ConnectionRefusedError
            if _has_gone(directory, file, head):
                raise ConnectionRefusedError
            self.counting.stop()
            joined = self._joining = Joined(
                self._system, file, head, self._names, self._patience, self.counting
            )
            joined.is_over = partial(_has_gone, directory, file, head)
            if self.cancelled:
                raise ClosedError("the database is closed")
            joined.join(file, lambda: self._hold_lock(directory), left)
        except BaseException:
            file.close()
            raise
        finally:
            self._joining = None
        if self.leases is not None and self.leases.file.inode() == file.inode():
            file.close()
            if self._ended >= 0:
                self.leases.file.forget_over(self._ended)
        else:
            if self.leases is not None:
                self.leases.close()
            self.leases = Leases(file)
        return joined

    def _hold_lock(self, directory: Directory) -> None:
        """Hold a member's part of ``LOCK``, which may be another file than it was."""
        lock = place_of(directory).lock_as_member(LOCK)
        if lock is None:  # its owner has gone, and a process that does not share the store has it
            raise ConnectionResetError(errno.ECONNRESET, "the owner has gone")
        before, self._lock = self._lock, lock
        if before is not None:
            before.close()

    def _take_over(self, joined: Joined, left: float) -> None:
        """Let the owner hand over, if this process is to own the store: ``ConnectionError``."""
        assert self.leases is not None
        self._joining = joined
        try:
            if self._succession.takes_over(joined, self.leases.file, self._starts_owner, left):
                if joined.page.superseded:
                    self.note_over(joined.epoch)  # the next owner may not find the page
                raise ConnectionResetError
        finally:
            self._joining = None

    def _follow(self, directory: Directory, joined: Joined) -> Member:
        if self._arguments.get("error_if_exists"):
            raise Error(f"{self._path}: the database exists, and error_if_exists is true")
        options = make_options(**self._arguments)
        try:
            follower, store = self._open_view(directory, options, joined)
        except ComparatorMismatchError as error:
            options = in_stored_order(self._arguments, error)
            follower, store = self._open_view(directory, options, joined)
        opened = OpenStore(self._system.env, directory, None, in_force(options, joined.options))
        opened.start(store, None, None)
        opened.follower = follower
        words = joined.page.words
        if self.counting.is_read:
            self.counting.follow(store.counters)
            opened.reader = CountedReader(store, words, follower.catch_up, self.counting)
        else:
            opened.reader = SharedReader(store, None, words, follower.catch_up)
        return Member(opened, joined, follower, place_of(directory).is_writable())

    def _open_view(
        self, directory: Directory, options: Options, joined: Joined
    ) -> tuple[MemberFollower, Store]:
        assert self.leases is not None
        comparator = InternalKeyComparator(options.comparator)
        reading = options._replace(read_only=True)
        follower = MemberFollower(directory, reading, comparator, joined.page, self.leases)
        return follower, follower.open()


def names_of(options: Options) -> dict[str, str]:
    """Return the names on which all processes of a shared store must agree, by option."""
    policy = options.filter_policy
    prefixes = options.prefix_extractor
    return {
        "comparator": options.comparator.name,
        "filter policy": "none" if policy is None else policy.name,
        "prefix extractor": "none" if prefixes is None else prefixes.name,
    }


def _lock_as_owner(directory: Directory) -> FileLock:
    return place_of(directory).lock_as_owner(LOCK)


def _may_not_own(path: str) -> PermissionDeniedError:
    """The error of an opening by a process that may only read, where no other shares the store."""
    reason = (
        "no process owns the shared store, and this one may not write to its directory:"
        " lsmkv.DB(read_only=True) can read it"
    )
    return PermissionDeniedError(errno.EACCES, reason, path)


def _has_gone(directory: Directory, file: SharedFile, head: Head) -> bool:
    """True if the owner of an epoch has ended: another process may have the name of its socket."""
    if directory.lock_holder(LOCK) is None:
        return True
    newest = file.read_head()
    return newest is None or newest.token != head.token


def _see_commits(page: SharedPage, store: Store) -> None:
    """In the owner: wait for the memtable, which is about to get what the page says.

    A nested call does not: the interrupted one may be about to put it there.  Raises
    :class:`EpochOver` if this process no longer owns the store.
    """
    if page.superseded:
        raise EpochOver(store.directory.path)
    if not store.lock.must_not_wait:
        with store.lock.nested, store.lock.guard:
            pass
