"""The commands that make keys again."""

from __future__ import annotations

from lsmkv.server.moving.recreating import (
    GroupContent,
    PendingEntry,
    StreamContent,
    collection_commands,
    in_parts,
    stream_commands,
)
from lsmkv.server.stream_ids import NO_ID, parse_id

ONE, TWO, THREE = (parse_id(b"%d-0" % number) for number in (1, 2, 3))


def test_parts() -> None:
    assert list(in_parts([b"SADD", b"k"], [])) == []
    elements = [[b"%d" % number] for number in range(1500)]
    assert [len(words) for words in in_parts([b"SADD", b"k"], elements)] == [1000, 504]
    large = [[b"x" * 200_000], [b"y" * 200_000], [b"z"]]
    assert [len(words) for words in in_parts([b"SADD", b"k"], large)] == [4, 3]


def test_a_collection_replaces_what_is_there() -> None:
    commands = list(collection_commands("zset", b"k", [[b"1", b"a"], [b"2", b"b"]]))
    assert commands == [[b"DEL", b"k"], [b"ZADD", b"k", b"1", b"a", b"2", b"b"]]


def test_removed_entries_that_are_pending_come_and_go() -> None:
    pending = [PendingEntry(id_, b"c", 1000, 2) for id_ in (ONE, THREE)]
    group = GroupContent(b"g", THREE, -1, [b"c"], pending)
    content = StreamContent(THREE, THREE, 3, [group], [ONE, THREE])
    commands = list(stream_commands(b"s", [(TWO, [b"f", b"v"])], content))
    assert commands == [
        [b"DEL", b"s"],
        [b"XADD", b"s", b"1-0", b"-", b"-"],
        [b"XADD", b"s", b"2-0", b"f", b"v"],
        [b"XADD", b"s", b"3-0", b"-", b"-"],
        [b"XGROUP", b"CREATE", b"s", b"g", b"3-0", b"ENTRIESREAD", b"-1"],
        [b"XGROUP", b"CREATECONSUMER", b"s", b"g", b"c"],
        *(
            [b"XCLAIM", b"s", b"g", b"c", b"0", id_, b"TIME", b"1000", b"RETRYCOUNT", b"2",
             b"FORCE", b"JUSTID"]
            for id_ in (b"1-0", b"3-0")
        ),
        [b"XDEL", b"s", b"3-0"],
        [b"XTRIM", b"s", b"MINID", b"2-0"],
        [b"XSETID", b"s", b"3-0", b"ENTRIESADDED", b"3", b"MAXDELETEDID", b"3-0"],
    ]  # fmt: skip


def test_a_stream_that_never_had_an_entry() -> None:
    assert list(stream_commands(b"s", [], StreamContent(NO_ID, NO_ID, 0, [], []))) == [
        [b"DEL", b"s"],
        [b"XADD", b"s", b"MAXLEN", b"0", b"0-1", b"-", b"-"],
        [b"XSETID", b"s", b"0-0", b"ENTRIESADDED", b"0"],
    ]


def test_counts_that_no_command_accepts_are_the_nearest_one() -> None:
    """Redis shows counts beyond 2^63-1 as negative numbers."""
    for added in (1 << 63, -(1 << 63)):
        group = GroupContent(b"g", ONE, -(1 << 62), [], [])
        commands = list(stream_commands(b"s", [], StreamContent(ONE, NO_ID, added, [group], [])))
        assert commands[-2][-1] == b"-1"
        assert commands[-1][-1] == b"9223372036854775807"
