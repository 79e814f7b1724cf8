"""Arguments that several commands take, and how a store or file that they name is opened."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, Unpack, cast

import typer

import lsmkv
from lsmkv import OptionArguments
from lsmkv.engine.filter.known import policy_from_text
from lsmkv.engine.indexeddb import IndexedDBComparator
from lsmkv.engine.options import FilterLayout
from lsmkv.engine.util.urls import is_url
from lsmkv.tools.console import ERROR, say
from lsmkv.tools.next_step import is_set_directory
from lsmkv.tools.options import argument
from lsmkv.tools.text import from_argument

if TYPE_CHECKING:
    from lsmkv.shards import Shards


class ComparatorName(StrEnum):
    """The comparators that lsmkv provides."""

    BYTEWISE = "leveldb.BytewiseComparator"
    REVERSE = "leveldb.ReverseBytewiseComparator"
    INDEXED_DB = "idb_cmp1"


_COMPARATORS: dict[ComparatorName, Callable[[], lsmkv.Comparator]] = {
    ComparatorName.BYTEWISE: lsmkv.BytewiseComparator,
    ComparatorName.REVERSE: lsmkv.ReverseBytewiseComparator,
    ComparatorName.INDEXED_DB: IndexedDBComparator,
}
_comparator: ContextVar[ComparatorName | None] = ContextVar("_comparator", default=None)
_COMPARATOR = Annotated[
    ComparatorName | None,
    typer.Option(
        "--comparator",
        metavar="NAME",
        help="The order of keys, if the store does not name it: one of"
        f" {', '.join(ComparatorName)}.",
    ),
]


def with_comparator(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the option ``--comparator``, which holds for the stores that it opens."""

    @functools.wraps(command)
    def run(*, comparator: ComparatorName | None = None, **given: object) -> None:
        before = _comparator.set(comparator)
        try:
            command(**given)
        finally:
            _comparator.reset(before)

    own = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter("comparator", kind, default=None, annotation=_COMPARATOR)
    signature = own.replace(parameters=[*own.parameters.values(), option])
    run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    cast(Any, run).__signature__ = signature
    return run


def order_options() -> OptionArguments:
    """The keyword of ``lsmkv.DB`` for ``--comparator``; none without it."""
    name = _comparator.get()
    return {} if name is None else {"comparator": _COMPARATORS[name]()}


def refuse_order() -> None:
    """Raise ``ValueError`` if ``--comparator`` is given for a shard set."""
    if order_options():
        raise ValueError("--comparator is for stores: shard sets are in bytewise order")


def is_shard_set(where: str) -> bool:
    """True for a shard set: a URL, or a directory with versions and without a store."""
    return is_url(where) or is_set_directory(where)


def store_only(context: typer.Context, where: str | None) -> str | None:
    """The callback of an argument that names a store: a shard set ends the command."""
    if where is not None and not context.resilient_parsing and is_shard_set(where):
        # The first word is the program's, however it was started.
        command = context.command_path.partition(" ")[2]
        say(f"{where} is a shard set, and 'lsmkv {command}' is for stores")
        raise typer.Exit(ERROR)
    return where


Directory = Annotated[str, argument("DIR", "The store's directory.", callback=store_only)]
Stored = Annotated[str, argument("DIR|URL", "A store's directory, or a shard set.")]
Key = Annotated[str, argument("KEY", "The key, as text in UTF-8.")]
Hex = Annotated[bool, typer.Option("--hex", help="Keys and values in hexadecimal.")]
HexKeys = Annotated[bool, typer.Option("--hex", help="Keys in hexadecimal.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, with keys as 'export' has them.")]
Create = Annotated[bool, typer.Option("--create", help="Create the store if it does not exist.")]
Start = Annotated[str | None, typer.Option(metavar="KEY", help="First key, included.")]
Stop = Annotated[str | None, typer.Option(metavar="KEY", help="End key, not included.")]
Prefix = Annotated[str | None, typer.Option(metavar="KEY", help="Only keys that begin with this.")]


class Bounds(NamedTuple):
    """The keys that a command is limited to, as the keywords of ``DB.iterator``."""

    start: bytes | None
    stop: bytes | None
    prefix: bytes | None


def key_bounds(start: str | None, stop: str | None, prefix: str | None, is_hex: bool) -> Bounds:
    """The bounds that were given on the command line; ``ValueError`` for a prefix with others."""
    if prefix is not None and (start is not None or stop is not None):
        raise ValueError("give --prefix, or --start and --stop, not both")
    texts = (start, stop, prefix)
    return Bounds(*[None if text is None else from_argument(text, is_hex) for text in texts])


def open_to_read(directory: str) -> lsmkv.DB:
    """Open a store for reading: takes no lock, writes nothing, and works while a writer has the
    store open."""
    own: OptionArguments = {"read_only": True}
    return lsmkv.DB(directory, **(order_options() | own))


def open_stored(where: str) -> lsmkv.DB | Shards:
    """Open a store for reading, or the newest version of a shard set."""
    if not is_shard_set(where):
        return open_to_read(where)
    refuse_order()
    from lsmkv.tools.shard_sets import open_shards  # noqa: PLC0415 - a store needs none of it

    return open_shards(where)


def open_to_write(
    directory: str, create: bool = False, **options: Unpack[OptionArguments]
) -> lsmkv.DB:
    """Open a store for writing: takes its lock and flushes its log to tables.

    A store that processes share is joined, unless options are given, which are for the owner.
    """
    own: OptionArguments = {"create_if_missing": create}
    try:
        return lsmkv.DB(directory, **(options | order_options() | own))
    except lsmkv.LockedError as error:
        if options or not error.shared:
            raise
    return lsmkv.SharedDB(directory, **order_options())


def filter_arguments(text: str | None, layout: str | None, prefix: str | None) -> OptionArguments:
    """The keywords of ``lsmkv.DB`` for filters that the command line requests.

    >>> filter_arguments("bloom64:auto:10", None, ":")
    {'filter_policy': Bloom64Policy(10), 'bloom_filter_bits': 'auto:10', 'prefix_extractor': b':'}
    >>> filter_arguments("bloom:16,12,10", "both", "8")
    {'filter_policy': BloomFilterPolicy(10), 'bloom_filter_bits': (16.0, 12.0, 10.0), \
'filter_layout': 'both', 'prefix_extractor': 8}
    """
    options: OptionArguments = {}
    if text is not None:
        text = f"bloom:{text}" if text.startswith("auto:") else text
        kind, _, bits = text.partition(":")
        by_level = bits.startswith("auto:") or "," in bits
        policy = policy_from_text(kind if by_level else text)
        if policy is None:
            options["bloom_filter_bits"] = 0
        else:
            options["filter_policy"] = policy
        if bits.startswith("auto:"):
            options["bloom_filter_bits"] = bits
        elif by_level:
            options["bloom_filter_bits"] = tuple(map(float, bits.split(",")))
    if layout is not None:
        options["filter_layout"] = cast(FilterLayout, layout)
    if prefix is not None:
        options["prefix_extractor"] = int(prefix) if prefix.isdecimal() else prefix.encode()
    return options


@contextlib.contextmanager
def open_input(file: str) -> Iterator[BinaryIO]:
    """Open a file for reading its bytes; ``-`` is stdin."""
    if file == "-":
        yield sys.stdin.buffer
        return
    with open(file, "rb") as stream:
        yield stream
