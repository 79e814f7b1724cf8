"""Block reads of scans of absent prefixes: about one per level, since a scan asks no filter.

What is read is counted by the scans' own level iterators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.db.db import DB
from lsmkv.engine.db.read.level_iterator import FIRST_CHUNK, LevelIterator
from lsmkv.engine.db.read.level_reader import LevelReader
from lsmkv.engine.db.read.scan import Bounds, bounds_of, shared_prefix_hash
from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.block_iterator import WITH_DELETIONS
from lsmkv.engine.util.progress import Progress


def absent_prefixes(db: DB, keys: Sequence[bytes], most: int) -> list[bytes]:
    """Those of the first ``most`` keys that no key of the store begins with.

    Raises what ``db.iterator`` does.  Cost: a seek for each of them.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     db.put(b"user 1", b"")
    ...     absent_prefixes(db, [b"user", b"usher", b"x"], 2)
    [b'usher']
    """
    found: list[bytes] = []
    for key in keys[:most]:
        with db.iterator(prefix=key, include_value=False, fill_cache=False) as keys_with_it:
            if next(keys_with_it, None) is None:
                found.append(key)
    return found


def scan_absent(
    db: DB,
    prefixes: Sequence[bytes],
    progress: Progress = lambda _done, _total, _phase: None,
) -> dict[int, int]:
    """Scan these prefixes, which no key has: the data blocks that are read, by file number.

    The blocks are found in the block cache as scans find them, so a store that was opened with
    ``lru_cache_size=0`` counts every one.  They count as reads of level 0 in the store's counters.
    ``progress`` is called with prefixes, after each of them.  Raises
    :class:`~lsmkv.CorruptionError` and :class:`~lsmkv.IOError`.  Cost: that of the scans.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:", lru_cache_size=0) as db:
    ...     db.put(b"user 1", b"")
    ...     db.put(b"user 3", b"")
    ...     db.flush()
    ...     scan_absent(db, [b"user 2"])
    {6: 1}
    """
    store = db._open_store()
    read = store.read_view()
    counters = store.counters.levels[0]
    found: dict[int, int] = {}
    try:
        for done, prefix in enumerate(prefixes, 1):
            bounds = bounds_of(None, None, True, False, prefix, store.order)
            for file in _files_in(store, read, bounds):
                blocks = _scan(store, read, file, bounds, counters)
                found[file.number] = found.get(file.number, 0) + blocks
            progress(done, len(prefixes), "")
    except OSError as error:
        store.raise_failure(error)
    finally:
        read.release()
    return found


def _files_in(store: Store, read: ReadView, bounds: Bounds) -> Iterator[FileMetaData]:
    """The files that a scan of the range may read."""
    version = read.view.version
    lower, upper = bounds.lower, bounds.upper
    yield from version.levels[0]
    for level, files in enumerate(version.levels[1:], 1):
        at = 0
        if lower is not None:
            sequence = -1 if lower.after else MAX_SEQUENCE
            at = version.file_from(level, store.order.of(lower.user_key), sequence)
        for file in files[at:]:
            if upper is not None and store.order.is_at_or_after(file.smallest[:-8], upper):
                break
            yield file


def _scan(
    store: Store, read: ReadView, file: FileMetaData, bounds: Bounds, counters: ReadCounters
) -> int:
    """Read a file's part of the range, as a scan does; the number of blocks read."""
    # A file of level 0 is read by itself, which is what is wanted here of any file.
    prefix_hash = shared_prefix_hash(store, bounds)
    reader = LevelReader(store, read, 0, [file], WITH_DELETIONS, FIRST_CHUNK, None, prefix_hash)
    pairs = LevelIterator(reader, bounds.lower, bounds.upper)
    before = counters.blocks_read + counters.block_cache_hits
    while pairs.next_chunk():
        pass
    return counters.blocks_read + counters.block_cache_hits - before
