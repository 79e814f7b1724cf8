"""Handover of a shared store to a newer release, or to other options: its owner hands it over.

A process that joins learns the release of the owner.  If its own is newer, or the options differ
and it was opened with ``handover=True``, it claims the store by a lock in ``SHARED``
(:meth:`Succession.takes_over`) and asks the owner.  The owner finishes what must not be done twice,
closes the store, and answers (:class:`LastCalls`, ``SharedHandle._hand_over``).  The one that asked
then owns the store, or starts a process that does; all others let it, as long as its claim lasts,
and their calls wait for it (:meth:`Succession.waits`).  A kill of either ends its part immediately:
the kernel ends the claim, and releases ``LOCK``.

Only a newer release asks an older one, never the other way; for its options alone a process asks
once, when it opens the store.  So no two take turns.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

from lsmkv.engine.env.base import Env
from lsmkv.engine.errors import Error
from lsmkv.engine.format.filenames import SHARED
from lsmkv.engine.options import OptionArguments, make_options
from lsmkv.engine.options.whose import sent
from lsmkv.engine.util.threads import get_ident, pause
from lsmkv.shared.connection import OwnerGone, result_in
from lsmkv.shared.frames import CALL, json_frame
from lsmkv.shared.joined import Joined
from lsmkv.shared.system import release
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.shared_file import SharedFile

HANDOVER: Final = "handover"
"""The call by which an owner is asked to hand over.  Since revision 2."""
STATUS: Final = "owner_status"
"""The call by which an owner is asked for its members."""
HANDS_OVER: Final = 2
"""The revision from which on an owner can hand over."""
_CLAIM: Final = 10.0
"""Seconds for which others wait for a process that has claimed the store, and may be stopped."""
_MOMENT: Final = 0.5
"""Seconds for which a process lets members of a newer release own the store first."""
_PAUSE: Final = 0.01
_BITS: Final = 10


def rank_of(text: str) -> int:
    """A number that grows with the release; 0 if it has none."""
    rank = 0
    for part in (*text.split("."), "0", "0")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        rank = (rank << _BITS) + min(int(digits or "0"), (1 << _BITS) - 1)
    return rank


class Succession:
    """The choice of the next owner, as one handle sees it.  One thread at a time calls it."""

    def __init__(self, arguments: OptionArguments, handover: bool) -> None:
        """``handover``: it asks for its options' sake, once."""
        self._arguments = arguments
        self._for_options = handover
        self._rank = rank_of(release.RELEASE)
        self._asked = 0  # the epoch of the last owner that was asked
        self._claimed: SharedFile | None = None

    def takes_over(
        self, joined: Joined, file: SharedFile, starts_owner: bool, left: float = math.inf
    ) -> bool:
        """Ask the owner to hand the store over, if this process should own it, which it may; True
        if the owner has gone.

        ``file`` is what this process leases by.  It has the claim until :meth:`end`.  Caller defers
        signals.
        """
        file.be_candidate(self._rank)
        if joined.revision < HANDS_OVER or joined.epoch == self._asked:
            return False
        theirs = rank_of(joined.release)
        # A process that only owns gives way to another such process.
        is_newer = theirs < self._rank and (starts_owner or joined.owner_does_more)
        if not is_newer and (theirs > self._rank or not self._for_options):
            return False
        self._for_options = False
        self._asked = joined.epoch
        wanted = None if is_newer else sent(make_options(**self._arguments))
        self.end()
        file.claim(self._rank)
        self._claimed = file
        gone = ask_for_handover(joined, wanted, left)
        if not gone:
            self.end()
        return gone

    def waits(self, env: Env, path: str, since: float) -> bool:
        """Return True if others should own the store before this process, which has waited since
        that time."""
        waited = time.monotonic() - since
        if waited >= _CLAIM:
            return False
        try:
            with env.open_directory(path) as directory:
                file = place_of(directory).shared_file(SHARED, False)
                try:
                    newer = self._rank + 1
                    if file.is_claimed(self._rank if self._claimed is None else newer):
                        return True
                    return waited < _MOMENT and file.has_candidate(newer)
                finally:
                    file.close()
        except OSError:
            return False  # there is no such file, or this process cannot read it

    def end(self) -> None:
        """End the claim, since this process owns the store, or has joined."""
        file, self._claimed = self._claimed, None
        if file is not None:
            file.end_claim(self._rank)


def ask_for_handover(joined: Joined, wanted: dict[str, Any] | None, left: float = math.inf) -> bool:
    """Return True if the owner has gone: it has handed the store over, or was killed.

    ``wanted``: only if its options are others.  Caller defers signals.
    """
    call: dict[str, Any] = {"method": HANDOVER, "arguments": {"wanted": wanted}}
    try:
        answer = joined.ask_in_section(lambda request: json_frame(CALL, request, call), left)
        return result_in(answer) is True
    except OwnerGone:
        return True
    except Error:
        return False  # it cannot, or does not answer in time


class LastCalls:
    """Calls at the owner that must not be done twice: a handover lets them end.

    Any thread may call any method.
    """

    def __init__(self) -> None:
        self._threads: list[int] = []  # once for each call, one inside the other
        self._leaving = False

    def begin(self) -> bool:
        """Begin such a call in this thread; :meth:`end` follows.  Returns False if the owner is
        leaving: then the caller makes no call, except inside another one, which the handover waits
        for."""
        own = get_ident()
        nested = own in self._threads
        self._threads.append(own)
        return nested or not self._leaving

    def end(self) -> None:
        """End the call of this thread."""
        own = get_ident()
        if own in self._threads:
            self._threads.remove(own)

    def wait(self) -> None:
        """Begin no more of them, and wait for the end of those that run."""
        self._leaving = True
        while self._threads:
            pause(_PAUSE)

    def stay(self) -> None:
        """Allow such calls again: the owner stays."""
        self._leaving = False
