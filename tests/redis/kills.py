"""A server that is killed under load, again and again: what it has acknowledged is there.

Each connection writes to keys of its own, in a database of its own, and keeps the same commands.
After a kill a plain model of the data is run over the acknowledged commands and then over each
prefix of those in flight: one of these states is what the store must hold.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import hiredis
from processes import ENVIRON

from lsmkv import DB
from lsmkv.server.check import check
from lsmkv.server.commands import COMMANDS
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.settings import Settings

CONNECTIONS = 4
_BATCH = 30
_LONGEST = 600
"""Milliseconds that a server lives at the most."""
_MEMBERS = [b"m%d" % n for n in range(12)]
_KEYS = {
    kind: [kind + b"%d" % n for n in range(4)]
    for kind in (b"s", b"n", b"h", b"l", b"t", b"z", b"x")
}
_NAMES = (
    "SET INCR HSET HSET HDEL LPUSH LPUSH RPOP LMOVE SADD SADD SREM ZADD ZADD ZADD ZREM ZPOPMIN"
    " EXPIRE DEL RENAME XADD XADD XADD XADD XDEL XTRIM XGROUP XREADGROUP XREADGROUP XREADGROUP XACK"
    " XACK"
)

Request = list[bytes]
_REFUSED = ("no such key", "NOGROUP", "BUSYGROUP", "requires the key to exist")
"""Errors that a model shares."""


_ids = count(1)
"""The ids of entries, in the order in which requests are made."""


@dataclass
class Stream:
    """The ids of a stream, and its group: the last id that was delivered, and who has which."""

    ids: list[bytes] = field(default_factory=list)
    last: int = 0
    delivered: int | None = None
    """None without a group."""
    pending: dict[bytes, bytes] = field(default_factory=dict)

    def copy(self) -> Stream:
        return Stream(self.ids.copy(), self.last, self.delivered, self.pending.copy())


Value = bytes | dict[bytes, Any] | list[bytes] | set[bytes] | Stream


class Model:
    """The keys of one database, as plain Python values, and when which expire."""

    def __init__(self) -> None:
        self.keys: dict[bytes, Value] = {}
        self.expires: set[bytes] = set()

    def copy(self) -> Model:
        copied = Model()
        copied.expires = set(self.expires)
        copied.keys = {
            key: value if isinstance(value, bytes) else value.copy()
            for key, value in self.keys.items()
        }
        return copied

    def run(self, request: Request) -> None:
        name, *args = request
        getattr(self, "_" + name.decode().lower())(*args)
        for key in [key for key, value in self.keys.items() if value in ({}, [], set())]:
            del self.keys[key]
        self.expires &= self.keys.keys()

    def _xadd(self, key: bytes, id_: bytes, *words: bytes) -> None:
        stream: Stream = self.keys.setdefault(key, Stream())  # type: ignore[assignment]
        stream.ids.append(id_)
        stream.last = int(id_)

    def _xdel(self, key: bytes, id_: bytes) -> None:
        stream: Stream = self.keys.get(key, Stream())  # type: ignore[assignment]
        stream.ids = [one for one in stream.ids if one != id_]

    def _xtrim(self, key: bytes, *words: bytes) -> None:
        stream: Stream = self.keys.get(key, Stream())  # type: ignore[assignment]
        stream.ids = stream.ids[-int(words[-1]) :]

    def _xgroup(self, what: bytes, key: bytes, *words: bytes) -> None:
        if what == b"CREATE":
            stream: Stream = self.keys.setdefault(key, Stream())  # type: ignore[assignment]
            if stream.delivered is None:
                stream.delivered = 0
        elif key in self.keys:
            stream = self.keys[key]  # type: ignore[assignment]
            stream.delivered, stream.pending = None, {}

    def _xreadgroup(self, *words: bytes) -> None:
        _, _, consumer, _, most, _, key, _ = words
        stream: Stream = self.keys.get(key, Stream())  # type: ignore[assignment]
        if stream.delivered is not None:
            found = [id_ for id_ in stream.ids if int(id_) > stream.delivered][: int(most)]
            stream.pending |= dict.fromkeys(found, consumer)
            stream.delivered = max([stream.delivered, *map(int, found)])

    def _xack(self, key: bytes, group: bytes, *ids: bytes) -> None:
        stream: Stream = self.keys.get(key, Stream())  # type: ignore[assignment]
        for id_ in ids:
            stream.pending.pop(id_, None)

    def _set(self, key: bytes, value: bytes) -> None:
        self.keys[key] = value
        self.expires.discard(key)

    def _incr(self, key: bytes) -> None:
        self.keys[key] = b"%d" % (int(self.keys.get(key, b"0")) + 1)  # type: ignore[arg-type]

    def _hset(self, key: bytes, field: bytes, value: bytes) -> None:
        self.keys.setdefault(key, {})[field] = value  # type: ignore[index,call-overload]

    def _hdel(self, key: bytes, field: bytes) -> None:
        self.keys.get(key, {}).pop(field, None)  # type: ignore[union-attr,call-arg]

    def _lpush(self, key: bytes, *values: bytes) -> None:
        for value in values:
            self.keys.setdefault(key, []).insert(0, value)  # type: ignore[union-attr,call-arg]

    def _rpop(self, key: bytes) -> None:
        if key in self.keys:
            self.keys[key].pop()  # type: ignore[union-attr,call-arg]

    def _lmove(self, source: bytes, target: bytes, *sides: bytes) -> None:
        alone = source == target and len(self.keys.get(source, [])) == 1
        if source in self.keys and not alone:  # the key and its expiry stay then
            at = 0 if sides[0] == b"LEFT" else -1
            value = self.keys[source].pop(at)  # type: ignore[union-attr,call-arg]
            if not self.keys[source]:
                del self.keys[source]
                self.expires.discard(source)
            found: list[bytes] = self.keys.setdefault(target, [])  # type: ignore[assignment]
            found.insert(0 if sides[1] == b"LEFT" else len(found), value)

    def _sadd(self, key: bytes, *members: bytes) -> None:
        self.keys.setdefault(key, set()).update(members)  # type: ignore[union-attr,arg-type]

    def _srem(self, key: bytes, member: bytes) -> None:
        self.keys.get(key, set()).discard(member)  # type: ignore[union-attr]

    def _zadd(self, key: bytes, score: bytes, member: bytes) -> None:
        self.keys.setdefault(key, {})[member] = float(score)  # type: ignore[index,call-overload]

    def _zrem(self, key: bytes, member: bytes) -> None:
        self._hdel(key, member)

    def _zpopmin(self, key: bytes) -> None:
        found: dict[bytes, float] = self.keys.get(key, {})  # type: ignore[assignment]
        if found:
            del found[min(found, key=lambda member: (found[member], member))]

    def _expire(self, key: bytes, seconds: bytes) -> None:
        if key in self.keys:
            self.expires.add(key)

    def _del(self, key: bytes) -> None:
        self.keys.pop(key, None)

    def _rename(self, old: bytes, new: bytes) -> None:
        if old in self.keys and old != new:
            self.keys[new] = self.keys.pop(old)
            self.expires.discard(new)
            if old in self.expires:
                self.expires.add(new)

    def _flushdb(self) -> None:
        self.keys.clear()


def random_request(rng: random.Random) -> Request:
    """A write to a key of the kind that it is for."""
    name = rng.choice(_NAMES.split()).encode()
    if rng.random() < 0.003:
        return [b"FLUSHDB"]
    kinds = {
        b"SET": b"s",
        b"INCR": b"n",
        b"H": b"h",
        b"L": b"l",
        b"R": b"l",
        b"S": b"t",
        b"Z": b"z",
        b"X": b"x",
    }
    kind = kinds.get(name) or kinds.get(name[:1], b"")
    if name in (b"EXPIRE", b"DEL", b"RENAME"):
        kind = rng.choice(list(_KEYS))
    key, other = rng.choice(_KEYS[kind]), rng.choice(_KEYS[kind])
    member, value = rng.choice(_MEMBERS), b"%d" % rng.randrange(10**6) * rng.randrange(1, 30)
    newest = next(_ids)
    ids = [b"%d" % max(1, newest - rng.randrange(100)) for _ in range(10)]
    if name == b"XGROUP":
        action = [b"CREATE", key, b"g", b"0", b"MKSTREAM"]
        return [name, *(action if rng.random() < 0.7 else [b"DESTROY", key, b"g"])]
    if name == b"XREADGROUP":
        consumer, most = rng.choice((b"c", b"d")), b"%d" % rng.randrange(1, 9)
        return [name, b"GROUP", b"g", consumer, b"COUNT", most, b"STREAMS", key, b">"]
    sides = [rng.choice((b"LEFT", b"RIGHT")) for _ in range(2)]
    rest: dict[bytes, Request] = {
        b"SET": [value],
        b"HSET": [member, value],
        b"HDEL": [member],
        b"LPUSH": [value, member],
        b"LMOVE": [other, *sides],
        b"SADD": [member, rng.choice(_MEMBERS)],
        b"SREM": [member],
        b"ZADD": [b"%d" % rng.randrange(-50, 50), member],
        b"ZREM": [member],
        b"EXPIRE": [b"100000"],
        b"RENAME": [other],
        b"XADD": [b"%d" % newest, b"field", value],
        b"XDEL": ids[:1],
        b"XTRIM": [b"MAXLEN", b"%d" % rng.randrange(1, 40)],
        b"XACK": [b"g", *ids],
    }
    return [name, key, *rest.get(name, [])]


def _differences(found: Model, expected: Model) -> list[str]:
    """The keys that differ from what was acknowledged; some may be in flight."""
    return [
        f"{key!r}: {found.keys.get(key)!r} (expires: {key in found.expires}),"
        f" not {expected.keys.get(key)!r} (expires: {key in expected.expires})"
        for key in sorted({*found.keys, *expected.keys})
        if found.keys.get(key) != expected.keys.get(key)
        or (key in found.expires) != (key in expected.expires)
    ]


class Client:
    """A connection, the model of what was acknowledged, and what is in flight."""

    def __init__(self, index: int, seed: int) -> None:
        self.index = index
        self.rng = random.Random(seed)
        self.model = Model()
        self.in_flight: list[list[Request]] = []
        """Commands that stand or fall together: one, or those of an EXEC."""
        self.acknowledged = 0

    async def load(self, port: int) -> None:
        """Write until the connection breaks."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        parser = hiredis.Reader()
        try:
            writer.write(_encode([[b"SELECT", b"%d" % self.index]]))
            await self._answers(reader, parser, 1)
            while True:
                groups = [self._group() for _ in range(self.rng.randrange(1, _BATCH))]
                self.in_flight = list(groups)
                for group in groups:
                    several = len(group) > 1
                    writer.write(_encode([[b"MULTI"], *group, [b"EXEC"]] if several else group))
                await writer.drain()
                for group in groups:
                    answers = len(group) + 2 if len(group) > 1 else 1
                    await self._answers(reader, parser, answers)
                    self.in_flight.pop(0)
                    self.acknowledged += 1
                    for request in group:
                        self.model.run(request)
        except (ConnectionError, EOFError):
            pass
        finally:
            writer.transport.abort()

    def _group(self) -> list[Request]:
        count = self.rng.randrange(2, 8) if self.rng.random() < 0.1 else 1
        return [random_request(self.rng) for _ in range(count)]

    @staticmethod
    async def _answers(reader: asyncio.StreamReader, parser: hiredis.Reader, count: int) -> None:
        while count:
            answer = parser.gets()
            if answer is False:
                data = await reader.read(65536)
                if not data:
                    raise EOFError
                parser.feed(data)
                continue
            if isinstance(answer, hiredis.ReplyError) and not any(
                one in str(answer) for one in _REFUSED
            ):
                raise AssertionError(f"the server answered {answer}")
            count -= 1

    def settle(self, found: Model) -> bool:
        """Go on from what the store holds; whether it is what it may hold."""
        states = [self.model.copy()]
        for group in self.in_flight:
            state = states[-1].copy()
            for request in group:
                state.run(request)
            states.append(state)
        self.in_flight = []
        self.model = found
        return any((found.keys, found.expires) == (state.keys, state.expires) for state in states)


