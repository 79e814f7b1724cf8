"""Every setting of a store, under LevelDB's name and with LevelDB's default.

Two defaults differ: checksums are always verified, and filters are on (10 bits a key).  The
keywords of ``lsmkv.DB`` are checked here and nowhere else.

:class:`Options` is the one record of settings, and the engine passes it on as it is.  Its
comparator and filter policy are for user keys.  Tables wrap the comparator in an
:class:`~lsmkv.format.keys.InternalKeyComparator`, and make their filters from user keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, Never, TypedDict, cast

from lsmkv.env.base import Env
from lsmkv.env.local import LocalEnv
from lsmkv.errors import ComparatorMismatchError
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.filter.bloom64 import Bloom64Policy
from lsmkv.filter.fuse import BinaryFusePolicy
from lsmkv.filter.known import is_known
from lsmkv.filter.levels import LevelBits
from lsmkv.filter.policy import FilterPolicy
from lsmkv.filter.prefix import (
    CallablePrefix,
    DelimitedPrefix,
    FixedPrefix,
    PrefixExtractor,
    is_own,
)
from lsmkv.util.block_cache import BlockCache
from lsmkv.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    BytewiseComparator,
    CallableComparator,
    Comparator,
    ReverseBytewiseComparator,
    equal_means_identical,
)
from lsmkv.util.compression import DEFAULT_MAX_BLOCK_BYTES, SNAPPY, codec_named

FilterLayout = Literal["block", "table", "both"]
Compression = Literal["auto", "snappy", "zstd", "zlib", "zlib-raw", "none"]
BackgroundWork = Literal["auto", "thread", "process"]
FilterBits = int | float | str | Sequence[float]
Prefixes = int | bytes | PrefixExtractor | Callable[[bytes], bytes | None]

L0_COMPACTION_TRIGGER = 4
L0_SLOWDOWN_WRITES_TRIGGER: Final = 8
L0_STOP_WRITES_TRIGGER: Final = 12
MAX_MEM_COMPACT_LEVEL = 2

_MOST_BITS_PER_KEY = 256
"""Beyond 44 bits a filter has no use for more: it probes 30 of them at most."""

KIB = 1024
MIB = 1024 * 1024


class Options(NamedTuple):
    """The settings of an open store: ``db.options``.  Sizes are in bytes.

    They are made of the keywords of ``lsmkv.DB``.  What each does (more in ``docs/api.md``):

    * ``create_if_missing``: make a new store where there is none.
    * ``error_if_exists``: refuse to open a store that is there already.
    * ``read_only``: write nothing at all: no lock, no log, no recovery to disk.  Works on a
      read-only mount, and beside a live writer.
    * ``paranoid_checks``: refuse to open a store whose log is damaged, where the default keeps what
      is before the damage, with a :class:`~lsmkv.RecoveryWarning`.  A record that a crash has torn
      is no damage.  It costs nothing: recommended for production.
    * ``reuse_logs``: go on with the log that is found when opening, rather than make a table of it.
    * ``mapped_log``: map the log into memory where the file system keeps room that is reserved
      (ext4, tmpfs, XFS without reflinks): a write is then one copy, without a system call.  False
      writes to it.  The promises are the same: see ``docs/reliability.md``.
    * ``env``: the file system; None is the local one.
    * ``comparator``: the order of keys: an object with the members of :class:`~lsmkv.Comparator`,
      or a function of two keys.  ``comparator_name``: the function's name, kept on disk.  None is
      the order that the store is kept in, if lsmkv brings it (bytewise, reverse bytewise,
      Chromium's ``idb_cmp1``), and bytewise for a new store.
    * ``write_buffer_size``: a memtable of this size, counted as LevelDB's arena is, becomes a
      table.
    * ``lru_cache_size``: bytes of the block cache: 32 MiB by default, as RocksDB has it; 0 turns it
      off.  The row cache may take up to half as much more.
    * ``block_cache``: a :class:`~lsmkv.BlockCache` to share between stores, in place of one of
      ``lru_cache_size``.  In
      ``db.options`` it is the one in use; None caches nothing.
    * ``max_open_files``: descriptors: all but ten of them for tables that are kept open.
    * ``block_size``: of a data block, before it is compressed.
    * ``block_restart_interval``: after this many entries of a block, a key is stored whole.
    * ``max_file_size``: a compaction goes on in a new table beyond this.
    * ``compression``: of new blocks: ``"snappy"``, ``"zstd"``, ``"zlib"``, ``"zlib-raw"`` or None.
      ``"auto"``, the default, is Snappy, except where the store's tables have a codec of Mojang's
      (zlib, zlib-raw): these belong to Minecraft's Bedrock edition, which reads no other.  Opening
      for writing finds that out by a few small reads of the two newest tables and the two
      oldest; a store without tables shows no codec.  In ``db.options`` it is the codec in
      use, as a number: see :mod:`lsmkv.util.compression`.
    * ``auto_compression``: whether ``compression`` was left to the store; no keyword.
    * ``zstd_compression_level``: with ``"zstd"``.
    * ``max_block_bytes``: a block that grows beyond this when decompressed counts as damage; one
      that is larger to begin with is written uncompressed.
    * ``bloom_filter_bits``: bits a key for Bloom filters: 10 by default; 0 turns them off.
      ``"auto:10"`` spreads as much memory over the levels so that the fewest filters are wrong;
      ``[16, 12, 10]`` gives the bits for levels 0, 1, and all below.
    * ``filter_policy``: filters of another kind, in place of LevelDB's Bloom filters.  In
      ``db.options`` it is the one in use, or None.  Whatever it is, tables that hold filters of
      another kind that lsmkv brings are read with these.
    * ``filter_layout``: ``"block"``: a filter for every 2 KiB of a table, as LevelDB has them;
      ``"table"``: one for all of it; or ``"both"``.  By default what suits the policy:
      ``"block"`` for LevelDB's filters and yours, ``"table"`` for the others.
    * ``filter_last_level``: False writes no filters on the last level.  It saves most of their
      memory, and nearly nothing is lost where nearly all Gets find their key.
    * ``prefix_extractor``: also write a filter of the keys' prefixes for each table, which scans
      of one prefix ask: a number of bytes, a delimiter (bytes), a
      :class:`~lsmkv.PrefixExtractor`, or a function of a key.  It takes the bytewise order.
    * ``prefix_extractor_name``: the function's name, kept on disk; tables whose prefix filters were
      made under another name are read without these.
    * ``seek_compaction``: whether lookups that read blocks without finding the key may start a
      compaction.
    * ``background``: where flushes and compactions are computed.  ``"thread"``: in a thread of this
      process, which slows the others down.  ``"process"``: in a process of its own, with an
      interpreter lock of its own; it takes neither a comparator, a filter policy nor an env of
      yours.  ``"auto"``: there, once so much is written that it pays (a memtable of 4 MiB in a
      second, or more in a row), and if there are two processors to use.  Stores that are not in a
      local directory use the thread.
    * ``publish_stats``: write counters and latencies to a small file in the store's directory,
      once a second, for ``lsmkv top``.  LevelDB ignores the file, and closing removes it.  Does
      not go with ``read_only``; of a store in memory, no other process sees it.
    * ``trace``: the path of a file to which operations are written, with their keys and times:
      see :func:`lsmkv.read_trace`.  An earlier trace there is replaced, any other file refused.
    * ``trace_sample``: write every so many-th operation of a kind to the trace; 1 is all of them.
    * ``lock_timeout``: seconds to wait for a store that another handle has open for writing, before
      :class:`~lsmkv.LockedError` is raised: for restarts in which the old process still closes
      while the new one opens.  0 does not wait.  Opening ``read_only`` never waits.

    >>> from lsmkv import DB
    >>> with DB(":memory:", block_size=16 * KIB) as db:
    ...     db.options.block_size, db.options.compression == SNAPPY, db.options.filter_policy
    (16384, True, BloomFilterPolicy(10))
    """

    comparator: Comparator = BYTEWISE
    create_if_missing: bool = False
    error_if_exists: bool = False
    paranoid_checks: bool = False
    write_buffer_size: int = 4 * MIB
    max_open_files: int = 1000
    block_cache: BlockCache[Any, Any] | None = None
    block_size: int = 4 * KIB
    block_restart_interval: int = 16
    max_file_size: int = 2 * MIB
    compression: int = SNAPPY
    auto_compression: bool = False
    zstd_compression_level: int = 1
    reuse_logs: bool = False
    mapped_log: bool = True
    filter_policy: FilterPolicy | None = None
    filter_layout: FilterLayout = "block"
    filter_bits: LevelBits | None = None
    filter_last_level: bool = True
    prefix_extractor: PrefixExtractor | None = None
    seek_compaction: bool = True
    background: BackgroundWork = "auto"
    max_block_bytes: int = DEFAULT_MAX_BLOCK_BYTES
    read_only: bool = False
    env: Env | None = None
    publish_stats: bool = False
    trace: str | None = None
    trace_sample: int = 1
    lock_timeout: float = 0.0


class TableArguments(TypedDict, total=False):
    """The keywords of ``lsmkv.TableWriter``: those of ``lsmkv.DB`` that shape a table.

    >>> settings: TableArguments = {"block_size": 16 * KIB}
    >>> make_options(**settings).block_size
    16384
    """

    block_size: int | None
    block_restart_interval: int | None
    compression: Compression | None
    zstd_compression_level: int
    bloom_filter_bits: FilterBits | None
    filter_policy: FilterPolicy | None
    filter_layout: FilterLayout | None
    prefix_extractor: Prefixes | None
    prefix_extractor_name: str | None
    comparator: Comparator | Callable[[bytes, bytes], int] | None
    comparator_name: str | bytes | None
    env: Env | None


class OptionArguments(TableArguments, total=False):
    """The keywords of ``lsmkv.DB``, for functions that pass them on.  A size that is None is the
    default.  :class:`Options` tells what they mean; what is wrong is refused when the store is
    opened, by ``TypeError`` or ``ValueError``.

    >>> from lsmkv import DB
    >>> settings: OptionArguments = {"compression": None, "bloom_filter_bits": 16}
    >>> with DB(":memory:", **settings) as db:
    ...     db.options.filter_policy
    BloomFilterPolicy(16)
    """

    create_if_missing: bool
    error_if_exists: bool
    paranoid_checks: bool
    write_buffer_size: int | None
    max_open_files: int | None
    lru_cache_size: int | None
    block_cache: BlockCache[Any, Any] | None
    max_file_size: int | None
    reuse_logs: bool
    mapped_log: bool
    filter_last_level: bool
    seek_compaction: bool
    background: BackgroundWork
    max_block_bytes: int
    read_only: bool
    publish_stats: bool
    trace: str | os.PathLike[str] | None
    trace_sample: int
    lock_timeout: float


def make_options(
    *,
    create_if_missing: bool = False,
    error_if_exists: bool = False,
    paranoid_checks: bool = False,
    write_buffer_size: int | None = None,
    max_open_files: int | None = None,
    lru_cache_size: int | None = None,
    block_cache: BlockCache[Any, Any] | None = None,
    block_size: int | None = None,
    block_restart_interval: int | None = None,
    max_file_size: int | None = None,
    compression: Compression | None = "auto",
    zstd_compression_level: int = 1,
    bloom_filter_bits: FilterBits | None = None,
    filter_policy: FilterPolicy | None = None,
    filter_layout: FilterLayout | None = None,
    filter_last_level: bool = True,
    prefix_extractor: Prefixes | None = None,
    prefix_extractor_name: str | None = None,
    comparator: Comparator | Callable[[bytes, bytes], int] | None = None,
    comparator_name: str | bytes | None = None,
    reuse_logs: bool = False,
    mapped_log: bool = True,
    seek_compaction: bool = True,
    background: BackgroundWork = "auto",
    max_block_bytes: int = DEFAULT_MAX_BLOCK_BYTES,
    read_only: bool = False,
    env: Env | None = None,
    publish_stats: bool = False,
    trace: str | os.PathLike[str] | None = None,
    trace_sample: int = 1,
    lock_timeout: float = 0.0,
    **unknown: Never,
) -> Options:
    """The options for these keywords, checked.

    ``TypeError`` and ``ValueError`` say which setting is wrong and what it takes.  Sizes that
    LevelDB holds to a range are held to one here too: the upper ends are LevelDB's, the lower ones
    are smaller, for small machines and for tests.
    """
    if unknown:
        refuse_unknown(unknown, OptionArguments.__annotations__, "DB")
    order = _comparator(comparator, comparator_name)
    if read_only and (create_if_missing or error_if_exists):
        raise ValueError("read_only goes with neither create_if_missing nor error_if_exists")
    if read_only and publish_stats:
        raise ValueError("publish_stats writes into the store's directory, and read_only does not")
    if env is not None and not isinstance(env, Env):
        raise TypeError(f"env must derive from lsmkv.env.base.Env, not {type(env).__name__}")
    policy, filter_bits = _filter_policy(bloom_filter_bits, filter_policy, order)
    extractor = _prefix_extractor(prefix_extractor, prefix_extractor_name, order)
    _check_background(background, order, policy, extractor, env)
    cache_size = _size("lru_cache_size", lru_cache_size, 32 * MIB)
    if block_cache is None and cache_size > 0:
        block_cache = BlockCache(cache_size)
    return Options(
        comparator=order,
        create_if_missing=bool(create_if_missing),
        error_if_exists=bool(error_if_exists),
        paranoid_checks=bool(paranoid_checks),
        write_buffer_size=_clip(
            _size("write_buffer_size", write_buffer_size, 4 * MIB), KIB, 1024 * MIB
        ),
        max_open_files=_clip(_size("max_open_files", max_open_files, 1000), 20, 50000),
        block_cache=block_cache,
        block_size=_clip(_size("block_size", block_size, 4 * KIB), 64, 4 * MIB),
        block_restart_interval=max(1, _size("block_restart_interval", block_restart_interval, 16)),
        max_file_size=_clip(_size("max_file_size", max_file_size, 2 * MIB), KIB, 1024 * MIB),
        compression=_compression(compression),
        auto_compression=compression == "auto",
        zstd_compression_level=_size("zstd_compression_level", zstd_compression_level, 1),
        reuse_logs=bool(reuse_logs),
        mapped_log=bool(mapped_log),
        filter_policy=policy,
        filter_layout=_filter_layout(filter_layout, policy),
        filter_bits=filter_bits,
        filter_last_level=bool(filter_last_level),
        prefix_extractor=extractor,
        seek_compaction=bool(seek_compaction),
        background=background,
        max_block_bytes=max(
            MIB, _size("max_block_bytes", max_block_bytes, DEFAULT_MAX_BLOCK_BYTES)
        ),
        read_only=bool(read_only),
        env=env,
        publish_stats=bool(publish_stats),
        trace=None if trace is None else _trace_path(trace),
        trace_sample=_sample(trace_sample),
        lock_timeout=checked_lock_timeout(lock_timeout),
    )


def in_stored_order(arguments: OptionArguments, error: ComparatorMismatchError) -> Options:
    """The options for a store whose order is not the one that it was to be opened in.

    A store that is opened without a ``comparator`` is opened in its own order, if lsmkv brings that
    order.  Raises ``error`` where the order is another one, or where a comparator was given.
    """
    order = None if arguments.get("comparator") is not None else own_comparator(error.stored)
    if order is None:
        raise error
    own = arguments.copy()
    own["comparator"] = order
    return make_options(**own)


def own_comparator(name: str) -> Comparator | None:
    """The comparator of this name, if lsmkv brings it.

    >>> own_comparator("leveldb.ReverseBytewiseComparator").name, own_comparator("idb_cmp1").name
    ('leveldb.ReverseBytewiseComparator', 'idb_cmp1')
    >>> own_comparator("example.ByLength") is None
    True
    """
    if name == "idb_cmp1":
        from lsmkv.indexeddb import IndexedDBComparator  # noqa: PLC0415 - few stores are Chromium's

        return IndexedDBComparator()
    for order in (BYTEWISE, REVERSE_BYTEWISE):
        if order.name == name:
            return order
    return None


def refuse_unknown(given: Iterable[str], known: Iterable[str], taker: str) -> None:
    """``TypeError`` for the first option that ``taker`` does not know, and the nearest it knows.

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
            raise TypeError(f"lsmkv.{taker} has no option {name!r}{hint}")


def has_own_parts_alone(
    order: Comparator, policy: FilterPolicy | None, extractor: PrefixExtractor | None
) -> bool:
    """Whether comparator, filter policy and prefix extractor are lsmkv's own: another process knows
    these by name."""
    return (
        type(order) in (BytewiseComparator, ReverseBytewiseComparator)
        and is_known(policy)
        and is_own(extractor)
    )


def _check_background(
    background: str,
    order: Comparator,
    policy: FilterPolicy | None,
    extractor: PrefixExtractor | None,
    env: Env | None,
) -> None:
    if background not in ("auto", "thread", "process"):
        raise ValueError(f"background is 'auto', 'thread' or 'process', not {background!r}")
    if background == "process" and (
        not has_own_parts_alone(order, policy, extractor) or type(env) not in (type(None), LocalEnv)
    ):
        raise ValueError(
            "background='process' takes no comparator, filter_policy, prefix_extractor or env of"
            " your own: they cannot be had in another process"
        )


def _size(name: str, value: int | None, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} cannot be negative: {value}")
    return value


def _trace_path(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"trace must be a path or None, not {type(path).__name__}")
    return os.fsdecode(path)


def checked_lock_timeout(value: object) -> float:
    """A number of seconds, 0 or more."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"lock_timeout must be a number of seconds, not {type(value).__name__}")
    if not value >= 0:  # nor a NaN
        raise ValueError(f"lock_timeout cannot be negative: {value}")
    return float(value)


def _sample(value: int) -> int:
    sample = _size("trace_sample", value, 1)
    if sample < 1:
        raise ValueError("trace_sample is 1 for every operation, or more: not 0")
    return sample


def _compression(name: str | None) -> int:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"compression must be a str or None, not {type(name).__name__}")
    return SNAPPY if name == "auto" else codec_named(name)


def _clip(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def _comparator(
    comparator: Comparator | Callable[[bytes, bytes], int] | None, name: str | bytes | None
) -> Comparator:
    if isinstance(name, bytes):
        name = name.decode("utf-8")
    if comparator is None:
        if name is not None:
            raise ValueError("comparator_name is given without a comparator")
        return BYTEWISE
    if hasattr(comparator, "compare"):
        given = cast(Comparator, comparator)
        if name is not None and name != given.name:
            raise ValueError(f"comparator_name is {name!r}, the comparator says {given.name!r}")
        return given
    if not callable(comparator):
        raise TypeError(
            "comparator must be a function of two keys, or an object with the members of"
            f" lsmkv.Comparator, not {type(comparator).__name__}"
        )
    if name is None:
        raise ValueError("a comparator function needs a comparator_name, which is kept on disk")
    return CallableComparator(comparator, name)


def _filter_policy(
    bits: FilterBits | None, policy: FilterPolicy | None, order: Comparator
) -> tuple[FilterPolicy | None, LevelBits | None]:
    """The filter policy, and the bits a key by level if they differ."""
    level_bits: LevelBits | None = None
    if bits is not None and not isinstance(bits, (int, float)):
        level_bits = LevelBits.parse(bits)
        bits = level_bits.average
    if policy is not None:
        for member in ("name", "create_filter", "key_may_match"):
            if not hasattr(policy, member):
                raise TypeError(f"filter_policy lacks {member!r}: see lsmkv.FilterPolicy")
        if bits is None:
            return policy, None
        if level_bits is None or not isinstance(policy, (BloomFilterPolicy, Bloom64Policy)):
            raise ValueError(
                "give bloom_filter_bits or filter_policy, not both; only bits by level go with a"
                " BloomFilterPolicy or Bloom64Policy"
            )
        return policy.with_bits(bits), level_bits
    if bits is None:
        # A comparator that calls different bytes equal would get wrong misses from a hash.
        return BloomFilterPolicy(10) if equal_means_identical(order) else None, None
    if bits == 0:
        return None, None
    if bits < 0:
        raise ValueError(f"bloom_filter_bits cannot be negative: {bits}")
    if isinstance(bits, bool):
        raise TypeError("bloom_filter_bits must be a number, not bool")
    return BloomFilterPolicy(min(bits, _MOST_BITS_PER_KEY)), level_bits


def _filter_layout(layout: str | None, policy: FilterPolicy | None) -> FilterLayout:
    preferred: str = getattr(policy, "preferred_layout", "block")
    chosen = preferred if layout is None else layout
    if chosen == "block" and isinstance(policy, BinaryFusePolicy):
        raise ValueError("BinaryFusePolicy makes filters for whole tables: filter_layout='table'")
    if chosen == "block":
        return "block"
    if chosen == "table":
        return "table"
    if chosen == "both":
        return "both"
    raise ValueError(f"filter_layout is 'block', 'table' or 'both', not {layout!r}")


def _prefix_extractor(
    given: Prefixes | None, name: str | None, order: Comparator
) -> PrefixExtractor | None:
    if given is None:
        if name is not None:
            raise ValueError("prefix_extractor_name is given without a prefix_extractor")
        return None
    if type(order) is not BytewiseComparator:
        raise ValueError(
            "prefix_extractor takes the bytewise order, where keys of one prefix are neighbours;"
            f" the order here is {order.name!r}"
        )
    extractor: PrefixExtractor
    if isinstance(given, int):
        extractor = FixedPrefix(given)
    elif isinstance(given, bytes):
        extractor = DelimitedPrefix(given)
    elif hasattr(given, "extract") and hasattr(given, "name"):
        extractor = cast(PrefixExtractor, given)
    elif callable(given):
        if name is None:
            raise ValueError("a function needs a prefix_extractor_name, which is kept on disk")
        return CallablePrefix(given, name)
    else:
        raise TypeError(
            "prefix_extractor must be a number of bytes, a delimiter, a function of a key, or an"
            f" object with the members of lsmkv.PrefixExtractor, not {type(given).__name__}"
        )
    if name is not None and name != extractor.name:
        raise ValueError(
            f"prefix_extractor_name is {name!r}, the extractor says {extractor.name!r}"
        )
    return extractor
