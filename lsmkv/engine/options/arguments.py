"""Every option of a store, declared once: name, type, default, meaning, check, and where it
applies.

:class:`OptionArguments` and its base have an option in each field, and the text below a field is
the option's meaning.  These follow from it:

* the keywords of ``lsmkv.DB``, ``lsmkv.repair_db`` and others, for type checkers and editors;
* what ``inspect.signature(lsmkv.DB)`` and ``help(lsmkv.Options)`` show (``shown.py``);
* the check of each value, and the refusal of an unknown name
  (:func:`~lsmkv.engine.options.make_options`);
* what a worker process is sent (``db/compact/messages.py``).

Tests compare three texts with it: the fields of :class:`~lsmkv.Options`, the table of
``docs/reference/api.md``, and the bounds in an option's meaning.  A new option is a field here, and
one of ``Options``.

The annotations of this module are data and have to be evaluated, so it does not use ``from
__future__ import annotations``.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, TypedDict

from lsmkv.engine.env.base import Env
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.prefix import PrefixExtractor
from lsmkv.engine.options.option import (
    GIB,
    KIB,
    MIB,
    Checked,
    Flag,
    Option,
    Size,
    background_work,
    bound_or_none,
    codec,
    path_or_none,
    sampling,
    seconds,
    text_or_none,
)
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.comparator import Comparator
from lsmkv.engine.util.compression import DEFAULT_MAX_BLOCK_BYTES

FilterLayout = Literal["block", "table", "both"]
Compression = Literal["auto", "snappy", "zstd", "zlib", "zlib-raw", "none"]
BackgroundWork = Literal["auto", "thread", "process", "inline"]
FilterBits = int | float | str | Sequence[float]
Prefixes = int | bytes | PrefixExtractor | Callable[[bytes], bytes | None]


class TableArguments(TypedDict, total=False):
    """The keywords of ``lsmkv.TableWriter``: those of ``lsmkv.DB`` that shape a table.

    >>> import lsmkv
    >>> settings: TableArguments = {"block_size": 16 * KIB}
    >>> with lsmkv.DB(":memory:", **settings) as db:
    ...     db.options.block_size
    16384
    """

    block_size: Annotated[int | None, Size(4 * KIB, 64, 4 * MIB, in_workers=True)]
    """Size to which a data block grows before it is compressed and written: a Get reads one block.
    64 bytes to 4 MiB."""
    block_restart_interval: Annotated[int | None, Size(16, 1, in_workers=True)]
    """Each key of a block is stored as its difference from the one before, and every n-th key in
    full (a restart point)."""
    compression: Annotated[Compression | None, Checked("auto", codec, in_workers=True)]
    """The compression of new blocks: ``"snappy"``, ``"zstd"``, ``"zlib"``, ``"zlib-raw"`` or None;
    blocks under another one stay readable. ``"auto"`` is Snappy, and zlib or zlib-raw where the
    store's tables have it: then it is a Minecraft world. No release of LevelDB reads zstd, and none
    but Mojang's reads zlib."""
    zstd_compression_level: Annotated[int, Size(1, in_workers=True)]
    """Higher is smaller and slower."""
    bloom_filter_bits: Annotated[FilterBits | None, Option(None, leveldb="`filter_policy`")]
    """Bits per key of the Bloom filters, 256 at most. At 10, one Get of an absent key in a hundred
    wastes a read of a block. 0 writes and asks no filters; this is the default with a custom
    comparator. ``"auto:10"`` gives small levels more bits and large ones fewer, for the fewest
    false positives in the same memory; ``[16, 12, 10]`` sets levels 0, 1, and all below."""
    filter_policy: Annotated[FilterPolicy | None, Option(None)]
    """Other filters: an ``lsmkv.Bloom64Policy``, an ``lsmkv.BinaryFusePolicy``, or an object like
    ``lsmkv.FilterPolicy``; in place of ``bloom_filter_bits``, which may still give a Bloom policy
    bits by level. Tables that hold filters of another of lsmkv's policies are read with those."""
    filter_layout: Annotated[FilterLayout | None, Option(None, leveldb="none")]
    """``"block"``: one filter for each 2 KiB of a table, LevelDB's way; ``"table"``: one for the
    whole table; ``"both"``. None is what suits the policy: ``"table"`` for ``lsmkv.Bloom64Policy``
    and ``lsmkv.BinaryFusePolicy``, else ``"block"``."""
    prefix_extractor: Annotated[Prefixes | None, Option(None, leveldb="none")]
    """Writes a filter of the keys' prefixes for each table, and scans of one prefix skip the tables
    that lack it: a number of bytes, a delimiter as bytes, an object like ``lsmkv.PrefixExtractor``,
    or a function of a key that returns its prefix or None. Bytewise order only."""
    prefix_extractor_name: Annotated[str | None, Option(None, leveldb="none")]
    """The name under which a prefix function is kept on disk; tables with another name's prefix
    filters are read without them."""
    comparator: Annotated[Comparator | Callable[[bytes, bytes], int] | None, Option(None)]
    """The order of keys: None is the order that the store is kept in, if lsmkv provides it
    (bytewise, reverse bytewise, that of Chromium's IndexedDB), and the bytewise order for a new
    store; an object like ``lsmkv.Comparator``, or a function of two keys that returns a number
    below, at or above 0."""
    comparator_name: Annotated[str | bytes | None, Option(None, leveldb="`Comparator::Name`")]
    """The name under which a comparator function is kept on disk; opening with another one is
    refused."""
    env: Annotated[Env | None, Option(None)]
    """The file system: None is the local one, an ``lsmkv.MemoryEnv`` is in memory."""


