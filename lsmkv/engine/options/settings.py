"""The settings of an open store, made from the keywords of ``lsmkv.DB`` and checked.

Two defaults differ from LevelDB's: checksums are always verified, and filters are on (10 bits a
key).  :class:`Options` is the one record of settings, and the engine passes it on as it is.  Its
comparator and filter policy are for user keys.  Tables wrap the comparator in an
:class:`~lsmkv.engine.format.keys.InternalKeyComparator`, and make their filters from user keys.

Annotations are evaluated here: ``NamedTuple`` compiles each one that is text, which took a
twentieth of the time of ``import lsmkv``.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Unpack, cast

from lsmkv.engine.env.base import Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import ComparatorMismatchError
from lsmkv.engine.filter.known import is_known
from lsmkv.engine.filter.levels import LevelBits
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.prefix import PrefixExtractor, is_own
from lsmkv.engine.options.arguments import (
    OPTIONS,
    BackgroundWork,
    FilterLayout,
    OptionArguments,
    refuse_unknown,
)
from lsmkv.engine.options.filters import filter_layout_for, filter_policy_for, prefix_extractor_for
from lsmkv.engine.options.option import KIB, MIB
from lsmkv.engine.options.shown import OptionsDoc
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    BytewiseComparator,
    CallableComparator,
    Comparator,
    ReverseBytewiseComparator,
)
from lsmkv.engine.util.compression import DEFAULT_MAX_BLOCK_BYTES, SNAPPY

L0_COMPACTION_TRIGGER = 4
L0_SLOWDOWN_WRITES_TRIGGER: Final = 8
L0_STOP_WRITES_TRIGGER: Final = 12
MAX_MEM_COMPACT_LEVEL = 2


class Options(NamedTuple):
    """The settings of an open store: ``db.options``.  Sizes are in bytes.

    They are made from the keywords of ``lsmkv.DB``, which :class:`~lsmkv.OptionArguments` declares.
    A field that is described below differs from the keyword, or has no keyword.

    >>> from lsmkv import DB
    >>> from lsmkv.engine.util.compression import SNAPPY
    >>> with DB(":memory:", block_size=16 * 1024) as db:
    ...     db.options.block_size, db.options.compression == SNAPPY, db.options.filter_policy
    (16384, True, BloomFilterPolicy(10))
    """

    comparator: Comparator = BYTEWISE
    create_if_missing: bool = False
    error_if_exists: bool = False
    paranoid_checks: bool = False
    write_buffer_size: int = 4 * MIB
    max_open_files: int = 1000
    table_cache_bytes: int | None = None
    map_tables: bool = False
    block_cache: BlockCache[Any, Any] | None = None
    """The cache in use, the store's own or the one that was given; None caches nothing."""
    block_size: int = 4 * KIB
    block_restart_interval: int = 16
    max_file_size: int = 2 * MIB
    compression: int = SNAPPY
    """The codec of new blocks, as a number: see :mod:`lsmkv.engine.util.compression`."""
    auto_compression: bool = False
    """True if ``compression`` was left to the store: opening for writing reads a few bytes of its
    two newest and two oldest tables to find out which codec they have."""
    zstd_compression_level: int = 1
    reuse_logs: bool = False
    mapped_log: bool = True
    filter_policy: FilterPolicy | None = None
    """The policy of new tables; None writes no filters."""
    filter_layout: FilterLayout = "block"
    filter_bits: LevelBits | None = None
    """The bits a key by level, if ``bloom_filter_bits`` gives them by level."""
    filter_last_level: bool = True
    prefix_extractor: PrefixExtractor | None = None
    flush_prefix: str = ""
    seek_compaction: bool = True
    background: BackgroundWork = "auto"
    max_block_bytes: int = DEFAULT_MAX_BLOCK_BYTES
    read_only: bool = False
    env: Env | None = None
    publish_stats: bool = False
    trace: str | None = None
    trace_sample: int = 1
    lock_timeout: float = 0.0


cast(Any, Options).__doc__ = OptionsDoc(Options.__doc__ or "")


