"""Counts by block: cutting and joining blocks, and what is kept."""

from __future__ import annotations

import pytest
from serving import Client

from lsmkv import DB, MemoryEnv
from lsmkv.server.commands import COMMANDS
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.ranks import Blocks, Ranks, separator
from lsmkv.server.settings import Settings


def test_walks_from_both_ends_cut_a_block() -> None:
    blocks = Blocks(100)
    blocks.cut(0, [(b"c", 10), (b"e", 12)], [(b"x", 8), (b"t", 9)])
    assert blocks.starts == [b"", b"c", b"e", b"t", b"x"]
    assert blocks.counts == [10, 12, 61, 9, 8]
    blocks.cut(2, [(b"g", 20)], [])
    blocks.cut(3, [], [(b"s", 1)])
    assert blocks.starts == [b"", b"c", b"e", b"g", b"s", b"t", b"x"]
    assert blocks.counts == [10, 12, 20, 40, 1, 9, 8]
    assert [blocks.before(at) for at in range(8)] == [0, 10, 22, 42, 82, 83, 92, 100]
    assert [blocks.at(place) for place in (b"", b"b", b"c", b"d", b"y")] == [0, 0, 1, 1, 6]
    assert (blocks.end(0), blocks.end(6)) == (b"c", None)


def test_the_block_of_a_rank() -> None:
    blocks = Blocks(0)
    blocks.starts = [b"", b"b", b"c", b"d", b"e"]
    blocks.counts = [0, 3, 0, 2, 0]
    assert [blocks.holding(rank) for rank in range(5)] == [(1, 0), (1, 1), (1, 2), (3, 0), (3, 1)]


def test_blocks_that_have_become_small_are_joined() -> None:
    blocks = Blocks(12)
    blocks.cut(0, [(b"b", 4), (b"c", 4)], [])
    blocks.remove(b"bx", 4)
    assert blocks.counts == [4, 3, 4]
    for _ in range(3):
        blocks.remove(b"ax", 4)
    assert blocks.counts == [1, 3, 4]
    blocks.remove(b"ax", 4)
    assert (blocks.starts, blocks.counts) == ([b"", b"c"], [3, 4])
    for _ in range(4):
        blocks.remove(b"cx", 4)
    assert (blocks.starts, blocks.counts) == ([b""], [3])
    blocks.add(b"z")
    assert blocks.counts == [4]


@pytest.mark.parametrize(
    ("low", "high", "between"),
    [(b"", b"a", b"a"), (b"a", b"aa", b"aa"), (b"abc", b"abd1", b"abd"), (b"ab", b"b", b"b")],
)
def test_separators_are_short(low: bytes, high: bytes, between: bytes) -> None:
    assert separator(low, high) == between
    assert low < between <= high


def test_blocks_of_the_sets_that_were_cut_first_are_forgotten() -> None:
    ranks = Ranks()
    for version in range(300):
        ranks.learn(version, 5)
    assert ranks.get(0) is None
    assert ranks.get(299) is not None
    assert sum(ranks.get(version) is not None for version in range(300)) == 256
    for version in (1000, 1001):
        many = ranks.learn(version, 40_000)
        many.cut(0, [(b"%05d" % number, 1) for number in range(39_000)], [])
    assert ranks.learn(1000, 0).counts[0] == 1
    assert ranks.get(1001) is None
    assert ranks.get(299) is None
    ranks.forget()
    assert ranks.get(1000) is None


def test_blocks_are_longer_in_huge_sets() -> None:
    assert [Ranks().block_length(size) for size in (1, 2_000_000, 10_000_000)] == [256, 256, 1220]


def test_what_is_undone_is_forgotten(client: Client) -> None:
    members = [word for number in range(2000) for word in (b"%d" % number, b"m%04d" % number)]
    client("ZADD", b"z", *members)
    assert client("ZRANK z m1000") == 1000
    entry = client.engine.space.find(client.session.database, b"z")
    assert entry is not None
    version = entry.version
    assert client.engine.space.ranks.get(version) is not None
    assert client("ZADD z -1 new 5 m0001") == 1
    assert client("ZADD z 5 m0002 - m0003").startswith("ERR")
    assert client("ZRANK z m1500") == 1501
    client.engine.space.records.put(b"name", b"value")
    client.engine.space.undo()
    assert client.engine.space.ranks.get(version) is None
    assert client("ZRANK z m0500") == 501


def test_a_reader_counts_what_is_there_now() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        writer = Client(Engine(db, Keyspace(db), COMMANDS, Settings()))
        members = [word for number in range(2000) for word in (b"%d" % number, b"%04d" % number)]
        writer("ZADD", b"z", *members)
        with DB("/db", env=env, read_only=True) as copy:
            space = Keyspace(copy, writable=False)
            reader = Client(Engine(copy, space, COMMANDS, Settings()))
            assert reader("ZRANK z 1000") == 1000
            writer("ZREM", b"z", *(b"%04d" % number for number in range(0, 1000, 2)))
            copy.refresh()
            space.reload()
            assert reader("ZRANK z 1000") == 500
            assert reader("ZCOUNT z -inf (1000") == 500
