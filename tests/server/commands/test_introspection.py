"""COMMAND, and HELP of all commands that have it."""

from __future__ import annotations

import pytest
from serving import Client

from lsmkv.server.commands import COMMANDS


@pytest.mark.parametrize(
    "name", ["CLIENT", "COMMAND", "CONFIG", "MEMORY", "MODULE", "OBJECT", "PUBSUB", "SLOWLOG"]
)
def test_help(client: Client, name: str) -> None:
    lines = client(f"{name} HELP")
    assert lines[0].decode() == f"{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    assert lines[-2:] == [b"HELP", b"    Print this help."]
    shown = {line.split()[0] for line in lines[1:] if not line.startswith(b" ")}
    assert shown == set(COMMANDS[name.encode()].subcommands)
    assert client(f"{name} HELP x") == (
        f"ERR wrong number of arguments for '{name.lower()}|help' command"
    )


def test_about_commands(client: Client) -> None:
    offered = len(COMMANDS)
    assert offered > 100
    client.plays(
        ("COMMAND COUNT", offered),
        ("COMMAND INFO get none config|get", [
            [b"get", 2, [b"fast", b"readonly"], 1, 1, 1, [b"@fast", b"@read", b"@string"], [],
             [[b"flags", [b"RO", b"access"],
               b"begin_search", [b"type", b"index", b"spec", [b"index", 1]],
               b"find_keys", [b"type", b"range",
                              b"spec", [b"lastkey", 0, b"keystep", 1, b"limit", 0]]]], []],
            None,
            [b"config|get", -3, [b"admin", b"loading", b"noscript", b"stale"], 0, 0, 0,
             [b"@admin", b"@dangerous", b"@slow"], [], [], []],
        ]),
        ("COMMAND GETKEYS MSET a 1 b 2", [b"a", b"b"]),
        ("COMMAND GETKEYS PING x", "ERR The command has no key arguments"),
        ("COMMAND GETKEYS NONE x", "ERR Invalid command specified"),
        ("COMMAND GETKEYS", "ERR wrong number of arguments for 'command|getkeys' command"),
        ("COMMAND GETKEYS GET", "ERR wrong number of arguments for 'command|getkeys' command"),
        ("COMMAND GETKEYS ZINTER 2 a", "ERR Invalid arguments specified for command"),
        ("COMMAND GETKEYSANDFLAGS SET a 1 GET", [[b"a", [b"RW", b"access", b"update"]]]),
        ("COMMAND GETKEYSANDFLAGS SORT a STORE b",
         [[b"a", [b"RO", b"access"]], [b"b", [b"OW", b"update"]]]),
        ("COMMAND LIST FILTERBY PATTERN client|k*", [b"client|kill"]),
        ("COMMAND LIST FILTERBY MODULE none", []),
        ("COMMAND LIST FILTERBY ACLCAT transaction",
         [b"multi", b"exec", b"discard", b"watch", b"unwatch"]),
        ("COMMAND LIST FILTERBY FOO x", "ERR syntax error"),
        ("COMMAND GETKEYS GET a b", "ERR Invalid number of arguments specified for command"),
        ("COMMAND FOO", "ERR unknown subcommand 'FOO'. Try COMMAND HELP."),
    )  # fmt: skip
    assert len(client("COMMAND")) == offered < len(client("COMMAND LIST"))
    movable = {one[0] for one in client("COMMAND") if b"movablekeys" in one[2]}
    assert {b"sort", b"sort_ro", b"zunionstore", b"lmpop"} < movable
    assert b"set" not in movable
    client("HELLO 3")
    docs = client("COMMAND DOCS")
    assert docs[b"get"][b"summary"] == b"Return the value of a key."
    assert docs[b"client"][b"subcommands"][b"client|id"][b"group"] == b"connection"
    assert set(client("COMMAND DOCS get none")) == {b"get"}
