"""How a process's descriptors are divided, and what happens when more clients come."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import pytest
from loops import KINDS
from processes import start
from wire import packed

from lsmkv.server.descriptors import Room, divide

_SERVE = """
import asyncio, json, logging, resource, sys
from lsmkv.server import Server

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
logging.basicConfig(level=logging.CRITICAL)

async def main():
    server = Server(sys.argv[1], port=0, write_buffer_size=1 << 16)
    async with server:
        shown = server.settings.shown()
        print(json.dumps([server.port, int(shown["maxclients"])]), flush=True)
        await server.serve_until_shutdown()

if sys.argv[2] == "uvloop":
    import uvloop
    factory = uvloop.new_event_loop
else:
    factory = asyncio.new_event_loop
with asyncio.Runner(loop_factory=factory) as runner:
    runner.run(main())
"""


@pytest.mark.parametrize(
    ("limit", "wanted", "room"),
    [
        (20_000, (10_000, 1000), Room(10_000, 1000, 511)),
        (4096, (10_000, 1000), Room(2552, 1000, 128)),
        (4096, (100, 1000), Room(100, 1000, 511)),
        (1024, (10_000, 1000), Room(608, 256, 32)),
        (256, (10_000, 1000), Room(128, 64, 8)),
        (256, (10, 100), Room(10, 64, 8)),
        (64, (10_000, 1000), Room(4, 20, 2)),
    ],
)
def test_descriptors_are_divided(limit: int, wanted: tuple[int, int], room: Room) -> None:
    assert divide(limit, *wanted) == room


def test_a_process_without_descriptors_serves_nobody() -> None:
    with pytest.raises(OSError, match=r"50 descriptors are too few .* \(ulimit -n\)"):
        divide(50, 10_000, 1000)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of descriptors")
@pytest.mark.parametrize("loop", KINDS)
def test_clients_leave_the_store_its_descriptors(tmp_path: Path, loop: str) -> None:
    """400 clients come to a process of 256 descriptors: those that are served can write."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")

    async def scenario(port: int, most: int) -> None:
        served, refused = [], 0
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(400):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
                writer.write(packed(b"PING"))
                if (await reader.readline()).startswith(b"+PONG"):
                    served.append((reader, writer))
                else:
                    refused += 1
            assert (len(served), refused) == (most, 400 - most)
            for number, (reader, writer) in enumerate(served):
                writer.write(packed(b"SET", b"k%d" % number, b"x" * 4000))
                assert await reader.readline() == b"+OK\r\n"
            # A storm of those that are refused disturbs no write.
            storm = [asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
            writing = served[0]
            for number, (_, one) in enumerate(await asyncio.gather(*storm)):
                stack.callback(one.close)
                if number % 4 == 0:
                    writing[1].write(packed(b"SET", b"k", b"x" * 4000))
                    assert await writing[0].readline() == b"+OK\r\n"
            writing[1].write(packed(b"CONFIG", b"SET", b"maxclients", b"5000"))
            assert b"not able to handle" in await writing[0].readline()
            writing[1].write(packed(b"SHUTDOWN"))

    with start(_SERVE, str(tmp_path / "store"), loop) as server:
        try:
            assert server.stdout is not None
            port, most = json.loads(server.stdout.readline())
            assert most == 128
            asyncio.run(scenario(port, most))
            assert server.wait(30) == 0
        finally:
            server.kill()
