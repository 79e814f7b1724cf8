"""Lists.  Those that block are in ``test_blocking.py``."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from serving import Client, an_engine
from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


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


@transcript("lists.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
