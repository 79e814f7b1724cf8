"""Membership of a handle in a shared store: :class:`SharedHandle`.

It joins, as owner or as member, and once more when its owner has gone, or in a forked child; it
lets the owner run what only an owner can; and it leaves.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.admin.ingest import as_paths
from lsmkv.engine.db.db import DB
from lsmkv.engine.db.handles.transaction_turns import Turns
from lsmkv.engine.db.opening.open import OpenStore
from lsmkv.engine.db.read.reader import Reader
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.write.write_path import WritePath
from lsmkv.engine.errors import (
    ClosedError,
    Error,
    NestedCallError,
    OutcomeUnknownError,
    StaleViewError,
    raise_typed,
)
from lsmkv.engine.util.call_site import CallSite
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import ThreadLock, new_reentrant_lock, pause
from lsmkv.shared.connection import OwnerGone, result_in
from lsmkv.shared.following import EpochOver
from lsmkv.shared.frames import CALL, json_frame
from lsmkv.shared.given_options import GivenOptions
from lsmkv.shared.handover import HANDOVER, STATUS, LastCalls
from lsmkv.shared.joined import Joined
from lsmkv.shared.joining import Entrance, Member, Owning
from lsmkv.shared.turns import HandleTurns
from lsmkv.shared.writing import (
    DeniedWriter,
    Fate,
    MemberWriter,
    denied,
    fate_of,
    fate_without_owner,
)

_WITH_PROGRESS = frozenset(("compact_range", "rewrite_tables"))
_READS = frozenset(("leases",))
"""Calls that a process may make that may not write."""
_ONCE = frozenset(("ingest", "acknowledge_recovery", "delete_range"))
"""Calls that must not be repeated."""
_PAUSE = 0.01
"""Seconds between two checks whether the store is closed."""
_CALLS = _WITH_PROGRESS | {"sync", "flush", "acknowledge_recovery", "delete_range", "leases"}


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class SharedHandle(DB):
    """The part of :class:`~lsmkv.shared.shared_db.SharedDB` that no user calls.

    What opens it sets ``_entrance``, ``_join_lock`` and ``_real_path`` before anything else.
    """

    _real_path: str
    """The directory, under a name that all handles of this process have in common."""

    _entrance: Entrance
    """The way into the store, which one thread at a time takes."""
    _join_lock: Any
    """Held by the thread that joins, or closes."""
    _given: GivenOptions
    _site: CallSite
    """The call by which the user has opened the store, which its warnings show."""
    _part: Owning | Member | None = None
    _last_calls: LastCalls
    """Calls of members that a handover waits for."""
    _hands_over = False
    """True if it closes the store for a process that has asked for it."""
    _switches = True
    """True if other greenlets of the thread run while a call waits for the owner."""
    _joining = False
    """True if the holder of ``_join_lock`` is joining."""
    _forked = False
    """True if this is the copy of a handle in a forked child, which has not joined yet."""

    def _new_turns(self) -> Turns:
        return Turns(self._real_path, HandleTurns(weakref.ref(self)))

    # Joining

    def _open_parts(self) -> OpenStore:
        try:
            self._part = self._entrance.enter()
        except BaseException:
            self._entrance.close()  # the leases of one that it has nearly joined
            raise
        self._entrance.claim()
        return self._part.opened

    def _adopt(self, opened: OpenStore) -> None:
        super()._adopt(opened)
        self.options = opened.options  # another owner's, or its own from now on
        part = self._part
        self._last_calls = LastCalls()
        if isinstance(part, Member):
            part.joined.switches = self._switches
            writes = part.may_write
            self._writer = (
                MemberWriter(part.joined, self) if writes else DeniedWriter(opened.directory.path)
            )
        self._pid = os.getpid()

    def _rejoin(self, gone: Member | Owning) -> None:
        """Join the next owner, or become it, unless another thread has.

        ``gone`` is what this process had of the last owner, or had as the owner that has handed
        over.
        """
        if self._rejoined(gone):
            self._warn_of_options()

    def _rejoined(self, gone: Member | Owning) -> bool:
        """True if this call has done so."""
        with self._join_lock, deferred:
            self._finish_adoption()
            if self._part is not gone:
                return False
            if self._joining:  # by this thread, in the call that this one has interrupted
                raise NestedCallError(
                    "not possible here: a signal handler or finalizer has interrupted a call that"
                    " joins the next owner of the store"
                )
            store = self._store
            if store is None or store.view is None:
                raise ClosedError("the database is closed")
            self._joining = True
            before = gone if isinstance(gone, Member) else None
            try:
                if before is not None:
                    before.joined.close()
                self._part = self._entrance.enter(before)
                self._finish_adoption()
                if before is not None:
                    before.page.close()
                if self._entrance.cancelled:  # by a nested call, in the middle of this
                    self._close_part()
                    raise ClosedError("the database is closed")
            except OSError as error:
                raise_typed(error)
            finally:
                self._joining = False
        return True

    def _difference(self) -> str:
        """Return the warning about options that are not in force; "" if there are none."""
        text = self._given.difference(self.options)
        owner = self._part.joined.owner if isinstance(self._part, Member) else os.getpid()
        return text and f"{self.path}: process {owner} owns the store with other options: {text}"

    def _warn_of_options(self) -> None:
        """Warn of options that are not in force with a new owner, which a call has found.

        Where warnings are made errors it is logged: the call may have written, and goes on.
        """
        text = self._difference()
        if text:
            try:
                self._site.warn(text, RuntimeWarning)
            except Exception:
                self._opened.store.info_log.warn(text)

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
        if part is not None and part.page.superseded:
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
                try:
                    if part is not None and part.opened is self._opened:
                        part.wait_for_commit(store)
                except EpochOver as error:
                    self._move_on(error)
                    continue
                return store
            try:
                part.follower.refresh(part.opened.store)
            except EpochOver as error:
                self._move_on(error)
            except OSError as error:
                store.raise_failure(error)
            else:
                return part.opened.store

    # Forks

    def _abandon(self, store: Store) -> None:
        """In a forked child: close what belongs to the parent now; join at the next use."""
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
        self._turns = self._new_turns()
        self._last_calls = LastCalls()
        self._joining = self._close_asked = self._entrance.cancelled = False
        self._forked = True

    def _join_in_child(self) -> None:
        with self._join_lock, deferred:
            if self._forked:
                try:
                    self._opened = self._open_parts()
                except OSError as error:
                    raise_typed(error)
                self._adopt(self._opened)
                self._forked = False
        self._warn_of_options()

    @property
    def closed(self) -> bool:
        """True if the store was closed."""
        return not self._forked and super().closed

    # What a member's writer asks for

    def _resolve(self, joined: Joined, gone: OwnerGone, sync: bool) -> WritePath | None:
        part = self._part
        try:
            if isinstance(part, Member) and part.joined is joined:
                self._rejoin(part)
            writer = self._open_writer()
        except Error as error:
            if fate_without_owner(gone, joined.page) is Fate.NOT_WRITTEN:
                raise
            raise OutcomeUnknownError(
                f"{self.path}: the owner was lost before it answered, and none can be asked"
            ) from error
        recovered = None if gone.is_undone else self._recovered_after(joined)
        fate = fate_of(gone, joined.page, recovered)
        if fate is Fate.NOT_WRITTEN:
            return writer
        if fate is Fate.UNKNOWN:
            raise OutcomeUnknownError(
                f"{self.path}: the owner was lost before it answered: it is unknown whether the"
                " write has happened"
            )
        if sync:
            writer.sync()
        return None

    def _recovered_after(self, joined: Joined) -> int | None:
        """The last sequence that the owner after this one has recovered; None if that is unknown,
        and if there is no other owner yet."""
        part = self._part
        if part is None or part.epoch == joined.epoch:
            return None
        return self._entrance.recovered_after(joined.epoch, part)

    def _call_owner(
        self,
        method: str,
        arguments: dict[str, Any],
        progress: Progress | None = None,
        ends: list[bytes] | None = None,
    ) -> Any:
        """Run a method where the store is owned: here, or in the owner's process.

        ``ends`` show to the owner that this process can read the files that it names.
        """
        call: dict[str, Any] = {"method": method, "arguments": _as_json(arguments)}
        if ends is not None:
            call["ends"] = [end.hex() for end in ends]
        while True:
            if not self._is_member():
                given = arguments if progress is None else arguments | {"progress": progress}
                return getattr(self, method)(**given)
            part = self._part
            if not isinstance(part, Member):
                continue  # it owns the store by now
            if not part.may_write and method not in _READS:
                raise denied(part.opened.directory.path)
            try:
                made = partial(_call_frame, call)
                once = method in _ONCE
                return result_in(part.joined.ask(made, progress, may_take_long=True, writes=once))
            except OwnerGone as gone:
                if method in _ONCE and not gone.is_undone:
                    raise OutcomeUnknownError(
                        f"{self.path}: the owner was lost in the middle of {method}()"
                    ) from gone
                self._rejoin(part)

    def _run_method(self, name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        """Run a method that a member asks for.

        None has the owner write to a path, and it reads only files that the member can read.
        """
        if name == HANDOVER:
            return self._hand_over(arguments.get("wanted"))
        if name == STATUS:
            part = self._part
            return {"members": part.listener.members if isinstance(part, Owning) else []}
        if name == "ingest":
            return self._ingest_for_member(arguments, tell)
        if name not in _CALLS:
            raise ValueError(f"a member cannot call {name!r}")
        given = _from_json(arguments)
        if name in _WITH_PROGRESS:
            given["progress"] = tell
        return getattr(self, name)(**given)

    def _ingest_for_member(self, arguments: dict[str, Any], tell: Callable[..., None]) -> None:
        paths, ends = as_paths(arguments["files"]), arguments.get("ends")
        if not isinstance(ends, list) or len(ends) != len(paths):
            raise Error("a member of this release of lsmkv cannot have files ingested")
        shown = [bytes.fromhex(end) for end in ends]
        if not self._runs_once_here():
            # The next owner does it.  Its progress is not passed on: that may end this call.
            self._call_owner("ingest", {"files": paths}, None, shown)
            return
        try:
            self._ingest(paths, shown, tell)
        finally:
            self._last_calls.end()

    def _hand_over(self, wanted: object) -> bool:
        """Close the store for a process that asks for it.  False if this process stays the owner.

        ``wanted`` are the asker's options, for whose sake it asks; None if it asks in any case.
        """
        part = self._part
        if not isinstance(part, Owning) or wanted == part.listener.options:
            return False
        if not part.listener.only_owns and part.is_needed_here:
            return False
        calls = self._last_calls
        calls.wait()
        try:
            if part.listener.only_owns:
                self._hands_over = True
                part.publishing.hand_over()
                self.close()
                return True
            deferred.wait_for(self._join_lock)
            with self._join_lock, deferred:
                if self._part is part and not part.page.superseded and not self.closed:
                    if part.is_needed_here:  # since a moment ago
                        return False
                    self._retire(part)
            return True
        finally:
            if not part.retiring:
                calls.stay()

    def _retire(self, part: Owning) -> None:
        """Close the store for others, and keep what threads of this process read of it.

        Their next calls join the next owner.  Caller holds ``_join_lock``.
        """
        self._entrance.begin_handover(part)
        part.retiring = True
        part.listener.stop()
        part.publishing.hand_over()
        writer = part.opened.writer
        assert writer is not None
        writer.successor = partial(self._writer_after, part)
        part.opened.retire(partial(self._entrance.keep_reading, part))
        self._entrance.note_over(part.epoch)  # the next owner may not find this process's page

    def _writer_after(self, part: Owning) -> WritePath:
        """Return the writer now that this process has handed over; :class:`ClosedError` if it has
        closed the store."""
        while self._part is part and not part.page.superseded:
            if self.closed:
                raise ClosedError("the database is closed")
            pause(_PAUSE)  # until the last step of the handover
        self._rejoin(part)
        return self._open_writer()

    def _is_member(self) -> bool:
        self._open_store()
        return isinstance(self._part, Member)

    def _runs_once_here(self) -> bool:
        """Return True if this process runs a call that must not be repeated: it owns the store, and
        hands it over only after ``_last_calls.end()``.  Otherwise a member asks its owner."""
        while not self._is_member():
            part, calls = self._part, self._last_calls
            begun = calls.begin()
            if begun and self._part is part and isinstance(part, Owning):
                return True
            calls.end()
            if begun:
                continue  # another thread has just joined the next owner
            if self.closed:
                raise ClosedError("the database is closed")
            pause(_PAUSE)
        return False

    def _runs_here(self, method: Callable[[], None]) -> bool:
        """Run a method of the owner here, if this process is that, also if a handover has
        interrupted it and it owns the store again.  False at a member, which asks its owner."""
        while not self._is_member():
            part = self._part
            try:
                method()
                return True
            except ClosedError as error:
                self._after_handover(part, error)
        return False

    def _after_handover(self, part: Owning | Member | None, error: ClosedError) -> None:
        """Continue after a call that a handover has ended; raise the error if another reason has
        ended it."""
        if not isinstance(part, Owning) or not part.retiring:
            raise error
        self._writer_after(part)

    # Closing

    def close(self) -> None:
        """:meth:`DB.close`; a member takes the place of an owner."""
        if self._forked:  # a child that has not joined, and will not
            self._entrance.cancel()
            with self._join_lock:
                self._forked = False
        super().close()

    def _settle_at_exit(self) -> None:
        """Stop serving members: a thread that is frozen at the end may hold a lock."""
        part = self._part
        if isinstance(part, Owning) and os.getpid() == self._pid:
            part.listener.stop()
        super()._settle_at_exit()

    def _close(self) -> None:
        self._entrance.cancel()
        deferred.wait_for(self._join_lock)
        with self._join_lock:
            self._close_part()

    def _close_part(self) -> None:
        """Caller holds ``_join_lock``: no other thread joins an owner, or becomes one."""
        if self._store is not None:
            self._finish_adoption()
        part = self._part
        if isinstance(part, Owning) and os.getpid() == self._pid:
            part.listener.stop()
            if not self._hands_over:
                part.publishing.leave()
            self._entrance.close()  # of when it was a member
        super()._close()
        if isinstance(part, Member):
            part.joined.close()
            part.page.close()
        self._entrance.close()


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
