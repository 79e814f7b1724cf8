"""Entries of a scan's chunks, with runs of deletions taken apart."""

from __future__ import annotations

from typing import Any

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.table.deletion_run import run_in


def single_entries(chunk: list[Any]) -> list[Any]:
    """The entries of a chunk, each deletion of a run as one of its own."""
    entries: list[Any] = []
    for entry in chunk:
        run = run_in(entry)
        if run is None:
            entries.append(entry)
        elif run.sequences is None:
            entries += [(key, None) for key in run.keys[run.first :]]
        else:
            pairs = list(zip(run.keys, run.sequences, strict=True))
            entries += [(key, None, sequence) for key, sequence in pairs[run.first :]]
    return entries


def pairs_of(run: InternalIterator) -> list[Any]:
    """All pairs of a run, in the order in which they come."""
    return [pair for chunk in iter(run.next_chunk, []) for pair in single_entries(chunk)]
