"""The cursors of scans."""

from __future__ import annotations

import pytest
from serving import an_engine

from lsmkv import MemoryEnv
from lsmkv.server.cursors import Cursors, cursor_number
from lsmkv.server.resp import CommandError


def test_a_cursor_stands_for_a_position_in_its_scope() -> None:
    with an_engine() as engine:
        cursors = Cursors(engine.space)
        one, other = cursors.make(b"a", b"position"), cursors.make(b"b", b"")
        assert cursors.position(one, b"a") == b"position"
        assert cursors.position(one, b"b") == b""
        assert cursors.position(one, b"ap") == b""
        assert cursors.position(other, b"b") == b""
        assert cursors.position(0, b"a") == b""
        assert cursors.position((one + 5), b"a") == b""
        assert cursors.position((2**64 - 1), b"a") == b""


@pytest.mark.parametrize("cursor", [b"a", b"1.0", b" 1", b"%d" % 2**64, b"9" * 5000])
def test_what_is_no_cursor(cursor: bytes) -> None:
    with pytest.raises(CommandError, match=r"^ERR invalid cursor$"):
        cursor_number(cursor)


def test_numbers_as_redis_reads_them() -> None:
    assert [cursor_number(one) for one in (b"0", b"17", b"", b"-1")] == [0, 17, 0, 2**64 - 1]


@pytest.mark.parametrize("raw", [False, True])
def test_the_last_65536_are_kept(raw: bool) -> None:
    with an_engine(raw=raw) as engine:
        first = engine.cursors.make(b"", b"first")
        second = engine.cursors.make(b"", b"second")
        for _ in range(65_535):
            last = engine.cursors.make(b"", b"later")
        assert engine.cursors.position(first, b"") == b""
        assert engine.cursors.position(second, b"") == b"second"
        assert engine.cursors.position(last, b"") == b"later"


def test_they_are_there_after_a_restart() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        cursor = engine.cursors.make(b"scope", b"position")
        engine.space.keep()
        engine.space.commit()
    with an_engine(env) as engine:
        assert engine.cursors.position(cursor, b"scope") == b"position"
        assert engine.cursors.make(b"scope", b"") > cursor
    with an_engine(env, read_only=True) as engine:
        mine = engine.cursors.make(b"scope", b"in memory")
        assert not engine.space.has_changes
        assert engine.cursors.position(mine, b"scope") == b"in memory"
    with an_engine(env, read_only=True) as engine:
        engine.cursors.make(b"scope", b"of another scan")
        assert engine.cursors.position(mine, b"scope") == b""
