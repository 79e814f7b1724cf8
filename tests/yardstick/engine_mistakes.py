"""More mistakes for ``plant.py``, of the engine: those with which its tests were made shorter.

See ``mistakes.py`` for what they are.
"""

from __future__ import annotations

from mistake import Mistake

MISTAKES: tuple[Mistake, ...] = (
    # Ingests
    Mistake(
        "the first of several ingested files wins",
        "files",
        "Ingestion._read",
        'tag = pack(b"", source.place, KIND_VALUE)',
        'tag = pack(b"", 1, KIND_VALUE)',
        "A later file of an ingest does not replace the entries of an earlier one.",
    ),
    Mistake(
        "files that begin where another ends are one run",
        "files",
        "Ingestion._examine",
        "source.smallest) < 0:",
        "source.smallest) <= 0:",
        "An ingest of two files that share a key is refused as out of order.",
    ),
    Mistake(
        "entries that were written at a sequence are ingested",
        "files",
        "Ingestion._refuse_out_of_order",
        "if tagged[:TAG_SIZE] != _TAG:",
        "if tagged[0] != KIND_VALUE:",
        "A table of a store is ingested as if TableWriter had made it.",
    ),
    Mistake(
        "an ingest at the sequence of the last write is published",
        "files",
        "Ingestion._number",
        "if self._sequence <= last_sequence:",
        "if self._sequence < last_sequence:",
        "A write and an ingest have one sequence, and either may be found.",
    ),
    Mistake(
        "the names of ingested tables are not made durable",
        "files",
        "Ingestion._number",
        "directory.sync()",
        "pass",
        "After a power cut the MANIFEST names tables that are not there.",
    ),
    Mistake(
        "the last table of an ingest is not finished",
        "files",
        "Ingestion._write",
        "self._finish_output()\n        finally:",
        "pass\n        finally:",
        "The last entries of an ingest are missing.",
    ),
    Mistake(
        "an ingest is split where level 0 overlaps",
        "files",
        "Ingestion._split",
        "not version.overlaps(",
        "version.overlaps(",
        "An ingest that overlaps level 0 adds many tables there, and writers wait.",
    ),
    Mistake(
        "tables of an ingest that failed stay",
        "files",
        "Ingestion._clean_up",
        "self._remove_tables()",
        "pass",
        "A callback that raises leaves tables, which take room until the store is opened again.",
    ),
    # Ranges and prefixes
    Mistake(
        "a range with a prefix is not cut at the prefix's end",
        "iterators",
        "bounds_of",
        "end = after_prefix(first)",
        "end = None",
        "A scan of a prefix goes on beyond it.",
    ),
    # Transactions
    Mistake(
        "a transaction commits over a key that it read",
        "locks",
        "ConflictCheck.raise_if_changed",
        "if self.has(key):",
        "if self.has(key) and not self._ranges:",
        "An update is lost.",
    ),
    # Full disks
    Mistake(
        "a quota counts as a number of free bytes",
        "compaction",
        "WorkOnDisk.fail",
        "if error.errno == errno.EDQUOT:",
        "if error.errno == errno.ENOSPC:",
        "Writes are refused though the quota has room again.",
    ),
    Mistake(
        "the end of a full disk is not noted",
        "compaction",
        "WorkOnDisk.succeed",
        "self.error = None",
        "pass",
        "The log says neither that there is space again nor that it is full the next time.",
    ),
    # Workers, repeated reads, and stores that processes share
    Mistake(
        "a worker compacts with the options that it was started with",
        "compaction",
        "Worker._compact",
        "request.options,",
        "self._options,",
        "Tables that a worker writes have filters where the option leaves them out.",
    ),
    Mistake(
        "a worker is sent the store's options for a compaction",
        "compaction",
        "BackgroundJobs._write_outputs",
        "compaction, options, oldest_pinned",
        "compaction, store.options, oldest_pinned",
        "Tables that a worker writes have filters where the option leaves them out.",
    ),
    Mistake(
        "a read is not repeated in a newer view",
        "files",
        "DB._iterator",
        "reader = self._newer_reader(error)",
        "raise error",
        "A read-only store raises StaleViewError where it should move on.",
    ),
    Mistake(
        "a write counts as lost whose last operation was recovered last",
        "locks",
        "fate_of",
        "last <= recovered",
        "last < recovered",
        "A member's write happens twice when its owner is killed.",
    ),
    Mistake(
        "an owner that may be alive counts as dead",
        "locks",
        "fate_without_owner",
        "page.superseded and ",
        "",
        "A write that may still happen is reported as one that has not.",
    ),
    Mistake(
        "the last owner's word is taken for that of the lock's holder",
        "locks",
        "look_at_lock",
        "head.pid == (holder or os.getpid())",
        "True",
        "An opening waits 30 seconds for a process that does not share the store.",
    ),
    Mistake(
        "a member takes no part of the lock",
        "locks",
        "Joined._greeted",
        "hold is not None and greeting.revision > 1",
        "False",
        "LevelDB gets the store between two owners, and members read what was for ever.",
    ),
    Mistake(
        "a newcomer keeps the lock while it waits for readers",
        "locks",
        "Entrance._supersede",
        "        if file.is_leased_in_epoch(epoch):\n",
        "        while file.is_leased_in_epoch(epoch):\n            pause(1)\n        if False:\n",
        "Members that could own the store wait for one that cannot.",
    ),
    Mistake(
        "a wait goes on when another process gets the lock",
        "locks",
        "Wait.is_over",
        "look != self._last",
        "self._last is None",
        "A process gives up on an owner that has just begun.",
    ),
    Mistake(
        "a write that asks for a sync is not synced by the next owner",
        "locks",
        "SharedHandle._resolve",
        "if sync:",
        "if False:",
        "A synced write may be lost in a power cut.",
    ),
)