class OptionArguments(TableArguments, total=False):
    """The keywords of ``lsmkv.DB``, for functions that pass them on.  A size of None means the
    default, and one that is out of bounds means the nearest bound.  Opening the store raises
    ``TypeError`` or ``ValueError`` for an invalid value.

    >>> from lsmkv import DB
    >>> settings: OptionArguments = {"compression": None, "bloom_filter_bits": 16}
    >>> with DB(":memory:", **settings) as db:
    ...     db.options.filter_policy
    BloomFilterPolicy(16)
    """

    create_if_missing: Annotated[bool, Flag(False)]
    """Creates the store if it does not exist; without it, that raises ``NotFoundError``."""
    error_if_exists: Annotated[bool, Flag(False)]
    """Raises an ``Error`` if the store exists already."""
    read_only: Annotated[bool, Flag(False, leveldb="none")]
    """Only reads: takes no lock and writes no file. It may be opened while another process writes;
    ``db.refresh()`` brings it up to date."""
    paranoid_checks: Annotated[bool, Flag(False)]
    """Refuses a store with a damaged log, and costs nothing: recommended for production. A record
    torn by a crash is not damage. Without it, what comes before the damage is kept, a
    ``RecoveryWarning`` is given, the log is set aside in ``lost/``, and ``db.recovery`` says what
    is missing."""
    mapped_log: Annotated[bool, Flag(True, leveldb="none")]
    """The log is mapped into memory where the file system keeps reserved space (ext4, tmpfs, XFS
    without reflinks): a write is one copy. ``False`` uses ordinary writes. The guarantees are the
    same."""
    reuse_logs: Annotated[bool, Flag(False)]
    """Opening continues the log that it finds, where it can; without it, the log becomes a table
    first."""
    write_buffer_size: Annotated[int | None, Size(4 * MIB, KIB, GIB)]
    """Size to which a memtable grows before it becomes a table; up to two are in memory. 1 KiB to 1
    GiB."""
    lru_cache_size: Annotated[int | None, Size(32 * MIB, leveldb="`block_cache`")]
    """Bytes of blocks in the block cache, and up to half as many again for values in the row cache;
    0 caches nothing.  Blocks are kept decompressed until the cache is full, and compressed then."""
    block_cache: Annotated[BlockCache[Any, Any] | None, Option(None)]
    """An ``lsmkv.BlockCache``, which several stores may share; it takes the place of
    ``lru_cache_size``."""
    max_open_files: Annotated[int | None, Size(1000, 20, 50_000, in_workers=True)]
    """The most descriptors in use, ten of which are not for tables. The open tables of all stores
    of a process together take at most half of its limit (``ulimit -n``), and give way where
    descriptors run out. 20 to 50,000."""
    table_cache_bytes: Annotated[int | None, Checked(None, bound_or_none, leveldb="none")]
    """The most memory for indexes and filters of open tables, about; beyond it the tables that were
    used least recently are closed, and the newest one stays. Opening a table again costs
    several reads. ``None`` is no bound but ``max_open_files``."""
    map_tables: Annotated[bool, Flag(False, leveldb="none")]
    """Tables are mapped into memory, on Linux and macOS: a block that the system has in its cache
    is read without a call of the system, and its checksum is verified once. If the disk fails, or
    another program cuts a table, the process ends with SIGBUS, where a read would raise an error;
    and while a block comes from the disk, all threads wait. Not on network file systems: there, and
    where memory has no room for it, tables are read."""
    max_file_size: Annotated[int | None, Size(2 * MIB, KIB, GIB, in_workers=True)]
    """Size to which a compaction lets a table grow. 1 KiB to 1 GiB."""
    max_block_bytes: Annotated[
        int,
        Size(DEFAULT_MAX_BLOCK_BYTES, MIB, leveldb="none", in_workers=True),
    ]
    """The most that a block may grow to by decompression and by what its keys share; more counts as
    damage, which bounds the memory that a bad file can take. A larger block is written
    uncompressed. 1 MiB or more."""
    filter_last_level: Annotated[bool, Flag(True, leveldb="none")]
    """``False`` writes no filters on the last level, which take most of the memory and save little
    where nearly all Gets find their key."""
    flush_prefix: Annotated[str | None, Checked("", text_or_none, leveldb="none", in_workers=True)]
    """Keys that begin with this ASCII text are flushed to a separate table. Where these keys
    grow with time, such a table overlaps no other, is not rewritten by compactions, and goes as a
    whole when ``db.delete_range`` takes its keys. Bytewise order only."""
    seek_compaction: Annotated[bool, Flag(True, leveldb="none")]
    """A table in which Gets keep searching blocks without finding their key is merged into the next
    level; so is one that scans keep reading together with another table."""
    background: Annotated[BackgroundWork, Checked("auto", background_work, leveldb="none")]
    """The place where flushes and compactions run. ``"thread"``: in this process. ``"process"``: in
    worker processes, which do not share the interpreter lock. ``"auto"``: in worker processes on
    two processors or more, once memtables of 4 MiB or more fill at one a second or jobs follow each
    other closely. Stores in memory, and those with a custom comparator, filter policy, prefix
    extractor or ``env``, use the thread: with any of these four ``"process"`` is refused.
    ``"inline"``: in the calls that write, without a thread; ``"auto"`` means this in a browser,
    which has no threads."""
    publish_stats: Annotated[bool, Flag(False, leveldb="none")]
    """Writes counters and latencies to ``STATS.json`` in the store's directory once a second, for
    ``lsmkv top``; closing removes the file. A failure to write it affects nothing else. Not with
    ``read_only``; for a store in memory, only its own ``env`` sees the file."""
    trace: Annotated[str | os.PathLike[str] | None, Checked(None, path_or_none, leveldb="none")]
    """A file to which gets, puts, deletes, batches and seeks are written with their keys and times:
    ``lsmkv.read_trace`` and ``lsmkv trace`` read it. An earlier trace of that name is replaced,
    another file refused. It is made in the store's ``env``."""
    trace_sample: Annotated[int, Checked(1, sampling, leveldb="none")]
    """Writes every n-th operation of each kind to the trace; 1 writes all of them."""
    lock_timeout: Annotated[float, Checked(0.0, seconds, leveldb="none")]
    """Seconds to wait while another handle has the store open for writing, before ``LockedError``;
    Ctrl-C ends the wait. Not with ``read_only``, which never waits."""