def make_options(**arguments: Unpack[OptionArguments]) -> Options:
    """The options for these keywords, checked.

    ``TypeError`` and ``ValueError`` say which setting is wrong and which values it accepts.
    """
    given = cast(dict[str, Any], arguments)
    refuse_unknown(given, OPTIONS, "DB")
    of = {
        name: option.checked(name, given.get(name, option.default))
        for name, option in OPTIONS.items()
    }
    order = _comparator(of["comparator"], of["comparator_name"])
    env = of["env"]
    if of["read_only"] and (of["create_if_missing"] or of["error_if_exists"]):
        raise ValueError("read_only cannot be combined with create_if_missing or error_if_exists")
    if of["read_only"] and of["publish_stats"]:
        raise ValueError("publish_stats cannot be combined with read_only: it writes a file")
    if env is not None and not isinstance(env, Env):
        raise TypeError(f"env must derive from lsmkv.engine.env.base.Env, not {type(env).__name__}")
    policy, filter_bits = filter_policy_for(of["bloom_filter_bits"], of["filter_policy"], order)
    extractor = prefix_extractor_for(of["prefix_extractor"], of["prefix_extractor_name"], order)
    if of["flush_prefix"] and type(order) is not BytewiseComparator:
        raise ValueError(f"flush_prefix requires the bytewise order, not {order.name!r}")
    if of["background"] == "process":
        _check_loadable(order, policy, extractor, env)
    cache = of["block_cache"]
    if cache is None and of["lru_cache_size"] > 0:
        cache = BlockCache(of["lru_cache_size"])
    in_force = {name: of[name] for name in Options._fields if name in of}
    in_force |= {
        "comparator": order,
        "block_cache": cache,
        "auto_compression": given.get("compression", "auto") == "auto",
        "filter_policy": policy,
        "filter_layout": filter_layout_for(of["filter_layout"], policy),
        "filter_bits": filter_bits,
        "prefix_extractor": extractor,
    }
    return Options(**in_force)


def in_stored_order(arguments: OptionArguments, error: ComparatorMismatchError) -> Options:
    """The options for a store whose order differs from the one that it was opened with.

    A store that is opened without a ``comparator`` is opened in its own order, if lsmkv provides
    that order.  Raises ``error`` if it is another order, or if a comparator was given.
    """
    order = None if arguments.get("comparator") is not None else own_comparator(error.stored)
    if order is None:
        raise error
    return options_with(arguments, order)


def options_with(arguments: OptionArguments, order: Comparator) -> Options:
    """The options for these keywords and this comparator."""
    own = arguments.copy()
    own["comparator"] = order
    return make_options(**own)


INDEXED_DB_ORDER = "idb_cmp1"
OWN_COMPARATORS = (BYTEWISE.name, REVERSE_BYTEWISE.name, INDEXED_DB_ORDER)
"""The names of the comparators that lsmkv provides."""


def likely_comparators(path: str) -> list[str]:
    """The names of those that lsmkv provides; first the one that a store in ``path`` most likely
    has.

    Chromium gives the directories of its IndexedDB a special name.

    >>> likely_comparators("https_example.org_0.indexeddb.leveldb")[0]
    'idb_cmp1'
    """
    names = list(OWN_COMPARATORS)
    if path.endswith(".indexeddb.leveldb"):
        names.insert(0, names.pop())
    return names


def own_comparator(name: str) -> Comparator | None:
    """The comparator of this name, if lsmkv provides it.

    >>> own_comparator("leveldb.ReverseBytewiseComparator").name, own_comparator("idb_cmp1").name
    ('leveldb.ReverseBytewiseComparator', 'idb_cmp1')
    >>> own_comparator("example.ByLength") is None
    True
    """
    if name == INDEXED_DB_ORDER:
        from lsmkv.engine.indexeddb import IndexedDBComparator  # noqa: PLC0415 - few stores are Chromium's

        return IndexedDBComparator()
    for order in (BYTEWISE, REVERSE_BYTEWISE):
        if order.name == name:
            return order
    return None


def has_own_parts_alone(
    order: Comparator, policy: FilterPolicy | None, extractor: PrefixExtractor | None
) -> bool:
    """Return True if comparator, filter policy and prefix extractor are lsmkv's, so that another
    process can load them by name."""
    return (
        type(order) in (BytewiseComparator, ReverseBytewiseComparator)
        and is_known(policy)
        and is_own(extractor)
    )


def _check_loadable(
    order: Comparator,
    policy: FilterPolicy | None,
    extractor: PrefixExtractor | None,
    env: Env | None,
) -> None:
    """Refuse what a worker process cannot load."""
    if not has_own_parts_alone(order, policy, extractor) or type(env) not in (type(None), LocalEnv):
        raise ValueError(
            "background='process' takes no custom comparator, filter_policy, prefix_extractor or"
            " env: another process cannot load them"
        )


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
