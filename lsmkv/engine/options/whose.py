"""The options in force in a store that processes share (``lsmkv.SharedDB``).

Each process opens it with its own options.  :data:`WHOSE` says of each option whose value
counts.  A member learns the owner's from :func:`sent`, shows them by :func:`in_force`, and finds
out with :func:`differing` which of those that it was given are not in force.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from lsmkv.engine.filter.known import is_known, policy_from_text, policy_text
from lsmkv.engine.filter.levels import LevelBits
from lsmkv.engine.options.arguments import OPTIONS, OptionArguments
from lsmkv.engine.options.filters import filter_layout_for
from lsmkv.engine.options.settings import Options, make_options
from lsmkv.engine.util.compression import codec_name, codec_named

Whose = Literal["owner", "process", "files"]

WHOSE: Final[dict[str, Whose]] = {
    "create_if_missing": "process",
    "error_if_exists": "process",
    "read_only": "process",
    "paranoid_checks": "owner",
    "mapped_log": "owner",
    "reuse_logs": "owner",
    "write_buffer_size": "owner",
    "lru_cache_size": "process",
    "block_cache": "process",
    "max_open_files": "process",
    "table_cache_bytes": "process",
    "map_tables": "process",
    "max_file_size": "owner",
    "max_block_bytes": "process",
    "filter_last_level": "owner",
    "flush_prefix": "owner",
    "seek_compaction": "owner",
    "background": "owner",
    "publish_stats": "owner",
    "trace": "owner",
    "trace_sample": "owner",
    "lock_timeout": "process",
    "block_size": "owner",
    "block_restart_interval": "owner",
    "compression": "owner",
    "zstd_compression_level": "owner",
    "bloom_filter_bits": "owner",
    "filter_policy": "files",
    "filter_layout": "owner",
    "prefix_extractor": "files",
    "prefix_extractor_name": "files",
    "comparator": "files",
    "comparator_name": "files",
    "env": "process",
}
"""``owner``: the value of the process that owns the store; it writes the log and the tables.
``process``: each process has its own.  ``files``: all have the same, by name, and another one is
refused; the bits a key of a filter policy are the owner's."""

_FIELDS: Final = {
    "bloom_filter_bits": ("filter_policy", "filter_bits"),
    "filter_policy": ("filter_policy", "filter_bits"),
}
"""The fields of ``Options`` that an option decides, where there is not one of its name."""
_PLAIN: Final = [
    name
    for name, whose in WHOSE.items()
    if whose == "owner" and name in Options._fields and name != "compression"
]
_LONGEST: Final = 256
"""Characters that a value may take: a long path is not sent."""


def sent(options: Options) -> dict[str, Any]:
    """The owner's options as plain data.  A custom filter policy is left out: the members have one
    of the same name.

    >>> sent(make_options(compression="zstd", bloom_filter_bits=12))["filter_policy"]
    'bloom:12'
    """
    return {name: value for name, value in _plain(options).items() if len(repr(value)) <= _LONGEST}


def _plain(options: Options) -> dict[str, Any]:
    plain: dict[str, Any] = {name: getattr(options, name) for name in _PLAIN}
    plain["compression"] = codec_name(options.compression)
    plain["auto_compression"] = options.auto_compression
    if is_known(options.filter_policy):
        plain["filter_policy"] = policy_text(options.filter_policy)
        bits = options.filter_bits
        plain["filter_bits"] = None if bits is None else [bits.average, list(bits.levels)]
    return plain


def in_force(own: Options, received: object) -> Options:
    """The options of a member: its own, with those that its owner has sent.

    What is missing there, as from an older release, or is not valid here, is the member's own.

    >>> in_force(make_options(block_size=1 << 15), {"block_size": 8192, "new": 1}).block_size
    8192
    """
    if not isinstance(received, dict):
        return own
    found: dict[str, Any] = {}
    for name, value in received.items():
        try:
            found[name] = _read(name, value)
        except (LookupError, OverflowError, TypeError, ValueError):
            continue
    return own._replace(**found)


def _read(name: str, value: Any) -> Any:
    if name == "compression":
        return codec_named(value)
    if name == "auto_compression":
        return bool(value)
    if name == "filter_policy":
        return policy_from_text(str(value))
    if name == "filter_bits":
        return None if value is None else LevelBits(float(value[0]), tuple(map(float, value[1])))
    if name not in _PLAIN:
        raise LookupError(name)
    if name == "filter_layout":
        return filter_layout_for(value, None)
    return OPTIONS[name].checked(name, value)


def differing(given: OptionArguments, now: Options) -> dict[str, str]:
    """Both values, as text, of each given option of which another value is in force ``now``.

    >>> differing({"write_buffer_size": 1 << 20, "block_size": 4096}, make_options())
    {'write_buffer_size': '4194304, not 1048576'}
    """
    names = [name for name, value in given.items() if _is_given(name, value)]
    if not names:
        return {}
    without_cache: OptionArguments = {"lru_cache_size": 0}
    own = make_options(**(given | without_cache))
    own_values, values = _plain(own), _plain(now)
    found = {}
    for name in names:
        fields = _FIELDS.get(name, (name,))
        if name == "compression" and own.auto_compression:
            fields = ("auto_compression",)
        if any(own_values.get(field) != values.get(field) for field in fields):
            found[name] = f"{_text(now, name)}, not {_text(own, name)}"
    return found


def _is_given(name: str, value: object) -> bool:
    """Return True if the owner's value of this option may differ from the one that was given."""
    if name != "filter_policy" and WHOSE[name] != "owner":
        return False
    return value is not None or name == "compression"  # else None is the default


def _text(options: Options, name: str) -> str:
    if name == "compression":
        return repr("auto" if options.auto_compression else codec_name(options.compression))
    values = [getattr(options, field) for field in _FIELDS.get(name, (name,))]
    return " with ".join([repr(value) for value in values[:1] + [one for one in values[1:] if one]])