def declared(keywords: type) -> dict[str, Option]:
    """The options of a record of keywords, one of the two above.

    >>> declared(OptionArguments)["block_size"].default
    4096
    """
    return {name: one.__metadata__[0] for name, one in keywords.__annotations__.items()}


_TABLE_OPTIONS = declared(TableArguments)
OPTIONS = {
    name: option for name, option in declared(OptionArguments).items() if name not in _TABLE_OPTIONS
} | _TABLE_OPTIONS
"""Every option by its name; those that shape tables come last."""


def refuse_unknown(given: Iterable[str], known: Iterable[str], callee: str) -> None:
    """``TypeError`` for the first option that ``callee`` does not know, and the nearest it knows.

    >>> refuse_unknown(["blok_size"], ["block_cache", "block_size"], "DB")
    Traceback (most recent call last):
    TypeError: lsmkv.DB has no option 'blok_size': did you mean 'block_size'?
    """
    names = list(known)
    for name in given:
        if name not in names:
            import difflib  # noqa: PLC0415 - only a misspelt option needs it

            near = difflib.get_close_matches(name, names, n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"lsmkv.{callee} has no option {name!r}{hint}")


def checked_lock_timeout(value: object) -> float:
    """A number of seconds, for callers that wait for a lock before they open a store."""
    return seconds("lock_timeout", value)
