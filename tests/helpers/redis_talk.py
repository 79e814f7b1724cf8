"""Requests about connections, messages and settings, and what two servers answer to them.

A request may have any number of answers here: SUBSCRIBE has one for each channel, CLIENT REPLY OFF
none, and a message comes to a client that asked nothing.  So after each request everything is
compared that has come to any of the clients, pushes and the end of connections included.
"""

from __future__ import annotations

import io
import random
import re
import select
import time
from collections.abc import Callable
from itertools import chain

from redis_pair import Difference
from redis_requests import Request, Step, fill, parsed_templates, random_request
from redis_servers import Lsmkv, Redis
from resp_wire import Client, Reply, encode

CLIENTS = 3
CLOSED = Reply("closed", None)
_LEAST_ID = 100
"""Ids of clients are not to be taken for other numbers in replies."""
_TEMPLATES = """
SUBSCRIBE {channel}
SUBSCRIBE channel
UNSUBSCRIBE [{channel}]
SSUBSCRIBE {channel}
SUNSUBSCRIBE [{channel}]
SPUBLISH channel word
PSUBSCRIBE {pattern}
PUNSUBSCRIBE [{pattern}]
PUBLISH channel word
PUBLISH channel word
PUBSUB CHANNELS [pattern] [pattern]
PUBSUB NUMSUB [{channel}]
PUBSUB NUMPAT [word]
PUBSUB SHARDCHANNELS [pattern] [pattern]
PUBSUB SHARDNUMSUB [{channel}]
PUBSUB (NOSUCH|CHANNELS|NUMPAT) [word]
PING [word] [word]
ECHO word
MULTI
MULTI
EXEC
EXEC
EXEC
DISCARD
RESET
HELLO (2|3|x)
WATCH word
SET word word
GET word
NOSUCH {word}
SELECT (0|1|x)
MONITOR
CLIENT REPLY (ON|ON|ON|OFF|SKIP|x)
CLIENT (GETNAME|ID|INFO|NOSUCH) [word]
CLIENT SETNAME (word|word|-)
CLIENT LIST [(TYPE kind|ID {id}|word)]
CLIENT KILL addr
CLIENT KILL killing
CLIENT KILL killing killing
CLIENT KILL word
CLIENT UNBLOCK id [(TIMEOUT|ERROR|x)] [word]
CLIENT NO-EVICT (ON|OFF|x)
CLIENT PAUSE (x|-1|1.5|0) [(WRITE|all|x)] [word]
CLIENT UNPAUSE [word]
CLIENT
CONFIG GET {setting}
CONFIG GET (time*|*slow*|maxc*s|tcp-?eepalive|[)
CONFIG SET set
CONFIG SET set set
CONFIG SET set setting
CONFIG (NOSUCH|REWRITE|GET|SET)
SLOWLOG (LEN|RESET|NOSUCH|GET) [(x|-2|0)] [word]
COMMAND (COUNT|NOSUCH|LIST) word
COMMAND LIST FILTERBY (MODULE none|FOO word|PATTERN) [word]
COMMAND GETKEYS request
COMMAND GETKEYSANDFLAGS request
COMMAND GETKEYSANDFLAGS request
COMMAND INFO (get|nosuch|MEMORY/USAGE|x/y|set/x)
OBJECT (NOSUCH|FREQ|ENCODING) [word]
MEMORY (NOSUCH|USAGE) [none]
MODULE (LIST|NOSUCH) [word]
ROLE
"""
_SETTINGS = {
    b"timeout": [b"0", b"900", b"-1", b"x", b"99999999999"],
    b"tcp-keepalive": [b"300", b"7", b"1.5", b""],
    b"maxclients": [b"5000", b"6000", b"0", b"1mb"],
    b"proto-max-bulk-len": [b"536870912", b"600mb", b"1", b"x"],
    b"client-query-buffer-limit": [b"1073741824", b"900M", b"1k"],
    b"slowlog-max-len": [b"128", b"64", b"-1"],
    b"appendfsync": [b"everysec", b"no", b"always", b"NO", b"sometimes"],
    b"protected-mode": [b"yes", b"no", b"maybe"],
    b"notify-keyspace-events": [b"", b"A", b"gKx", b"xyz", b"nmlE", b"AKEm"],
    b"hll-sparse-max-bytes": [b"3000", b"1kb", b"x", b"-1"],
    b"client-output-buffer-limit": [b"x 1 1 1", b"pubsub 1 1", b"pubsub 1 x 1", b""],
    b"databases": [b"16", b"3"],
    b"daemonize": [b"no"],
    b"dir": [b"/tmp"],
    b"nosuch": [b"1"],
    b"": [b""],
}
_SHOWN = [name for name in _SETTINGS if name not in (b"client-output-buffer-limit", b"dir")]
_CHANNELS = [b"a", b"b", b"c1", b"\xff\r\n"]
_PATTERNS = [b"*", b"a", b"c?", b"[ab]", b"", b"x*"]
_ID_WORDS = [b"@0", b"@1", b"@2", b"0", b"-1", b"x", b"999999999"]


