"""How long others wait while one client sends the slowest commands: ``slow_commands.py PAGE``.

Redis and ``lsmkv serve`` get the same collections and strings.  Each command is sent once to each,
while another client pings without a pause.  The page that is written has the longest time that a
ping waited, and how long the command took, for the fifty slowest.  It needs redis-server.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import redis
import typer
from page_parts import table
from serve import BOTH, running

from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import say
from lsmkv.tools.output import open_output

_BATCH = 10_000
_COMMANDS = """
GET string
GETRANGE string 0 -1
SETRANGE string 100000000 x
SETRANGE sparse 536870911 x
SETBIT sparse2 4294967295 1
GETBIT string 4000000
APPEND string x
STRLEN string
BITCOUNT string
BITCOUNT sparse
BITPOS sparse 1
BITFIELD string SET u8 #1000000 1
BITOP NOT inverted string
COPY string copied
SET other @
SETRANGE other 5 x
MGET string string
RENAME copied renamed
DEL renamed
KEYS *
KEYS *x
SCAN 0 COUNT 1000000
RANDOMKEY
DBSIZE
HGETALL hash
HKEYS hash
HVALS hash
HSCAN hash 0 COUNT 1000000
HRANDFIELD hash 1000000
SMEMBERS set
SSCAN set 0 COUNT 1000000
SRANDMEMBER set 1000000
SINTER set set2
SUNION set set2
SDIFF set set2
SINTERCARD 2 set set2
SUNIONSTORE union set set2
SINTERSTORE common set set2
SDIFFSTORE common set union
SORT set ALPHA STORE common
SPOP set2 500000
LRANGE list 0 -1
LINDEX list 500000
LPOS list nothing
LINSERT list BEFORE 500000 x
LREM list 0 nothing
LSET list 500000 x
SORT list LIMIT 0 10
SORT_RO list
SORT list STORE common
LTRIM list 0 500000
LPOP list 100000
ZRANGE sorted 0 -1 WITHSCORES
ZRANGE sorted 500000 500010
ZRANK sorted 00700000
ZCOUNT sorted 100000 900000
ZRANGEBYSCORE sorted -inf +inf
ZREVRANGE sorted 0 -1
ZUNION 2 sorted sorted2
ZINTERCARD 2 sorted sorted2
ZINTERSTORE common 2 sorted sorted2
ZUNIONSTORE common 2 sorted sorted2
ZDIFFSTORE common 2 sorted hash
ZRANGESTORE common sorted 0 -1
GEOSEARCHSTORE common geo FROMLONLAT 0 0 BYBOX 40000 40000 km
ZSCAN sorted 0 COUNT 1000000
ZREMRANGEBYRANK sorted2 0 500000
ZPOPMIN sorted2 100000
XRANGE stream - +
XREVRANGE stream + -
XREAD STREAMS stream 0
XTRIM stream MAXLEN 10
COPY hash copied
EVAL @script 1 list
DEL set
UNLINK sorted
FLUSHALL
"""
"""The commands, in this order, since some change what later ones find; ``@`` is a long string."""
_SCRIPT = "return #redis.call('lrange', KEYS[1], 0, -1)"


class Waits(NamedTuple):
    """Milliseconds."""

    longest_ping: float
    command: float


def fill(client: redis.Redis, members: int, size: int) -> None:
    """Make the collections of so many members, and a string of so many bytes."""
    for first in range(0, members, _BATCH):
        names = [b"%08d" % number for number in range(first, min(first + _BATCH, members))]
        scores = {name: int(name) for name in names}
        places = [
            word for name in names for word in (int(name) % 359 - 179, int(name) % 169 - 84, name)
        ]
        pipe = client.pipeline(transaction=False)
        pipe.hset("hash", mapping=dict(zip(names, names, strict=True)))
        pipe.sadd("set", *names)
        pipe.sadd("set2", *names)
        pipe.rpush("list", *names)
        pipe.zadd("sorted", scores)
        pipe.zadd("sorted2", scores)
        pipe.geoadd("geo", places)
        pipe.mset(dict(zip(names, names, strict=True)))
        for name in names:
            pipe.xadd("stream", {"field": name})
        pipe.execute()
    client.set("string", b"\x55" * size)


def waits(port: int, request: list[bytes]) -> Waits:
    """Send a request while another client pings."""
    longest, ended = 0.0, False
    began = threading.Event()

    def ping() -> None:
        nonlocal longest
        with redis.Redis(port=port) as other:
            while not ended:
                start = time.perf_counter()
                other.ping()
                longest = max(longest, time.perf_counter() - start)
                began.set()

    words = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in request)
    pinging = threading.Thread(target=ping)
    with socket.create_connection(("127.0.0.1", port)) as connected:
        pinging.start()
        began.wait()
        start = time.perf_counter()
        try:
            connected.sendall(b"*%d\r\n%b" % (len(request), words))
            # The reply is read as bytes: to parse a million members would delay the pings.
            connected.settimeout(600)
            connected.recv(1 << 20)
            taken = time.perf_counter() - start
            connected.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                while connected.recv(1 << 20):
                    pass
        finally:
            ended = True
            pinging.join()
    return Waits(longest * 1000, taken * 1000)


def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="The file to write.")],
    members: Annotated[int, typer.Option(metavar="N", help="Of a large collection.")] = 1_000_000,
    size: Annotated[int, typer.Option(metavar="BYTES", help="Of a long string.")] = 500_000_000,
) -> None:
    """Measure both servers, and write a table of the fifty slowest commands."""
    found: dict[str, dict[str, Waits]] = {}
    with running(BOTH) as (ports, clients):
        for name, client in clients.items():
            fill(client, members, size)
            for line in _COMMANDS.strip().splitlines():
                words = [word.encode() for word in line.split()]
                words = [b"\x55" * size if word == b"@" else word for word in words]
                words = [_SCRIPT.encode() if word == b"@script" else word for word in words]
                found.setdefault(line, {})[name] = waits(ports[name], words)
    rows = sorted(found.items(), key=lambda one: -one[1]["lsmkv"].longest_ping)[:50]
    about = f"{machine('.')['processor']}; {members:,} members, {size:,} bytes; milliseconds."
    head = ("command", "Redis: others wait", "lsmkv: others wait", "Redis takes", "lsmkv takes")
    shown = [
        (
            f"`{line.replace('@script', 'of LRANGE').replace('@', 'VALUE')}`",
            *(f"{one[name].longest_ping:,.1f}" for name in ("redis", "lsmkv")),
            *(f"{one[name].command:,.1f}" for name in ("redis", "lsmkv")),
        )
        for line, one in rows
    ]
    with open_output(str(page), force=True) as out:
        out.write(f"{about}\n\n{table(head, shown, numbers=True)}\n".encode())
    say(str(page))


if __name__ == "__main__":
    typer.run(main)
