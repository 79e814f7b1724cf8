"""What the commands of ``lsmkv`` have in common: arguments, and opening what they name."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, BinaryIO, TypeVar

import typer

import lsmkv
from lsmkv.indexeddb import IndexedDBComparator

T = TypeVar("T")

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The store's directory.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, as text in UTF-8.")]
Hex = Annotated[bool, typer.Option("--hex", help="Keys and values in hexadecimal.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, with keys as 'export' has them.")]
Create = Annotated[bool, typer.Option("--create", help="Make the store if there is none.")]

KNOWN_ORDERS: dict[str, lsmkv.Comparator] = {
    order.name: order for order in (lsmkv.ReverseBytewiseComparator(), IndexedDBComparator())
}
"""Beside the default one: what a MANIFEST may name, and lsmkv can follow unasked."""


def open_to_read(directory: str) -> lsmkv.DB:
    """A store as it is now: nothing is written, no lock is taken, a live writer is no hindrance.

    It is read in the order that it is kept in, if that is one of lsmkv's own.
    """
    return in_its_order(lsmkv.DB, directory, read_only=True)


def open_to_write(directory: str, create: bool = False) -> lsmkv.DB:
    """A store to change: takes the lock, and brings the log into tables.  In its own order, too."""
    return in_its_order(lsmkv.DB, directory, create_if_missing=create)


def in_its_order(action: Callable[..., T], directory: str, **options: Any) -> T:
    """Do something that takes the keywords of ``lsmkv.DB``, in the order that the store is kept in.

    The order is told by the store itself; one that is not lsmkv's own is refused.
    """
    try:
        return action(directory, **options)
    except lsmkv.ComparatorMismatchError as error:
        order = KNOWN_ORDERS.get(error.stored)
        if order is None:
            raise
    return action(directory, **options, comparator=order)


@contextlib.contextmanager
def open_input(file: str) -> Iterator[BinaryIO]:
    """A file's bytes; ``-`` is stdin."""
    if file == "-":
        yield sys.stdin.buffer
        return
    with open(file, "rb") as stream:
        yield stream
