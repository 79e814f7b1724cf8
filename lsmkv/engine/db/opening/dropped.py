"""Report of what recovery left out of a damaged log: ``db.recovery``, and its warning.

``Recovery`` and ``ReadOnlyRecovery`` make the report; what is kept of the logs is in ``lost.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.errors import RecoveryWarning
from lsmkv.engine.util.call_site import call_site
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.text import count


@described
class DroppedLog(NamedTuple):
    """A log whose writes from some offset on are not in the store.

    Plain data, which raises nothing and costs nothing.

    >>> print(DroppedLog("000003.log", 28, "a bad checksum", 0, 0, None, None))
    000003.log: a bad checksum at 28, and writes are missing there, it is unknown how many
    """

    name: str
    """The log's file name, such as ``000003.log``."""
    offset: int
    """Offset of the damage; nothing was kept from this byte on."""
    reason: str
    """Description of the damage."""
    batches: int
    """Batches after the damage that are undamaged themselves: a repair can save them."""
    operations: int
    """Puts and deletes in these batches."""
    missing: int | None
    """The number of writes that the damage destroyed, from the sequences; None if nothing after it
    shows that."""
    kept_as: str | None
    """Path of the whole log, ``lost/000003.log``; None in a store that is only read."""

    def __str__(self) -> str:
        """One line of text."""
        text = f"{self.name}: {self.reason} at {self.offset}"
        if self.missing is None:
            text += ", and writes are missing there, it is unknown how many"
        elif self.missing > 0:
            text += f", and writes are missing there: {self.missing:,}"
        if self.batches > 0:
            writes, batches = count(self.operations, "write"), count(self.batches, "batch")
            text += f"; left out: {writes} in {batches} after the damage"
        if self.kept_as is not None:
            text += f"; the log is kept as {self.kept_as}"
        return text


@described
class RecoveryReport(NamedTuple):
    """Report of what opening a store left out of its logs: ``db.recovery``.  False if nothing.

    Plain data, which can be pickled: it raises nothing and costs nothing.

    A flipped bit in the log of a store that was killed:

    >>> import warnings
    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     for key in (b"a", b"b", b"c"):
    ...         db.put(key, b"value")
    ...     bool(db.recovery)
    False
    >>> with env.open_directory("store") as directory:
    ...     log = directory.read_file("000003.log", limit=1000)
    ...     directory.remove("000003.log")
    ...     with directory.create("000003.log") as file:
    ...         file.append(log[:40] + bytes([log[40] ^ 1]) + log[41:])  # in the second put
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", lsmkv.RecoveryWarning)
    ...     db = lsmkv.DB("store", env=env)
    >>> bool(db.recovery), list(db), db.recovery.batches, db.recovery.operations
    (True, [(b'a', b'value')], 1, 1)
    >>> (log,) = db.recovery.dropped
    >>> log.name, log.offset, log.missing, log.kept_as
    ('000003.log', 28, 1, 'lost/000003.log')
    >>> db.acknowledge_recovery()
    ['lost/000003.log']
    >>> db.close()
    """

    path: str
    """The store's directory."""
    dropped: tuple[DroppedLog, ...] = ()
    """The logs that were not replayed to their end, the damaged one first."""

    def __bool__(self) -> bool:
        """Return True if anything was left out."""
        return len(self.dropped) > 0

    @property
    def batches(self) -> int:
        """Undamaged batches that were left out."""
        return sum(log.batches for log in self.dropped)

    @property
    def operations(self) -> int:
        """Puts and deletes in these batches."""
        return sum(log.operations for log in self.dropped)

    def __str__(self) -> str:
        """One line for each log."""
        if not self.dropped:
            return f"{self.path}: nothing was left out"
        return "\n".join([f"{self.path}/{log}" for log in self.dropped])


def warn_of(report: RecoveryReport) -> None:
    """Give a :class:`RecoveryWarning`, in the name of the code that called lsmkv."""
    call_site().warn(str(report), RecoveryWarning)
