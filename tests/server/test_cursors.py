"""The cursors of scans."""

from __future__ import annotations

import pytest
from serving import an_engine

from lsmkv import MemoryEnv
from lsmkv.server.cursors import Cursors
from lsmkv.server.resp import CommandError


def test_a_cursor_stands_for_a_position_in_its_scope() -> None:
    with an_engine() as engine:
        cursors = Cursors(engine.space)
        one, other = cursors.make(b"a", b"position"), cursors.make(b"b", b"")
        assert cursors.position(b"%d" % one, b"a") == b"position"
        assert cursors.position(b"%d" % one, b"b") == b""
        assert cursors.position(b"%d" % one, b"ap") == b""
        assert cursors.position(b"%d" % other, b"b") == b""
        assert cursors.position(b"0", b"a") == b""
        assert cursors.position(b"%d" % (one + 5), b"a") == b""
        assert cursors.position(b"%d" % (2**64 - 1), b"a") == b""


@pytest.mark.parametrize("cursor", [b"", b"-1", b"a", b"1.0", b" 1", b"%d" % 2**64, b"9" * 5000])
def test_what_is_no_cursor(cursor: bytes) -> None:
    with an_engine() as engine, pytest.raises(CommandError, match=r"^ERR invalid cursor$"):
        engine.cursors.position(cursor, b"")


@pytest.mark.parametrize("raw", [False, True])
def test_the_last_65536_are_kept(raw: bool) -> None:
    with an_engine(raw=raw) as engine:
        first = engine.cursors.make(b"", b"first")
        second = engine.cursors.make(b"", b"second")
        for _ in range(65_535):
            last = engine.cursors.make(b"", b"later")
        assert engine.cursors.position(b"%d" % first, b"") == b""
        assert engine.cursors.position(b"%d" % second, b"") == b"second"
        assert engine.cursors.position(b"%d" % last, b"") == b"later"


def test_they_are_there_after_a_restart() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        cursor = engine.cursors.make(b"scope", b"position")
        engine.space.keep()
        engine.space.commit()
    with an_engine(env) as engine:
        assert engine.cursors.position(b"%d" % cursor, b"scope") == b"position"
        assert engine.cursors.make(b"scope", b"") > cursor
    with an_engine(env, read_only=True) as engine:
        mine = engine.cursors.make(b"scope", b"in memory")
        assert not engine.space.has_changes
        assert engine.cursors.position(b"%d" % mine, b"scope") == b"in memory"