def _encode(requests: list[Request]) -> bytes:
    return b"".join(
        b"*%d\r\n" % len(request)
        + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in request)
        for request in requests
    )


def stored(engine: Engine, index: int) -> tuple[Model, int]:
    """What a database holds, read by commands, and its DBSIZE."""
    session = engine.open_session()

    def ask(*words: bytes) -> Any:
        engine.run(session, list(words))
        parser = hiredis.Reader()
        parser.feed(session.take_output())
        return parser.gets()

    ask(b"SELECT", b"%d" % index)
    model = Model()
    for key in ask(b"KEYS", b"*"):
        match ask(b"TYPE", key):
            case b"string":
                model.keys[key] = ask(b"GET", key)
            case b"list":
                model.keys[key] = ask(b"LRANGE", key, b"0", b"-1")
            case b"set":
                model.keys[key] = set(ask(b"SMEMBERS", key))
            case b"hash":
                words = ask(b"HGETALL", key)
                model.keys[key] = dict(zip(words[::2], words[1::2], strict=True))
            case b"zset":
                words = ask(b"ZRANGE", key, b"0", b"-1", b"WITHSCORES")
                scores = map(float, words[1::2])
                model.keys[key] = dict(zip(words[::2], scores, strict=True))
            case b"stream":
                model.keys[key] = _stored_stream(
                    ask(b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0")
                )
        if ask(b"TTL", key) > 0:
            model.expires.add(key)
    size = ask(b"DBSIZE")
    engine.close_session(session)
    return model, size


def _stored_stream(words: list[Any]) -> Stream:
    """A stream, of what XINFO returns; a consumer has what its group says that it has."""

    def ms(id_: bytes) -> bytes:
        return id_.partition(b"-")[0]

    fields = dict(zip(words[::2], words[1::2], strict=True))
    stream = Stream([ms(id_) for id_, _ in fields[b"entries"]])
    stream.last = int(ms(fields[b"last-generated-id"]))
    for one in fields[b"groups"]:
        group = dict(zip(one[::2], one[1::2], strict=True))
        stream.delivered = int(ms(group[b"last-delivered-id"]))
        stream.pending = {ms(id_): consumer for id_, consumer, _, _ in group[b"pending"]}
    return stream


class Kills:
    """Rounds on one directory: load, kill, look."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        self._path = path
        self._rng = random.Random(seed)
        self._clients = [Client(index, seed * 100 + index) for index in range(CONNECTIONS)]

    @property
    def acknowledged(self) -> int:
        """The writes that were acknowledged in all rounds; an EXEC counts as one."""
        return sum(client.acknowledged for client in self._clients)

    def round(self, appendfsync: str) -> list[str]:
        """Let a server live for a while and die; what is wrong then."""
        command = [sys.executable, "-P", "-m", "lsmkv", "serve", str(self._path)]
        command += ["--port", "0", "--json", "--appendfsync", appendfsync]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRON) as server:
            try:
                assert server.stdout is not None
                port = json.loads(server.stdout.readline())["port"]
                asyncio.run(self._load(server, port))
            finally:
                server.kill()
        assert server.returncode == -signal.SIGKILL
        return self._look()

    async def _load(self, server: subprocess.Popen[bytes], port: int) -> None:
        clients = [asyncio.create_task(client.load(port)) for client in self._clients]
        # In a thread: the loop's own timer would let the kill fall between two batches.
        delay = self._rng.randrange(10, _LONGEST) / 1000

        def kill() -> None:
            time.sleep(delay)
            server.kill()

        await asyncio.gather(asyncio.to_thread(kill), *clients)

    def _look(self) -> list[str]:
        with DB(str(self._path)) as db:
            wrong = check(db)
            engine = Engine(db, Keyspace(db), COMMANDS, Settings())
            engine.schedule = lambda callback: None
            for client in self._clients:
                model, size = stored(engine, client.index)
                if size != len(model.keys):
                    wrong.append(f"DBSIZE {client.index} is {size}, not {len(model.keys)}")
                if not client.settle(model):
                    wrong.append(
                        f"database {client.index} holds what it cannot hold:"
                        f" {_differences(model, client.model)}"
                    )
            engine.commit()
            wrong += check(db)
        return wrong
