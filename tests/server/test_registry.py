"""The tables of commands: what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsmkv.server.command import Command, Table
from lsmkv.server.commands import COMMANDS
from lsmkv.server.commands.raw import RAW_COMMANDS
from lsmkv.server.registry import command, container
from lsmkv.server.resp import CommandError, Reply
from lsmkv.server.session import Session

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
        for spec in one.traits.keys:
            assert spec.step > 0, one.name
            assert spec.first < abs(one.arity), one.name
            assert spec.counted or spec.last >= spec.first or spec.last < 0, one.name


def test_raw_commands_of_the_same_name_take_the_same_arguments() -> None:
    for name, one in RAW_COMMANDS.items():
        if name in COMMANDS:
            assert (one.arity, one.writes) == (COMMANDS[name].arity, COMMANDS[name].writes), name
    assert set(RAW_COMMANDS) - set(COMMANDS) == {b"LSMKV.RANGE"}


@pytest.mark.parametrize(
    ("request_", "keys"),
    [
        ("GET a", "a"),
        ("MGET a b c", "a b c"),
        ("MSET a 1 b 2", "a b"),
        ("DEL a b", "a b"),
        ("RENAME a b", "a b"),
        ("BLPOP a b 0", "a b"),
        ("LMPOP 2 a b LEFT COUNT 3", "a b"),
        ("BLMPOP 0 2 a b LEFT", "a b"),
        ("SINTERCARD 2 a b LIMIT 3", "a b"),
        ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d a b"),
        ("ZINTER 2 a b WITHSCORES", "a b"),
        ("SORT a STORE b STORE c", "a c"),
        ("SORT a BY w_* GET #", "a"),
        ("OBJECT ENCODING a", "a"),
        ("PING", ""),
        ("PUBLISH a b", ""),
    ],
)
def test_keys(request_: str, keys: str) -> None:
    words = request_.encode().split()
    one = COMMANDS[words[0]]
    one = one.subcommands.get(words[1], one) if len(words) > 1 else one
    assert [use.key for use in one.keys_of(words)] == keys.encode().split()


@pytest.mark.parametrize("line", ["ZINTER x a", "ZINTER 2 a", "ZINTER 0 a", "ZINTER -1 a"])
def test_keys_that_are_not_said_right(line: str) -> None:
    words = line.encode().split()
    with pytest.raises(CommandError, match="Invalid arguments"):
        COMMANDS[words[0]].keys_of(words)


def test_arity() -> None:
    table: Table = {}

    def handler(session: Session, args: list[bytes]) -> Reply:
        """First line.

        Second.
        """

    command("TWO", 2, group="g", table=table)(handler)
    command("MORE", -2, "write", group="g", table=table)(handler)
    container("OUTER", group="g", table=table)
    command("OUTER INNER", 2, group="g", table=table)(handler)
    assert [count for count in range(5) if table[b"TWO"].accepts(count)] == [2]
    assert [count for count in range(5) if table[b"MORE"].accepts(count)] == [2, 3, 4]
    assert sorted(table[b"OUTER"].subcommands) == [b"HELP", b"INNER"]
    assert table[b"TWO"].summary == "First line."
    assert (table[b"TWO"].writes, table[b"MORE"].writes) == (False, True)
