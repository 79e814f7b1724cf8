"""Report of what processes keep of a shared store: :func:`report`, at the owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lsmkv.engine.db.compact.obsolete import PendingOutputs
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.engine.leased_name import LeasedName
from lsmkv.engine.util.introspection import described
from lsmkv.shared.publishing import Publishing
from lsmkv.shared.system.shared_file import in_ranges


@described
class Lease(NamedTuple):
    """The versions and logs that one process keeps of a shared store:
    :meth:`lsmkv.SharedDB.leases`.  Plain data.

    >>> Lease(pid=4711, versions=(4294967298,), log=None, bytes=0).bytes
    0
    """

    pid: int | None
    """The process id; None for those that no longer are members."""
    versions: tuple[int, ...]
    """The versions that it reads, by their numbers: most often the newest one alone."""
    log: int | None
    """The oldest log that one of its iterators over batches needs; None if there is none."""
    bytes: int
    """Bytes of the files that it keeps, and that the store no longer needs."""


@described
class LeaseReport(NamedTuple):
    """All leases of a shared store: :meth:`lsmkv.SharedDB.leases`.  Plain data.

    >>> report = LeaseReport(2048, (Lease(4711, (4294967298,), None, 2048),))
    >>> max(report.leases, key=lambda lease: lease.bytes).pid
    4711
    """

    bytes: int
    """Bytes of the files that nothing but leases keeps, each file once."""
    leases: tuple[Lease, ...]
    """One for each process, in the order of their ids."""
    names: tuple[LeasedName, ...] = ()
    """Leases with names, as locks and ``memoize(lock=True)`` of a cache take them; those that are
    waited for come first.  () if the owner is of an older release."""


def report(
    store: Store, publishing: Publishing, pending: PendingOutputs, pids: Iterable[int]
) -> LeaseReport:
    """Report what members, and other processes, keep; ``pids`` are those that may be named."""
    tables, logs = _obsolete_files(store, pending)
    file = publishing.file
    unknown = file.leased()
    found: list[Lease] = []
    kept: set[int] = set()

    for pid in [*sorted(pids), None]:
        ranges = unknown if pid is None else file.held_by(pid)
        if pid is not None:
            unknown = [one for one in unknown if not in_ranges(one, ranges)]
        if not ranges:
            continue
        versions, log = file.leases_in(ranges)
        mine = {number for number in tables if publishing.is_kept_by(number, versions)}
        if log is not None:
            mine |= {number for number in logs if number >= log}
        kept |= mine
        size = sum(tables.get(number, 0) + logs.get(number, 0) for number in mine)
        found.append(Lease(pid, tuple(versions), log, size))
    total = sum(tables.get(number, 0) + logs.get(number, 0) for number in kept)
    return LeaseReport(total, tuple(found), tuple(publishing.leased_names()))


def decoded(plain: Any) -> LeaseReport:
    """A report that was sent as JSON."""
    total, leases, *rest = plain
    return LeaseReport(
        total,
        tuple(Lease(pid, tuple(versions), log, size) for pid, versions, log, size in leases),
        tuple(
            LeasedName(name, tuple(holders), tuple(waiters))
            for names in rest[:1]
            for name, holders, waiters in names
        ),
    )


def _obsolete_files(store: Store, pending: PendingOutputs) -> tuple[dict[int, int], dict[int, int]]:
    """The sizes of tables and of logs, by number, that neither the store nor recovery needs."""
    live = store.versions.live_numbers()
    tables: dict[int, int] = {}
    logs: dict[int, int] = {}
    for name in store.directory.names():
        parsed = parse_filename(name)
        if parsed is None:
            continue
        number, kind = parsed
        try:
            if kind is FileType.TABLE and number not in live and number not in pending:
                tables[number] = store.directory.size(name)
            elif kind is FileType.LOG and number < store.versions.log_number:
                logs[number] = store.directory.size(name)
        except FileNotFoundError:
            pass  # it has just been removed
    return tables, logs
