"""Removes obsolete files, and keeps the tables that are still being made (pending outputs)."""

from __future__ import annotations

import weakref

from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.format.filenames import FileType, parse_filename, worker_token


class PendingOutputs:
    """The tables that no version names yet, by number, or by the worker process that makes them.

    A number is added before its file is made, by any thread.
    """

    def __init__(self) -> None:
        self.outputs: set[int] = set()
        """The outputs of the running compaction."""
        self.tokens: set[str] = set()
        """The tokens of the worker processes that may be making tables."""
        self._leases: list[weakref.ref[set[int]]] = []

    def lease(self, numbers: set[int]) -> None:
        """Also spare the tables in this set, as long as the set lives; it may still grow.

        So nothing has to be undone, and no exception can prevent that: once the set's owner is
        gone, its tables are named by a version, or of no use.
        """
        for lease in list(self._leases):
            if lease() is None:
                try:
                    self._leases.remove(lease)
                except ValueError:
                    pass  # another thread has removed it
        self._leases.append(weakref.ref(numbers))

    def __contains__(self, number: object) -> bool:
        if number in self.outputs:
            return True
        for lease in list(self._leases):
            numbers = lease()
            if numbers is not None and number in numbers:
                return True
        return False


def remove_obsolete_files(store: Store, pending_outputs: PendingOutputs) -> None:
    """Remove the engine's files that neither a version that is held nor recovery needs.

    Called after a commit, by the thread that commits.  A flush in the middle of a compaction spares
    the compaction's outputs, and any commit spares the tables of an ingest under way:
    ``pending_outputs`` is asked for each table, after the directory was listed.  Tables of worker
    processes that are no longer known are removed.  A file that cannot be removed is tried again
    after the next commit.
    """
    versions = store.versions
    if versions.failure is not None or versions.unsettled:
        return
    live = versions.live_numbers()
    for name in store.directory.names():
        parsed = parse_filename(name)
        if parsed is None:
            continue
        number, kind = parsed
        if kind is FileType.TABLE:
            obsolete = number not in live and number not in pending_outputs
            if obsolete and store.sharing is not None:
                obsolete = not store.sharing.is_leased(number)
        elif kind is FileType.LOG:
            obsolete = number < versions.log_number and number != versions.prev_log_number
            if obsolete:
                oldest = store.log_holds.oldest()
                obsolete = oldest is None or number < oldest
            if obsolete and store.sharing is not None:
                obsolete = not store.sharing.is_log_leased(number)
        elif kind is FileType.MANIFEST:
            obsolete = number < versions.manifest_number
        elif kind is FileType.STATS:
            obsolete = not store.options.publish_stats  # then a killed owner has left it
        else:
            obsolete = (
                kind is FileType.TEMPORARY and worker_token(name) not in pending_outputs.tokens
            )
        if not obsolete:
            continue
        if kind is FileType.TABLE:
            store.tables.evict(number)
        store.info_log.write(f"Delete {name}")
        try:
            store.directory.remove(name)
        except OSError as error:
            store.info_log.write(f"Could not delete {name}: {error}")