def _killing(choices: random.Random) -> Request:
    """A condition of CLIENT KILL, or an invalid one."""
    name = choices.choice([b"ID", b"TYPE", b"USER", b"SKIPME", b"ADDR", b"FOO", b"id"])
    usual = {
        b"ID": _ID_WORDS,
        b"id": _ID_WORDS,
        b"TYPE": [b"pubsub", b"PUBSUB", b"replica", b"bad"],
        b"USER": [b"default", b"someone"],
        b"SKIPME": [b"yes", b"no", b"x"],
        b"ADDR": [b"1.2.3.4:5"],
    }
    return [name, choices.choice(usual.get(name, [b"x"]))]


def _setting(choices: random.Random) -> Request:
    name = choices.choice(list(_SETTINGS))
    return [name.upper() if choices.random() < 0.1 else name, choices.choice(_SETTINGS[name])]


_WORDS: dict[str, Callable[[random.Random], Request]] = {
    "channel": lambda choices: [choices.choice(_CHANNELS)],
    "pattern": lambda choices: [choices.choice(_PATTERNS)],
    "word": lambda choices: [choices.choice([b"k", b"hi", b"two words", b"", b"x"])],
    "id": lambda choices: [choices.choice(_ID_WORDS)],
    "addr": lambda choices: [choices.choice([b"1.2.3.4:5", b"x"])],
    "kind": lambda choices: [choices.choice([b"normal", b"PubSub", b"master", b"replica", b"x"])],
    "killing": _killing,
    "setting": lambda choices: [choices.choice(_SHOWN)],
    "set": _setting,
    "request": random_request,
}
_PARSED = parsed_templates(_TEMPLATES)


def random_talk(choices: random.Random, count: int) -> list[Step]:
    """Requests of three clients."""
    steps: list[Step] = []
    for _ in range(count):
        words = list(fill(choices.choice(_PARSED), choices, _WORDS))
        if choices.random() < 0.03:
            words.append(choices.choice([b"x", b""]))
        elif choices.random() < 0.03:
            words = words[:-1] or words
        if words[0] != b"COMMAND" or len(words) > 2:  # the whole table: see test_connections.py
            words = [word.replace(b"/", b"|") for word in words]
            steps.append((choices.randrange(CLIENTS), words))
    return steps


class Listener(Client):
    """A client that shows what has come, without waiting for it."""

    def arrived(self) -> list[Reply]:
        """Replies and pushes that have come; ``CLOSED`` if the connection has ended."""
        found: list[Reply] = []
        data = b""
        while select.select([self._socket], [], [], 0)[0]:
            try:
                chunk = self._socket.recv(1 << 16)
            except ConnectionError:
                chunk = b""
            data += chunk
            if not chunk:
                break
        else:
            chunk = b"-"
        self._file = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
        while (at := self._file.tell()) < len(data):
            try:
                found.append(self.receive())
            except ConnectionError:  # EXEC promises what CLIENT REPLY OFF then silences
                found.append(Reply("cut", data[at:]))
                break
        return found if chunk else [*found, CLOSED]


