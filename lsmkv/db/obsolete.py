"""Which files nothing needs any more, and which are in the making though nothing needs them yet."""

from __future__ import annotations

import weakref

from librt.threading import Lock

from lsmkv.db.store import Store
from lsmkv.format.filenames import FileType, parse_filename, worker_token


class PendingOutputs:
    """The tables that no version names yet: by their numbers, or by whose work they are.

    A number goes in before its file is made, by any thread.
    """

    def __init__(self) -> None:
        self.outputs: set[int] = set()
        """Of the compaction that runs."""
        self.tokens: set[str] = set()
        """Of the worker processes that make some."""
        self._lock = Lock()
        self._leases: list[weakref.ref[set[int]]] = []

    def lease(self, numbers: set[int]) -> None:
        """Spare these tables too, whatever is put into the set, for as long as the set lives.

        So there is nothing to be undone, and nothing that an exception could keep from being
        undone: when their maker is gone, the tables are named by a version, or of no use.
        """
        with self._lock:
            self._leases = [lease for lease in self._leases if lease() is not None]
            self._leases.append(weakref.ref(numbers))

    def __contains__(self, number: object) -> bool:
        if number in self.outputs:
            return True
        for lease in self._leases:
            numbers = lease()
            if numbers is not None and number in numbers:
                return True
        return False


def remove_obsolete_files(store: Store, pending_outputs: PendingOutputs) -> None:
    """Remove the engine's files that nothing needs: no version that is held, and no recovery.

    Called after a commit, by the thread that commits.  A flush in the middle of a compaction
    spares the tables ``pending_outputs``, and so does any commit in the middle of an ingest: asked
    for each table, once the directory was listed.  What a worker process left that is not known
    any more is removed.  A file that cannot be removed now is met again
    next time.
    """
    versions = store.versions
    if versions.failure is not None:
        return
    live = versions.live_numbers()
    for name in store.directory.names():
        parsed = parse_filename(name)
        if parsed is None:
            continue
        number, kind = parsed
        if kind is FileType.TABLE:
            obsolete = number not in live and number not in pending_outputs
        elif kind is FileType.LOG:
            obsolete = number < versions.log_number and number != versions.prev_log_number
        elif kind is FileType.MANIFEST:
            obsolete = number < versions.manifest_number
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
