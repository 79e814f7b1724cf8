"""The reference of the server names its commands, options, settings, and the bytes of records."""

from __future__ import annotations

import re

import typer
from documents import ROOT, section, table_rows
from typer.core import TyperGroup

from lsmkv.server import encoding
from lsmkv.server.commands import COMMANDS
from lsmkv.server.commands.raw import RAW_COMMANDS
from lsmkv.testing import serving
from lsmkv.tools.app import app

REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "serve.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (REFERENCE / "redis-commands.md").read_text(encoding="utf-8")


def rows(text: str) -> dict[str, str]:
    """The first two columns of a section's table, without its head."""
    return {first: second for first, second, *_ in table_rows(text)}


def named(text: str) -> list[str]:
    """The names of commands in a text."""
    return re.findall(r"\b[A-Z][A-Z_.]+[A-Z]\b", text)


def test_the_table_has_every_command_once() -> None:
    table = rows(section(COMMANDS_PAGE, "Commands"))
    commands = [name for row in table.values() for name in row.split()]
    there = {name.decode() for name in COMMANDS}
    assert sorted(commands) == sorted(there)
    assert all(row.split() == sorted(row.split()) for row in table.values())


def test_the_raw_commands_are_named() -> None:
    text = section(COMMANDS_PAGE, "Commands of raw stores").partition("\n\n    ")[0]
    table = rows(section(COMMANDS_PAGE, "Commands"))
    assert "transactions and pub/sub" in " ".join(text.split())
    commands = {*named(text), *table["transactions"].split(), *table["pub/sub"].split()}
    assert commands - {"NX", "XX"} | {"LSMKV.RANGE"} == {name.decode() for name in RAW_COMMANDS}
    assert "    LSMKV.RANGE start stop" in COMMANDS_PAGE


def test_the_table_has_every_option_once() -> None:
    options = re.findall(r"`(--[\w-]+)", "\n".join(rows(section(PAGE, "Options"))))
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    with group.make_context("lsmkv", ["serve"]) as context:
        serve = group.get_command(context, "serve")
    assert serve is not None
    there = [name for one in serve.params for name in (*one.opts, *one.secondary_opts)]
    assert sorted(options) == sorted(name for name in there if name.startswith("--"))


def test_the_table_has_every_setting_once() -> None:
    first = "\n".join(rows(section(PAGE, "Settings")))
    settings = re.findall(r"`([\w-]+)`", first)
    with serving() as server:
        there = server.settings.shown()
    assert sorted(settings) == sorted(name for name in there if not name.startswith("tls-"))


def test_the_records_begin_as_the_table_says() -> None:
    marks = re.findall(r"^\| `(\S+?)`", section(PAGE, "Records"), re.MULTILINE)
    names = ("FORMAT_KEY", "DATABASE", "CEILINGS", "EXPIRY_BOUND", "GARBAGE_ENDS", "KEY")
    names += ("ELEMENT", "RANKED", "GROUP", "EXPIRY", "GARBAGE", "CURSOR", "SCRIPT")
    names += ("IMPORT", "FIELD_EXPIRY_BOUND", "FIELD_EXPIRY", "FIELD_TIME", "FIELD_ORDER")
    names += ("STAGED", "LIBRARY")
    assert set(marks) == {getattr(encoding, name).decode() for name in names}
    formats = encoding.FORMAT.decode(), encoding.FORMAT_2.decode()
    assert "| `!format` | `{}`; `{}` once a string was in chunks, or".format(*formats) in PAGE


def test_the_kinds_have_the_numbers_of_the_page() -> None:
    kinds = ("string", "hash", "list", "set", "sorted set", "Bloom filter", "stream")
    kinds += ("string in chunks",)
    numbers = [encoding.STRING, encoding.HASH, encoding.LIST, encoding.SET, encoding.SORTED_SET]
    numbers += [encoding.BLOOM, encoding.STREAM, encoding.LONG_STRING]
    pairs = zip(numbers, kinds, strict=True)
    shown = ", ".join(f"{number} {kind}" for number, kind in pairs)
    shown += f", {encoding.EXPIRING_HASH} hash whose fields expire"
    assert f"| kind | 1 | {shown}; plus {encoding.EXPIRES} if it expires |" in PAGE