class Talk:
    """A server with the clients that talk to it."""

    def __init__(self, server: Redis | Lsmkv) -> None:
        self._server = server
        self._control = Client(server.address)
        for name in (b"timeout", b"tcp-keepalive", b"maxclients", b"proto-max-bulk-len",
                     b"client-query-buffer-limit", b"slowlog-max-len", b"appendfsync",
                     b"protected-mode", b"notify-keyspace-events"):  # fmt: skip
            self._control.ask("CONFIG", "SET", name, _SETTINGS[name][0])
        # How long a command takes depends on what else runs: neither server keeps any.
        self._control.ask("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        self._control.ask("SLOWLOG", "RESET")
        self._control.ask("FLUSHALL")
        while self._id_of(self._control) < _LEAST_ID:
            self._control.close()
            self._control = Client(server.address)
        self.clients = [Listener(server.address) for _ in range(CLIENTS)]
        self.ids = [self._id_of(client) for client in self.clients]

    def _id_of(self, client: Client) -> int:
        id_ = client.ask("CLIENT", "ID").value
        assert isinstance(id_, int)
        return id_

    def close(self) -> None:
        for client in (*self.clients, self._control):
            client.close()

    def send(self, number: int, request: Request) -> None:
        """Send a request, with ``@0`` for the id of client 0, and let the server run it."""
        for at, id_ in enumerate(self.ids):
            request = [b"%d" % id_ if word == b"@%d" % at else word for word in request]
        try:
            self.clients[number]._socket.sendall(encode(request))
        except OSError:
            pass  # it has been closed, as the next look at it shows
        for _ in range(2):  # what comes in one tick is answered by the end of the next
            self._ping()

    def _ping(self) -> None:
        try:
            self._control.ask("PING")
        except ConnectionError:  # CLIENT KILL may name it too
            self._control.close()
            self._control = Client(self._server.address)
            self._control.ask("PING")

    def arrived(self) -> list[list[Reply]]:
        """What has come to each client; those that were disconnected connect again."""
        found = []
        for number, client in enumerate(self.clients):
            replies = client.arrived()
            found.append([self._without_ids(one) for one in replies])
            if CLOSED in replies:
                client.close()
                self.clients[number] = Listener(self._server.address)
                self.ids[number] = self._id_of(self.clients[number])
        return found

    def _without_ids(self, reply: Reply) -> Reply:
        if isinstance(reply.value, tuple):
            return Reply(reply.mark, tuple(map(self._without_ids, reply.value)))
        if isinstance(reply.value, int) and reply.value in self.ids:
            return Reply(reply.mark, b"id of %d" % self.ids.index(reply.value))
        if isinstance(reply.value, bytes) and reply.value.startswith((b"id=", b"txt:id=")):
            text = reply.value.removeprefix(b"txt:").decode()
            lines = [self._connection(line) for line in text.splitlines()]
            return Reply(reply.mark, "\n".join(sorted(filter(None, lines))).encode())
        return reply

    def _connection(self, line: str) -> str:
        """What both servers say of a connection; nothing of the one that controls."""
        fields = dict(field.split("=", 1) for field in line.split(" "))
        id_ = int(fields.pop("id"))
        if id_ not in self.ids:
            return ""
        missing = _FIELDS - set(fields)
        fields["flags"] = fields["flags"].replace("U", "") or "N"  # Redis is at a Unix socket
        shown = [f"{name}={fields.get(name)}" for name in _COMPARED_FIELDS]
        return f"client {self.ids.index(id_)} {' '.join(shown)} without {sorted(missing)}"


_EVERY_FIELD = """
addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem rbs rbp
obl oll omem tot-mem events cmd user redir resp
"""
_FIELDS = frozenset(_EVERY_FIELD.split())
_COMPARED_FIELDS = ["name", "flags", "db", "sub", "psub", "ssub", "multi", "cmd", "user", "resp"]
_MONITORED = re.compile(rb"[0-9.]+ \[(\d+) [^\]]*\] (.*)", re.DOTALL)
_CONTROL = Reply("+", b'0 "PING"')
"""What a monitor shows of the connection that controls: that may come before its own MONITOR."""
_UNORDERED = {b"CONFIG", b"PUBSUB", b"COMMAND", b"EXEC"}


def _plain(reply: Reply, unordered: bool) -> Reply:
    """A reply without what is open: the order of sets, times, addresses."""
    if isinstance(reply.value, tuple):
        parts = [_plain(one, unordered) for one in reply.value]
        if reply.mark == "~" or unordered:
            parts.sort(key=repr)
        return Reply(reply.mark, tuple(parts))
    if reply.mark == "+" and isinstance(reply.value, bytes):
        found = _MONITORED.fullmatch(reply.value)
        if found is not None:
            shown = re.sub(rb'"[0-9]{2,}"', b'"number"', found[2])
            return Reply("+", found[1] + b" " + shown)
    return reply


def _leaves(reply: Reply) -> list[Reply]:
    return [leaf for one in reply.parts for leaf in _leaves(one)] if reply.parts else [reply]


def compared(number: int, request: Request, arrived: list[list[Reply]]) -> list[list[Reply]]:
    """What has come to all clients after a request, as it is compared."""
    name = request[0].upper()
    unordered = name in _UNORDERED
    found = [[_plain(one, unordered) for one in replies] for replies in arrived]
    found = [[one for one in replies if one != _CONTROL] for replies in found]
    if name in (b"PUBLISH", b"EXEC"):  # the order of patterns is open
        found = [sorted(replies, key=repr) for replies in found]
    if (
        name in (b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE", b"EXEC")
        and len(found[number]) > 1
    ):
        # The order in which all subscriptions end is open: names and counts are compared apart.
        found[number] = sorted(chain.from_iterable(map(_leaves, found[number])), key=repr)
    return found


class TalkPair:
    """Redis and lsmkv, asked the same."""

    def __init__(self, redis: Redis, lsmkv: Lsmkv) -> None:
        self._sides = [Talk(redis), Talk(lsmkv)]

    def close(self) -> None:
        for side in self._sides:
            side.close()

    def run(self, number: int, request: Request) -> None:
        """Send a request to both; :class:`Difference` if not the same comes to their clients."""
        for side in self._sides:
            side.send(number, request)
        arrived = [side.arrived() for side in self._sides]
        for _ in range(100):
            redis, lsmkv = (compared(number, request, one) for one in arrived)
            if redis == lsmkv:
                return
            time.sleep(0.005)  # the end of a connection takes its time
            for before, side in zip(arrived, self._sides, strict=True):
                for replies, more in zip(before, side.arrived(), strict=True):
                    replies += more
        shown = [
            f"client {one}: Redis: {', '.join(map(str, ours))}; lsmkv: {', '.join(map(str, its))}"
            for one, (ours, its) in enumerate(zip(redis, lsmkv, strict=True))
            if ours != its
        ]
        raise Difference(f"{request}\n" + "\n".join(shown))


def fails_at(redis: Redis, lsmkv: Lsmkv, steps: list[Step]) -> tuple[int, str] | None:
    """The first request after which the servers disagree, and how; None if they never do."""
    pair = TalkPair(redis, lsmkv)
    try:
        for at, (number, request) in enumerate(steps):
            try:
                pair.run(number, request)
            except (TimeoutError, Difference) as difference:
                return at, str(difference)
    finally:
        pair.close()
    return None


def shortest(
    redis: Redis, lsmkv: Lsmkv, steps: list[Step], difference: str
) -> tuple[list[Step], str]:
    """The fewest of the requests after which they disagree."""
    size = len(steps) // 2
    while size:
        begin = 0
        while begin < len(steps):
            fewer = steps[:begin] + steps[begin + size :]
            found = fails_at(redis, lsmkv, fewer) if fewer else None
            if found is not None:
                steps, difference = fewer[: found[0] + 1], found[1]
            else:
                begin += size
        size //= 2
    return steps, difference
