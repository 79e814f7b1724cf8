"""The tables of commands: what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsmkv.server.command import Command, Table
from lsmkv.server.commands import COMMANDS
from lsmkv.server.commands.raw import RAW_COMMANDS

FLAGS = {"write", "readonly", "fast", "admin", "blocking", "no_auth", "no_multi", "control"}


FLAGS |= {"subscribed"}


def every(table: Table) -> Iterator[tuple[bytes, Command]]:
    for name, one in table.items():
        yield name, one
        for inner, subcommand in one.subcommands.items():
            yield name + b" " + inner, subcommand


@pytest.mark.parametrize("table", [COMMANDS, RAW_COMMANDS], ids=["ordinary", "raw"])
def test_every_command_says_what_it_is(table: Table) -> None:
    assert len(table) > 40
    for name, one in every(table):
        assert one.name.encode() == name == name.upper()
        assert one.subcommands or one.summary[-1:] in (".", "?"), f"{one.name} has no docstring"
        assert one.flags <= FLAGS, one.name
        assert not {"write", "readonly"} <= one.flags, one.name
        assert one.writes == ("write" in one.flags), one.name
        assert one.arity != 0, one.name
        assert one.group, one.name
        for spec in one.properties.keys:
            assert spec.step > 0, one.name
            optional = spec.keyword or one.name in ("PFMERGE", "SUNSUBSCRIBE")
            assert spec.first < abs(one.arity) or optional, one.name
            assert spec.counted or spec.last >= spec.first or spec.last < 0, one.name


def test_raw_commands_of_the_same_name_take_the_same_arguments() -> None:
    for name, one in RAW_COMMANDS.items():
        if name in COMMANDS:
            assert (one.arity, one.writes) == (COMMANDS[name].arity, COMMANDS[name].writes), name
    assert set(RAW_COMMANDS) - set(COMMANDS) == {b"LSMKV.RANGE"}


def test_a_pause_of_writes_takes_scripts_and_functions_for_writes() -> None:
    names = (b"EVAL", b"EVALSHA", b"FCALL", b"EVAL_RO", b"EVALSHA_RO", b"FCALL_RO")
    assert [COMMANDS[name].may_write for name in names] == [True] * 3 + [False] * 3
