"""Arguments that several commands take, and how a store or file that they name is opened."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, BinaryIO, NamedTuple

import typer

import lsmkv
from lsmkv.tools.text import from_argument

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The store's directory.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, as text in UTF-8.")]
Hex = Annotated[bool, typer.Option("--hex", help="Keys and values in hexadecimal.")]
HexKeys = Annotated[bool, typer.Option("--hex", help="Keys in hexadecimal.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, with keys as 'export' has them.")]
Create = Annotated[bool, typer.Option("--create", help="Create the store if it does not exist.")]
Start = Annotated[
    str | None, typer.Option(metavar="KEY", help="From this key on, itself included.")
]
Stop = Annotated[str | None, typer.Option(metavar="KEY", help="Up to this key, itself left out.")]
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
    """Open a store for reading: takes no lock, writes nothing, and works beside a writer."""
    return lsmkv.DB(directory, read_only=True)


def open_to_write(directory: str, create: bool = False) -> lsmkv.DB:
    """Open a store for writing: takes its lock and flushes its log to tables."""
    return lsmkv.DB(directory, create_if_missing=create)


@contextlib.contextmanager
def open_input(file: str) -> Iterator[BinaryIO]:
    """Open a file for reading its bytes; ``-`` is stdin."""
    if file == "-":
        yield sys.stdin.buffer
        return
    with open(file, "rb") as stream:
        yield stream
