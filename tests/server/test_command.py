"""A command: its arity, and the keys of its requests."""

from __future__ import annotations

import pytest

from lsmkv.server.command import Table
from lsmkv.server.commands import COMMANDS
from lsmkv.server.registry import command, container
from lsmkv.server.resp import Reply
from lsmkv.server.session import Session


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
        ("SORT a STORE d GET store ASC", "a d"),
        ("SORT a STORE by STORE d", "a d"),
        ("PFMERGE d", "d"),
        ("OBJECT ENCODING a", "a"),
        ("XADD a * f v", "a"),
        ("XREAD COUNT 2 STREAMS a b 0 0", "a b"),
        ("XREADGROUP GROUP STREAMS c STREAMS a >", "a"),
        ("XGROUP CREATE a g 0", "a"),
        ("XINFO STREAM a", "a"),
        ("PING", ""),
        ("PUBLISH a b", ""),
    ],
)
def test_keys(request_: str, keys: str) -> None:
    words = request_.encode().split()
    one = COMMANDS[words[0]]
    one = one.subcommands.get(words[1], one) if len(words) > 1 else one
    assert [use.key for use in one.keys_of(words)] == keys.encode().split()


@pytest.mark.parametrize(
    "line", ["ZINTER x a", "ZINTER 2 a", "ZINTER 0 a", "ZINTER -1 a", "XREAD COUNT 2 a"]
)
def test_keys_that_are_not_said_right(line: str) -> None:
    words = line.encode().split()
    assert COMMANDS[words[0]].keys_of(words) == []


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
