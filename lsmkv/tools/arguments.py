"""What the commands of ``lsmkv`` have in common: arguments, and opening what they name."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, BinaryIO

import typer

import lsmkv

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The store's directory.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, as text in UTF-8.")]
Hex = Annotated[bool, typer.Option("--hex", help="Keys and values in hexadecimal.")]
Create = Annotated[bool, typer.Option("--create", help="Make the store if there is none.")]


def open_to_read(directory: str) -> lsmkv.DB:
    """A store as it is now: nothing is written, no lock is taken, a live writer is no hindrance."""
    return lsmkv.DB(directory, read_only=True)


@contextlib.contextmanager
def open_input(file: str) -> Iterator[BinaryIO]:
    """A file's bytes; ``-`` is stdin."""
    if file == "-":
        yield sys.stdin.buffer
        return
    with open(file, "rb") as stream:
        yield stream
