"""Which scripts a store keeps, and for how long."""

from __future__ import annotations

import hashlib

import pytest
from ticks import engine_of, open_store

from lsmkv import MemoryEnv
from lsmkv.server.resp import CommandError
from lsmkv.server.sources import MOST_EVALUATED, Sources


def sha_of(source: bytes) -> bytes:
    """What clients call a script."""
    return hashlib.sha1(source, usedforsecurity=False).hexdigest().encode()


def test_scripts_survive_a_restart_and_the_oldest_evaluated_ones_go() -> None:
    env = MemoryEnv()
    loaded = b"return 'loaded'"
    with open_store(env) as db:
        engine = engine_of(db)
        sources = Sources(engine.space)
        sources.add(sources.of_source(loaded), True)
        for number in range(MOST_EVALUATED + 1):
            sources.add(sources.of_source(b"return %d" % number), False)
        engine.commit()
    with open_store(env) as db:
        sources = Sources(engine_of(db).space)
        found = sources.find(sha_of(loaded).upper())
        assert found is not None
        assert found.source == loaded
        assert sources.find(sha_of(b"return 0")) is None
        assert sources.find(sha_of(b"return 1")) is not None
        sources.clear()
        assert sources.find(sha_of(loaded)) is None
        assert len(sources) == sources.size == 0


@pytest.mark.parametrize(
    ("line", "only_reads"),
    [(b"", False), (b"#!lua\n", False), (b"#!lua flags=no-writes,allow-oom\n", True)],
)
def test_the_first_line_says_whether_a_script_only_reads(line: bytes, only_reads: bool) -> None:
    with open_store(MemoryEnv()) as db:
        script = Sources(engine_of(db).space).of_source(line + b"return 1")
        assert script.only_reads is only_reads
        assert script.body.count(b"\n") == line.count(b"\n")
        assert script.body.endswith(b"return 1")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"#!lua", "Invalid script shebang"),
        (b"#!python\n", "Unexpected engine in script shebang: #!python"),
        (b"#!lua name=x\n", "Unknown lua shebang option: name=x"),
        (b"#!lua flags=fast\n", "Unexpected flag in script shebang: fast"),
    ],
)
def test_a_wrong_first_line(line: bytes, problem: str) -> None:
    with (
        open_store(MemoryEnv()) as db,
        pytest.raises(CommandError, match=f"^ERR {problem}$"),
    ):
        Sources(engine_of(db).space).of_source(line)
