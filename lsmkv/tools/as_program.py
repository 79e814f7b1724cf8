"""The option ``--as``: records of other programs' stores by names and text."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import lsmkv
from lsmkv.files.programs import PROGRAMS
from lsmkv.shards import Shards
from lsmkv.tools.console import say
from lsmkv.tools.decoded import Texts, decoder_of, program_of


class Family(StrEnum):
    """The programs whose records are shown decoded; raw shows the bytes."""

    CHROMIUM = "chromium"
    BEDROCK = "bedrock"
    BITCOIN = "bitcoin"
    RAW = "raw"


As = Annotated[
    Family | None,
    typer.Option(
        "--as",
        help="Show the keys and values of this program by names and text. By default, on a"
        " terminal alone, those of a program that is recognized.",
    ),
]


def texts_of(
    db: lsmkv.DB | Shards, path: str, family: Family | None, is_guessed: bool
) -> Texts | None:
    """Return the decoding of this store's records: ``family``'s if given, or, if ``is_guessed``,
    that of the recognized program, which is reported on stderr.  None: show them as they are."""
    if family is Family.RAW or (family is None and not is_guessed):
        return None
    program = None if isinstance(db, Shards) else program_of(db, path)
    if family is not None and (program is None or program.family != family):
        # Of Chromium's, IndexedDB alone has an order of keys, by which it was recognized.
        program = next(one for one in PROGRAMS[1:] if one.family == family)
    decoder = decoder_of(db, program)
    if program is None or decoder is None:
        return None
    if family is None:
        say(f"{program.name}, decoded (--as raw shows bytes)")
    return Texts(program.family, decoder)


def refuse_hex(family: Family | None, is_hex: bool) -> None:
    """``ValueError`` if bytes are to be shown both in hexadecimal and decoded."""
    if is_hex and family not in (None, Family.RAW):
        raise ValueError(f"--hex shows bytes: it cannot be combined with --as {family}")
