"""Damage policy: what an opening does about each kind of damage.  It is decided here alone.

A row is a kind of damage, by the name of its :class:`Damage`; a column is a way to open the store.
``paranoid_checks`` replaces the other two where it has an entry.

================  =================================================  =========  ==========  ========
damage            what is found                                      writing    read_only   paranoid
================  =================================================  =========  ==========  ========
MANIFEST_MISSING  CURRENT names a MANIFEST that is missing           refuse     refuse      -
MANIFEST_TORN     its last record is bad, and all tables are whole   warn       warn        -
MANIFEST_CUT      its last record is bad, and a table is not whole   refuse     refuse      -
TOO_DEEP          it has files on levels that lsmkv does not write   refuse     accept      -
TABLE_MISSING     a table of the version is missing                  accept     refuse      -
LOG_MISSING       the oldest log is missing, and a newer one exists  refuse     refuse      -
NO_LOG            the oldest log is missing, and none is newer       warn       warn*       -
TORN_RECORD       a bad record, and the sequence goes on after it    warn       warn        -
GAP               the sequence does not go on: writes are missing    set aside  leave out*  refuse
SWAPPED_LOGS      a log begins with a sequence of an older log       refuse     refuse      -
OUT_OF_RANGE      a batch has a sequence beyond the largest          refuse     refuse      -
TORN_END          the newest log ends in a torn record               warn       note        -
DAMAGED_END       the newest log ends in another bad record          set aside  leave out*  -
ZEROS_AT_END      the newest log ends in zeros that none reserved    warn       note        -
================  =================================================  =========  ==========  ========

* *refuse*: raise :class:`~lsmkv.errors.CorruptionError` (``ForeignFormatError`` for ``TOO_DEEP``),
  and change nothing;
* *warn*: go on, with a warning in ``LOG``;
* *note*: go on, with a message in ``LOG``: it may be a write that a live writer has not finished;
* *set aside*: keep the writes before it, copy this log and the later ones to ``lost/``, and give a
  :class:`~lsmkv.errors.RecoveryWarning`;
* *leave out*: the same, but nothing is copied;
* *accept*: go on.  A read that needs the missing table raises.
* an asterisk: a writer may be at work, so everything is read again first (:class:`ReadAgain`).
  What is refused is read twice as well (``Follower``).

What is not in the table is refused in each column, by the function that reads it: a missing or
malformed CURRENT, a bad MANIFEST record that others follow, numbers out of range, tables that
overlap.  An unreadable record in ``lost/`` is replaced when the next log is set aside.  A refresh
judges nothing: where ``StoreTail`` meets anything but whole records that go on, everything is read
again.  The reasons are in ``docs/reference/format.md``, "How a store is opened".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from lsmkv.engine.db.tree.info_log import INFO, InfoLog
from lsmkv.engine.errors import CorruptionError

REFUSE: Final = "refuse"
WARN: Final = "warn"
NOTE: Final = "note"
SET_ASIDE: Final = "set aside"
LEAVE_OUT: Final = "leave out"
ACCEPT: Final = "accept"


class Damage(NamedTuple):
    """A row of the table: what is done about one kind of damage."""

    writing: str
    read_only: str
    paranoid: str = ""
    """Done in place of both, with ``paranoid_checks``; "" if that makes no difference."""
    read_again: bool = False
    """True if ``read_only`` reads everything again before it does that."""


MANIFEST_MISSING = Damage(REFUSE, REFUSE)
MANIFEST_TORN = Damage(WARN, WARN)
MANIFEST_CUT = Damage(REFUSE, REFUSE)
TOO_DEEP = Damage(REFUSE, ACCEPT)
TABLE_MISSING = Damage(ACCEPT, REFUSE)
LOG_MISSING = Damage(REFUSE, REFUSE)
NO_LOG = Damage(WARN, WARN, read_again=True)
TORN_RECORD = Damage(WARN, WARN)
GAP = Damage(SET_ASIDE, LEAVE_OUT, paranoid=REFUSE, read_again=True)
SWAPPED_LOGS = Damage(REFUSE, REFUSE)
OUT_OF_RANGE = Damage(REFUSE, REFUSE)
TORN_END = Damage(WARN, NOTE)
DAMAGED_END = Damage(SET_ASIDE, LEAVE_OUT, read_again=True)
ZEROS_AT_END = Damage(WARN, NOTE)


class ReadAgain(Exception):
    """The files may have been read during a write: everything must be read again."""


class DamagePolicy:
    """The column of the table for one opening."""

    def __init__(self, path: str, info_log: InfoLog, read_only: bool, paranoid: bool) -> None:
        """``path`` is the store's directory."""
        self._path = path
        self._info_log = info_log
        self._read_only = read_only
        self._paranoid = paranoid
        self.seen_before = False
        """True if the last reading has raised :class:`ReadAgain`, and nothing has changed since."""

    def action(self, damage: Damage) -> str:
        """Return the action that the table states."""
        if self._paranoid and damage.paranoid:
            return damage.paranoid
        return damage.read_only if self._read_only else damage.writing

    def meet(self, damage: Damage, reason: str, name: str = "", offset: int | None = None) -> str:
        """Do what the table says, and return it.  ``set aside`` and ``leave out`` are left to the
        caller.

        ``reason`` is the message.  An error has the path of the file ``name``, and ``offset``.
        """
        action = self.action(damage)
        if action == REFUSE:
            path = f"{self._path}/{name}" if name else self._path
            raise CorruptionError(reason, path, offset) from None
        if damage.read_again and self._read_only and not self.seen_before:
            raise ReadAgain(reason)
        if action == WARN:
            self._info_log.warn(reason)
        elif action == NOTE:
            self._info_log.write(reason, INFO)
        return action
