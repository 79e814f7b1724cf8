"""Lists.  Those that block are in ``test_blocking.py``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Client, an_engine

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_both_ends(client: Client) -> None:
    client.plays(
        ("LPUSHX l a", 0),
        ("RPUSHX l a", 0),
        ("EXISTS l", 0),
        ("RPUSH l a b", 2),
        ("LPUSH l c d", 4),
        ("LPUSHX l e", 5),
        ("RPUSHX l f", 6),
        ("LRANGE l 0 -1", [b"e", b"d", b"c", b"a", b"b", b"f"]),
        ("LLEN l", 6),
        ("LPOP l", b"e"),
        ("RPOP l", b"f"),
        ("LPOP l 2", [b"d", b"c"]),
        ("RPOP l 0", []),
        ("RPOP l 5", [b"b", b"a"]),
        ("EXISTS l", 0),
        ("LPOP l", None),
        ("LPOP l 2", None),
        ("LLEN l", 0),
        ("LPOP l -1", "ERR value is out of range, must be positive"),
        ("LPOP l 1 2", "ERR wrong number of arguments for 'lpop' command"),
    )


def test_positions(client: Client) -> None:
    client.plays(
        ("RPUSH l a b c d", 4),
        ("LINDEX l 0", b"a"),
        ("LINDEX l -1", b"d"),
        ("LINDEX l 4", None),
        ("LINDEX l -5", None),
        ("LINDEX none 0", None),
        ("LSET l -2 C", b"OK"),
        ("LSET l 4 x", "ERR index out of range"),
        ("LSET none 0 x", "ERR no such key"),
        ("LRANGE l 1 2", [b"b", b"C"]),
        ("LRANGE l -100 100", [b"a", b"b", b"C", b"d"]),
        ("LRANGE l 3 1", []),
        ("LRANGE none 0 -1", []),
        ("LRANGE l x 1", "ERR value is not an integer or out of range"),
        ("LTRIM l 1 -2", b"OK"),
        ("LRANGE l 0 -1", [b"b", b"C"]),
        ("LTRIM l 5 9", b"OK"),
        ("EXISTS l", 0),
        ("LTRIM l 0 1", b"OK"),
    )


def test_in_the_middle(client: Client) -> None:
    client.plays(
        ("RPUSH l a b a c a", 5),
        ("LINSERT l BEFORE b x", 6),
        ("LINSERT l after c y", 7),
        ("LINSERT l BEFORE none x", -1),
        ("LINSERT none BEFORE a x", 0),
        ("LINSERT l BESIDE a x", "ERR syntax error"),
        ("LRANGE l 0 -1", [b"a", b"x", b"b", b"a", b"c", b"y", b"a"]),
        ("LREM l -1 a", 1),
        ("LREM l 1 a", 1),
        ("LRANGE l 0 -1", [b"x", b"b", b"a", b"c", b"y"]),
        ("RPUSH l a a", 7),
        ("LREM l 0 a", 3),
        ("LREM l 0 a", 0),
        ("LREM none 0 a", 0),
        ("LRANGE l 0 -1", [b"x", b"b", b"c", b"y"]),
        ("RPUSH one a", 1),
        ("LREM one 0 a", 1),
        ("EXISTS one", 0),
    )


def test_where_an_element_is(client: Client) -> None:
    client.plays(
        ("RPUSH l a b c 1 2 3 c c", 8),
        ("LPOS l c", 2),
        ("LPOS l c RANK 2", 6),
        ("LPOS l c RANK -1", 7),
        ("LPOS l c COUNT 2", [2, 6]),
        ("LPOS l c COUNT 0", [2, 6, 7]),
        ("LPOS l c RANK -1 COUNT 2", [7, 6]),
        ("LPOS l c RANK 2 COUNT 0 MAXLEN 7", [6]),
        ("LPOS l c RANK -1 COUNT 0 MAXLEN 2", [7, 6]),
        ("LPOS l none", None),
        ("LPOS l none COUNT 1", []),
        ("LPOS none a", None),
        ("LPOS l c COUNT -1", "ERR COUNT can't be negative"),
        ("LPOS l c MAXLEN -1", "ERR MAXLEN can't be negative"),
        ("LPOS l c RANK", "ERR syntax error"),
        ("LPOS l c FOO 1", "ERR syntax error"),
    )
    assert client("LPOS l c RANK 0").startswith("ERR RANK can't be zero")


def test_from_list_to_list(client: Client) -> None:
    client.plays(
        ("RPUSH a 1 2 3", 3),
        ("LMOVE a b LEFT RIGHT", b"1"),
        ("LMOVE a b RIGHT LEFT", b"3"),
        ("RPOPLPUSH a a", b"2"),
        ("LMOVE a a LEFT RIGHT", b"2"),
        ("LRANGE b 0 -1", [b"3", b"1"]),
        ("RPOPLPUSH a b", b"2"),
        ("EXISTS a", 0),
        ("LMOVE a b LEFT LEFT", None),
        ("RPOPLPUSH a b", None),
        ("LMOVE a b UP DOWN", "ERR syntax error"),
        ("LMPOP 2 a b RIGHT COUNT 2", [b"b", [b"1", b"3"]]),
        ("LMPOP 2 a b LEFT", [b"b", [b"2"]]),
        ("LMPOP 2 a b LEFT", None),
        ("LMPOP 0 a LEFT", "ERR numkeys should be greater than 0"),
        ("LMPOP 1 a LEFT COUNT 0", "ERR count should be greater than 0"),
        ("LMPOP 1 a UP", "ERR syntax error"),
        ("LMPOP 1 a LEFT FOO 1", "ERR syntax error"),
        ("RPUSH a 1", 1),
        ("SET s x", b"OK"),
        ("LMOVE a s LEFT LEFT", WRONG),
        ("LRANGE a 0 -1", [b"1"]),
    )


@pytest.mark.parametrize(
    "request_",
    ["LPUSH k a", "RPUSHX k a", "LPOP k", "LLEN k", "LRANGE k 0 1", "LINDEX k 0", "LSET k 0 a",
     "LTRIM k 0 1", "LINSERT k BEFORE a b", "LREM k 0 a", "LPOS k a", "LMOVE k l LEFT LEFT",
     "RPOPLPUSH k l", "LMPOP 1 k LEFT"],
)  # fmt: skip
def test_another_type(client: Client, request_: str) -> None:
    client("SET k v")
    assert client(request_) == WRONG
    assert client("GET k") == b"v"


values = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.tuples(
        st.sampled_from(["LPUSH", "RPUSH", "LINSERT", "LREM"]), values, values, st.integers(-2, 2)
    )
    | st.tuples(st.sampled_from(["LPOP", "RPOP"]), st.integers(0, 3))
    | st.tuples(st.sampled_from(["LTRIM", "LSET"]), st.integers(-4, 4), st.integers(-4, 4)),
    max_size=30,
)  # fmt: skip


@given(steps)
def test_like_a_list_of_python(sequence: list[tuple[Any, ...]]) -> None:
    model: list[bytes] = []
    with an_engine() as engine:
        client = Client(engine)
        for name, *args in sequence:
            match name:
                case "LPUSH" | "RPUSH":
                    client(f"{name} l {args[0]} {args[1]}")
                    one, other = args[0].encode(), args[1].encode()
                    model = [other, one, *model] if name == "LPUSH" else [*model, one, other]
                case "LINSERT":
                    client(f"LINSERT l AFTER {args[0]} {args[1]}")
                    if args[0].encode() in model:
                        model.insert(model.index(args[0].encode()) + 1, args[1].encode())
                case "LREM":
                    count = args[2]
                    client(f"LREM l {count} {args[0]}")
                    places = [at for at, value in enumerate(model) if value == args[0].encode()]
                    gone = places[:count] if count > 0 else places[count:] if count else places
                    model = [value for at, value in enumerate(model) if at not in gone]
                case "LPOP" | "RPOP":
                    client(f"{name} l {args[0]}")
                    model = (
                        model[args[0] :]
                        if name == "LPOP"
                        else model[: max(0, len(model) - args[0])]
                    )
                case "LTRIM":
                    client(f"LTRIM l {args[0]} {args[1]}")
                    first = max(0, args[0] + len(model) if args[0] < 0 else args[0])
                    stop = args[1] + len(model) + 1 if args[1] < 0 else args[1] + 1
                    model = model[first : max(0, stop)]
                case "LSET":
                    client(f"LSET l {args[0]} {args[1]}")
                    if -len(model) <= args[0] < len(model):
                        model[args[0]] = b"%d" % args[1]
            assert client("LRANGE l 0 -1") == model
            assert client("LLEN l") == len(model)
            assert client("EXISTS l") == bool(model)
