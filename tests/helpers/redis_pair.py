"""Two servers that get the same requests, and what their replies have in common.

A reply is compared as it stands, types included, but for what Redis itself leaves open: the order
of unordered collections, what is chosen at random, the milliseconds that pass between two requests.
``LOOSELY`` names each command that is compared in another way, and ``DELIBERATE`` what lsmkv
answers otherwise on purpose.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from redis_requests import SCRIPTS, Request, Step
from redis_servers import Lsmkv, Redis
from resp_wire import Client, Reply

_CLIENTS = 3
_DATABASES = (0, 1, 2, 15)
_NUMBER = re.compile(rb"-?(?:inf|[0-9.]+(?:e[-+][0-9]+)?)")
_SECONDS_APART = 5
"""A time to live may differ by so much: a request comes to one server after the other."""
_WAITS = {b"0.01", b"-1", b"abc", b"nan", b"", b"1e400", b"-0.1"}
"""Times for which a blocking command may wait outside of a transaction."""


class Deliberate(NamedTuple):
    """A difference that is meant to be."""

    name: str
    reason: str
    holds: Callable[[Request, Reply, Reply], bool]
    """Whether a request with the replies of Redis and of lsmkv is such a case."""
    aligned: bool = True
    """Whether both hold the same data afterwards; if not, the keys are deleted."""


def _error(reply: Reply) -> bytes:
    return reply.value if reply.mark == "-" and isinstance(reply.value, bytes) else b""


_EMPTY = {Reply("$", b"")}
DELIBERATE: list[Deliberate] = [
    Deliberate(
        "SORT after a number that a double cannot hold",
        "Redis 7.0 takes the error of an earlier command's number for one of SORT's",
        lambda request, redis, lsmkv: (
            request[0].upper().startswith(b"SORT")
            and _error(redis) == b"ERR One or more scores can't be converted into double"
            and lsmkv.mark != "-"
        ),
        aligned=False,
    ),
    Deliberate(
        "LPOS with RANK -2^63",
        "Redis 7.0 cannot negate it, and takes it for a small one; lsmkv refuses it, as Redis 7.2",
        lambda request, redis, lsmkv: (
            b"-9223372036854775808" in request
            and _error(lsmkv).startswith(b"ERR value is out of range, value must between")
        ),
    ),
    Deliberate(
        "many stars and the empty text",
        "in Redis ** matches all but the empty text, and * that too; in lsmkv both match all",
        lambda request, redis, lsmkv: (
            any(word[:2] == b"**" for word in request)
            and set(lsmkv.parts) - set(redis.parts) <= _EMPTY
            and set(redis.parts) <= set(lsmkv.parts)
        ),
    ),
    Deliberate(
        "sums of INCRBYFLOAT",
        "Redis adds long doubles, of 64 bits; lsmkv adds decimal numbers, exactly",
        lambda request, redis, lsmkv: (
            request[0].upper() in (b"INCRBYFLOAT", b"HINCRBYFLOAT")
            and _as_number(redis) is not None
            and _as_number(redis) == _as_number(lsmkv)
        ),
        aligned=False,
    ),
]


# Replies that are not compared byte by byte


def _same(redis: Reply, lsmkv: Reply) -> bool:
    return redis == lsmkv


def _sorted(redis: Reply, lsmkv: Reply) -> bool:
    return redis == lsmkv or (
        redis.mark == lsmkv.mark
        and redis.parts != ()
        and sorted(redis.parts) == sorted(lsmkv.parts)
    )


def _pairs(parts: tuple[Reply, ...]) -> list[tuple[Reply, Reply]]:
    return sorted(zip(parts[::2], parts[1::2], strict=True))


def _sorted_pairs(redis: Reply, lsmkv: Reply) -> bool:
    return redis.mark == lsmkv.mark and _pairs(redis.parts) == _pairs(lsmkv.parts)


def _as_number(reply: Reply) -> Reply | None:
    if reply.mark in "$," and isinstance(reply.value, bytes) and _NUMBER.fullmatch(reply.value):
        value = float(reply.value) + 0.0  # no sign of zero: Redis' small sets do not keep it
        return Reply(reply.mark, repr(value).encode())
    return None


def _scores(redis: Reply, lsmkv: Reply) -> bool:
    """Redis 7.0 writes fractions with 17 digits, lsmkv the fewest that are exact, as Redis 7.2."""
    if redis.mark == lsmkv.mark and redis.parts:
        same_length = len(redis.parts) == len(lsmkv.parts)
        return same_length and all(map(_scores, redis.parts, lsmkv.parts))
    return redis == lsmkv or (
        _as_number(redis) is not None and _as_number(redis) == _as_number(lsmkv)
    )


def _times(redis: Reply, lsmkv: Reply, most: int) -> bool:
    one, other = redis.value, lsmkv.value
    if isinstance(one, int) and isinstance(other, int) and one > 0 and other > 0:
        return abs(one - other) <= most
    return redis == lsmkv


def _seconds(redis: Reply, lsmkv: Reply) -> bool:
    return _times(redis, lsmkv, _SECONDS_APART)


def _milliseconds(redis: Reply, lsmkv: Reply) -> bool:
    return _times(redis, lsmkv, 1000 * _SECONDS_APART)


def _greeting(redis: Reply, lsmkv: Reply) -> bool:
    """HELLO's fields, but for the number of the connection."""
    if redis.mark == "-" or lsmkv.mark == "-":
        return redis == lsmkv
    one, other = _pairs(redis.parts), _pairs(lsmkv.parts)
    name = Reply("$", b"id")
    return [pair for pair in one if pair[0] != name] == [pair for pair in other if pair[0] != name]


def _about_memory(redis: Reply, lsmkv: Reply) -> bool:
    """What is said about the memory of a key: something, if it is there."""
    if redis.mark == "-" or lsmkv.mark == "-":
        return redis == lsmkv
    return redis.mark == lsmkv.mark and (redis.value is None) == (lsmkv.value is None)


_OPEN_FIELDS = {b"seen-time", b"idle", b"radix-tree-keys", b"radix-tree-nodes"}
_LATE = 10**12
"""Numbers above this one are times of this century, in milliseconds."""


def _timeless(reply: Reply) -> Reply:
    """What XINFO returns, without times and without Redis' way to store it."""
    if not reply.parts:
        is_time = isinstance(reply.value, int) and reply.value > _LATE
        return Reply(reply.mark, 0) if is_time else reply
    parts: list[Reply] = []
    for one in reply.parts:
        opens = bool(parts) and parts[-1].mark == "$" and parts[-1].value in _OPEN_FIELDS
        parts.append(Reply(one.mark, 0) if opens else _timeless(one))
    return Reply(reply.mark, tuple(parts))


def _about_stream(redis: Reply, lsmkv: Reply) -> bool:
    return _timeless(redis) == _timeless(lsmkv)


def _pending(redis: Reply, lsmkv: Reply) -> bool:
    """The idle times of deliveries, each the third of four, differ a little."""
    if len(redis.parts) != len(lsmkv.parts) or redis.mark != lsmkv.mark:
        return False
    for one, other in zip(redis.parts, lsmkv.parts, strict=True):
        if len(one.parts) == len(other.parts) == 4 and one.mark == other.mark:
            fields, others = list(one.parts), list(other.parts)
            first, second = fields.pop(2).value, others.pop(2).value
            if fields != others or not isinstance(first, int) or not isinstance(second, int):
                return False
            if abs(first - second) > 1000 * _SECONDS_APART:
                return False
        elif one != other:
            return False
    return redis.parts != () or redis == lsmkv


_UNORDERED = "ACL SMEMBERS SINTER SUNION SDIFF KEYS HKEYS HVALS PUBSUB"
_WITH_SCORES = (
    "ZADD ZINCRBY ZSCORE ZMSCORE ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZPOPMIN ZPOPMAX"
    " BZPOPMIN BZPOPMAX ZMPOP BZMPOP ZUNION ZINTER ZDIFF GEOPOS GEODIST GEOSEARCH GEORADIUS"
    " GEORADIUS_RO GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO"
)
Comparison = Callable[[Reply, Reply], bool]
LOOSELY: dict[str, Comparison] = {
    **dict.fromkeys(_UNORDERED.split(), _sorted),
    "HGETALL": _sorted_pairs,
    **dict.fromkeys(_WITH_SCORES.split(), _scores),
    "TTL": _seconds,
    "EXPIRETIME": _seconds,
    "PTTL": _milliseconds,
    "PEXPIRETIME": _milliseconds,
    "XINFO": _about_stream,
    "XPENDING": _pending,
    "HELLO": _greeting,
    "MEMORY": _about_memory,
    "OBJECT": _about_memory,
}
RANDOM = {"SRANDMEMBER": "SMEMBERS", "HRANDFIELD": "HGETALL", "ZRANDMEMBER": "ZRANGE"}
"""Commands that choose at random, with what says from what."""
SCANS = {"SCAN": 1, "HSCAN": 2, "SSCAN": 2, "ZSCAN": 2}
"""Commands that walk, with the position of the cursor."""
_BY_LEX = {"ZRANGEBYLEX": 1, "ZREVRANGEBYLEX": 1, "ZLEXCOUNT": 1, "ZREMRANGEBYLEX": 1}
_BY_LEX |= {"ZRANGE": 1, "ZRANGESTORE": 2}
"""Commands that may go by members, with the position of the key: if the members have not all the
same score, the reply is open."""
_ALONE = {*RANDOM, *SCANS, "SORT", "SORT_RO", "SPOP", "RANDOMKEY", "HELLO", "DBSIZE", "INCRBYFLOAT"}
_ALONE |= {"HINCRBYFLOAT"}
"""Commands that are sent outside of transactions only: more than one reply is looked at."""
_BLOCKING = {"BLPOP": -1, "BRPOP": -1, "BLMOVE": -1, "BRPOPLPUSH": -1, "BZPOPMIN": -1}
_BLOCKING |= {"BZPOPMAX": -1, "BLMPOP": 1, "BZMPOP": 1}


def _inner(request: Request) -> Request:
    """The command that a script runs, if it runs the one in its arguments."""
    if request[:1] == [b"EVAL"] and request[1:2] and request[1] in SCRIPTS and len(request) > 3:
        return request[3:]
    return request


class Difference(AssertionError):
    """The servers do not agree."""


def _until_true(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait for what comes soon: DBSIZE counts what has expired until that is found."""
    for _ in range(200):
        if condition():
            return
        time.sleep(0.01)
    raise Difference(otherwise)


class Side:
    """A server with the connections to it."""

    def __init__(self, server: Redis | Lsmkv) -> None:
        self.server = server
        self.connect()

    def connect(self) -> None:
        self.clients = [Client(self.server.address) for _ in range(_CLIENTS)]
        self.control = Client(self.server.address)

    def disconnect(self) -> None:
        for client in (*self.clients, self.control):
            client.close()

    def blocked(self) -> int:
        """How many clients wait."""
        info = self.control.ask("INFO", "clients").value
        assert isinstance(info, bytes)
        found = re.search(rb"blocked_clients:(\d+)", info)
        assert found is not None
        return int(found[1])

    def block(self, number: int, request: Request) -> None:
        """Send a request that may block; return when it does, or has its reply."""
        client = self.clients[number]
        before = self.blocked()
        client.send(request)
        while not client.has_reply() and self.blocked() == before:
            pass

    def end_block(self, number: int, id_: Reply) -> tuple[Reply, bool]:
        """The reply to that request, and whether it still waited."""
        assert isinstance(id_.value, int)
        unblocked = self.control.ask("CLIENT", "UNBLOCK", id_.value, "ERROR")
        return self.clients[number].receive(), bool(unblocked.value)

    def contents(self) -> dict[tuple[int, bytes], tuple[bytes, int, list[Reply]]]:
        """Every key of all databases: its kind, when it expires, what it holds."""
        found = {}
        control = self.control
        for database in _DATABASES:
            control.ask("SELECT", database)
            keys = [part.value for part in control.ask("KEYS", "*").parts]
            self._check_size(len(keys))
            for key in keys:
                assert isinstance(key, bytes)
                kind = control.ask("TYPE", key).value
                expires = control.ask("PEXPIRETIME", key).value
                assert isinstance(kind, bytes)
                assert isinstance(expires, int)
                found[database, key] = kind, expires, self._content(key, kind)
        return found

    def _check_size(self, size: int) -> None:
        _until_true(lambda: self.control.ask("DBSIZE").value == size, f"DBSIZE is not {size}")

    def _content(self, key: bytes, kind: bytes) -> list[Reply]:
        control = self.control
        if kind == b"string":
            return [control.ask("GET", key), control.ask("STRLEN", key)]
        if kind == b"hash":
            items = _pairs(control.ask("HGETALL", key).parts)
            return [*(one for pair in items for one in pair), control.ask("HLEN", key)]
        if kind == b"list":
            return [*control.ask("LRANGE", key, 0, -1).parts, control.ask("LLEN", key)]
        if kind == b"set":
            return [*sorted(control.ask("SMEMBERS", key).parts), control.ask("SCARD", key)]
        if kind == b"stream":
            return [
                control.ask("XRANGE", key, "-", "+"),
                _timeless(control.ask("XINFO", "STREAM", key, "FULL", "COUNT", 0)),
                _timeless(control.ask("XINFO", "GROUPS", key)),
            ]
        if kind == b"zset":
            ranked = control.ask("ZRANGE", key, 0, -1, "WITHSCORES").parts
            return [*(_as_number(one) or one for one in ranked), control.ask("ZCARD", key)]
        raise AssertionError(kind)


class Pair:
    """Redis and lsmkv; ``run`` sends a request to both."""

    def __init__(self, redis: Redis, lsmkv: Lsmkv) -> None:
        self.redis = Side(redis)
        self.lsmkv = Side(lsmkv)
        self._queued: list[list[Request] | None] = [None] * _CLIENTS
        self.seen: Counter[str] = Counter()
        """How often each command was compared."""
        self.errors = 0
        """How many replies were errors."""
        self.served = 0
        """How many clients that waited got something."""
        self.deliberate: Counter[str] = Counter()

    def clear(self) -> None:
        """Start over, with no data and new connections."""
        self.disconnect()
        for side in (self.redis, self.lsmkv):
            side.connect()
            side.control.ask("FLUSHALL")
            side.control.ask("FUNCTION", "FLUSH")
            for user in side.control.ask("ACL", "USERS").parts:
                side.control.ask("ACL", "DELUSER", user.value)  # which spares the default user
        self._queued = [None] * _CLIENTS

    def restart(self) -> None:
        """Restart lsmkv; the data is to be what it was."""
        self.check_contents()
        before = self.lsmkv.contents()
        self.disconnect()
        assert isinstance(self.lsmkv.server, Lsmkv)
        self.lsmkv.server.restart()
        for side in (self.redis, self.lsmkv):
            side.connect()
        self._queued = [None] * _CLIENTS
        if self.lsmkv.contents() != before:
            raise Difference("the restart has changed the data")
        self.check_contents()

    def disconnect(self) -> None:
        for side in (self.redis, self.lsmkv):
            side.disconnect()

    def run(self, number: int, request: Request) -> None:
        """Send a request to both, and compare what they say."""
        name = request[0].upper().decode("latin-1")
        queued = self._queued[number]
        if name == "EVAL" and len(request) > 3:
            called = request[3].upper().decode("latin-1")
            inner = _inner(request)
            if (
                called in _ALONE
                or (called == "XADD" and b"*" in request)  # by the time of each server
                or (called in _BY_LEX and self._is_open(number, called, inner, queued is not None))
            ):
                return
        if queued is None and name in _BLOCKING:
            place = _BLOCKING[name]
            if len(request) > 2 and request[place] not in _WAITS:
                return
        if name in ("XREAD", "XREADGROUP") and queued is None and self._waits_long(request):
            return
        if name in _ALONE or (name == "XADD" and b"*" in request):
            if queued is not None:
                return
            self.seen[name] += 1
            self._run_alone(number, name, request)
            return
        if name in _BY_LEX and self._is_open(number, name, request, queued is not None):
            return
        redis, lsmkv = self._ask(number, request)
        self.seen[name] += 1
        if name == "EXEC" and queued is not None:
            self._check_transaction(number, queued, redis, lsmkv)
        else:
            self._check(number, request, redis, lsmkv)
        ended = redis.mark in "+*_" or _error(redis).startswith(b"EXECABORT")
        queues = redis == Reply("+", b"QUEUED")
        if name in ("EXEC", "DISCARD", "RESET") and ended:
            self._queued[number] = None
        elif name == "MULTI" and redis.mark == "+":
            self._queued[number] = []
        elif queued is not None and queues:
            queued.append(request)

    @staticmethod
    def _waits_long(request: Request) -> bool:
        """Whether a reading of streams may block for more than a moment."""
        words = [word.upper() for word in request]
        return any(
            word == b"BLOCK" and wait not in (b"1", b"-1", b"abc", b"1.5")
            for word, wait in itertools.pairwise(words)
        )

    def run_while_waiting(self, waiting: list[Request], steps: list[Step]) -> None:
        """Let the last clients wait for something, while the others go on; compare what they get.

        Those that came first are served first.
        """
        numbers = range(_CLIENTS - len(waiting), _CLIENTS)
        sides = (self.redis, self.lsmkv)
        ids = [[side.clients[number].ask("CLIENT", "ID") for number in numbers] for side in sides]
        for number, request in zip(numbers, waiting, strict=True):
            for side in sides:
                side.block(number, request)
        for client, request in steps:
            self.run(client, request)
        for at, (number, request) in enumerate(zip(numbers, waiting, strict=True)):
            redis, still_there = self.redis.end_block(number, ids[0][at])
            lsmkv, still_here = self.lsmkv.end_block(number, ids[1][at])
            if still_there != still_here:
                raise _difference(request, redis, lsmkv)
            self._check(number, request, redis, lsmkv)
            self.served += not still_here

    def _ask(self, number: int, request: Request) -> tuple[Reply, Reply]:
        clients = (self.redis.clients[number], self.lsmkv.clients[number])
        for client in clients:
            client.send(request)
        redis, lsmkv = clients[0].receive(), clients[1].receive()
        return redis, lsmkv

    def _is_open(self, number: int, name: str, request: Request, queued: bool) -> bool:
        """Whether a request goes by members of more than one score."""
        words = [word.upper() for word in request]
        place = _BY_LEX[name]
        if len(words) <= place or ("LEX" not in name and b"BYLEX" not in words):
            return False
        if queued:
            return True
        ranked = self._ask(number, [b"ZRANGE", request[place], b"0", b"-1", b"WITHSCORES"])[1].parts
        if ranked and ranked[0].parts:
            return len({one.parts[1] for one in ranked}) > 1
        return len(set(ranked[1::2])) > 1

    def _check(self, number: int, request: Request, redis: Reply, lsmkv: Reply) -> None:
        request = _inner(request)
        name = request[0].upper().decode("latin-1")
        self.errors += redis.mark == "-"
        if LOOSELY.get(name, _same)(redis, lsmkv):
            return
        for one in DELIBERATE:
            if one.holds(request, redis, lsmkv):
                self.deliberate[one.name] += 1
                if not one.aligned:
                    self._ask(number, [b"DEL", *request[1:]])
                return
        raise _difference(request, redis, lsmkv)

    def _check_transaction(
        self, number: int, queued: list[Request], redis: Reply, lsmkv: Reply
    ) -> None:
        if not redis.parts or len(redis.parts) != len(lsmkv.parts) or redis.mark != lsmkv.mark:
            self._check(number, [b"EXEC"], redis, lsmkv)
            return
        for request, one, other in zip(queued, redis.parts, lsmkv.parts, strict=True):
            self._check(number, request, one, other)

    # Commands whose replies are not the same

    def _run_alone(self, number: int, name: str, request: Request) -> None:
        if name in SCANS:
            self._scan(number, request, SCANS[name])
            return
        content: list[Reply] = []
        is_set = name.startswith("SORT") and len(request) > 1
        is_set = is_set and self._ask(number, [b"TYPE", request[1]])[1].value == b"set"
        if name in RANDOM and len(request) > 1:
            words = [RANDOM[name].encode(), request[1], *([b"0", b"-1"] * (name[0] == "Z"))]
            content = list(self._ask(number, words)[1].parts)
            if len(request) > 2 and request[2][:1] == b"-" and len(request[2]) > 5:
                return  # it asks for more than any memory holds
        redis, lsmkv = self._ask(number, request)
        if redis.mark == "-" or lsmkv.mark == "-":
            self._check(number, request, redis, lsmkv)
        elif name == "DBSIZE":
            _until_true(lambda: len(set(self._ask(number, request))) == 1, "DBSIZE differs")
        elif name in RANDOM:
            self._check_random(name, request, content, redis, lsmkv)
        elif name == "RANDOMKEY":
            keys = self._ask(number, [b"KEYS", b"*"])[0].parts
            for one in (redis, lsmkv):
                if one not in keys and (keys or one.value is not None):
                    raise _difference(request, redis, lsmkv)
        elif name == "SPOP":
            if redis.mark != lsmkv.mark or len(redis.parts) != len(lsmkv.parts):
                raise _difference(request, redis, lsmkv)
            self._ask(number, [b"DEL", request[1]])
        elif name == "XADD":
            if redis.mark != lsmkv.mark or (redis.value is None) != (lsmkv.value is None):
                raise _difference(request, redis, lsmkv)
            self._ask(number, [b"DEL", request[1]])
        elif name.startswith("SORT"):
            self._check_sorted(request, redis, lsmkv, is_set)
            words = [word.upper() for word in request]
            if b"BY" in words and b"ALPHA" in words and b"STORE" in words:
                self._ask(number, [b"DEL", *request[2:]])  # equal texts have no order
        else:
            self._check(number, request, redis, lsmkv)

    def _check_sorted(self, request: Request, redis: Reply, lsmkv: Reply, is_set: bool) -> None:
        """The order is open of what is not sorted in a set, and of texts that are equal."""
        words = [word.upper() for word in request]
        patterns = [
            request[at + 1] for at, word in enumerate(words[:-1]) if word == b"BY" and at >= 2
        ]
        unsorted = is_set and any(b"*" not in pattern for pattern in patterns)
        if (unsorted or (patterns and b"ALPHA" in words)) and b"STORE" not in words:
            if redis.mark != lsmkv.mark or len(redis.parts) != len(lsmkv.parts):
                raise _difference(request, redis, lsmkv)
            return
        self._check(0, request, redis, lsmkv)

    def _check_random(
        self, name: str, request: Request, content: list[Reply], redis: Reply, lsmkv: Reply
    ) -> None:
        values = {one.value for one in content}
        count = int(request[2]) if len(request) > 2 else -1
        if redis.mark != lsmkv.mark or len(redis.parts) != len(lsmkv.parts):
            raise _difference(request, redis, lsmkv)
        if not redis.parts:
            if (redis.value is None) != (lsmkv.value is None):
                raise _difference(request, redis, lsmkv)
            chosen = [one for one in (lsmkv,) if one.mark == "$" and one.value is not None]
        else:
            step = 2 if len(request) > 3 and lsmkv.parts[0].mark != "*" else 1
            chosen = [one.parts[0] if one.parts else one for one in lsmkv.parts[::step]]
        if not {one.value for one in chosen} <= values:
            raise _difference(request, redis, lsmkv)
        if count > 0 and len(set(chosen)) != len(chosen):
            raise _difference(request, redis, lsmkv)

    def _scan(self, number: int, request: Request, place: int) -> None:
        """Compare all that a walk returns."""
        if request[place : place + 1] != [b"0"]:
            redis, lsmkv = self._ask(number, request)
            if redis.mark == "-" or lsmkv.mark == "-":
                self._check(number, request, redis, lsmkv)
            return
        walks: list[list[Reply]] = []
        for side in (self.redis, self.lsmkv):
            found: list[Reply] = []
            words = list(request)
            while True:
                reply = side.clients[number].ask(*words)
                if reply.mark == "-":
                    found = [reply]
                    break
                cursor, items = reply.parts
                assert isinstance(cursor.value, bytes)
                paired = request[0].upper() in (b"HSCAN", b"ZSCAN")
                found += (
                    (
                        (Reply("*", (one, _as_number(other) or other)))
                        for one, other in zip(items.parts[::2], items.parts[1::2], strict=True)
                    )
                    if paired
                    else items.parts
                )
                if cursor.value == b"0":
                    break
                words[place] = cursor.value
            walks.append(found)
        redis, lsmkv = (Reply("*", tuple(sorted(set(walk), key=repr))) for walk in walks)
        if len(walks[1]) != len(set(walks[1])):
            raise Difference(f"{request}: lsmkv returns elements twice: {lsmkv}")
        if redis.parts and redis.parts[0].mark == "-":
            redis, lsmkv = redis.parts[0], lsmkv.parts[0] if lsmkv.parts else lsmkv
        self._check(number, request, redis, lsmkv)

    # All data

    def check_contents(self) -> None:
        """Compare the keys of all databases with what they hold, and when they expire."""
        redis, lsmkv = self.redis.contents(), self.lsmkv.contents()
        if redis.keys() != lsmkv.keys():
            only = f"in Redis {redis.keys() - lsmkv.keys()}, in lsmkv {lsmkv.keys() - redis.keys()}"
            raise Difference(f"keys: only {only}")
        for place, (kind, expires, content) in redis.items():
            other_kind, other_expires, other_content = lsmkv[place]
            if kind != other_kind:
                raise Difference(f"{place}: a {kind!r} in Redis, a {other_kind!r} in lsmkv")
            if abs(expires - other_expires) > 1000 * _SECONDS_APART or (expires < 0) != (
                other_expires < 0
            ):
                raise Difference(f"{place} expires at {expires} in Redis, {other_expires} in lsmkv")
            if content != other_content:
                shown = f"{[*map(str, content)]} in Redis, {[*map(str, other_content)]} in lsmkv"
                raise Difference(f"{place}: {shown}")


def _difference(request: Request, redis: Reply, lsmkv: Reply) -> Difference:
    return Difference(f"{request}\n  Redis: {redis}\n  lsmkv: {lsmkv}")


def fails(pair: Pair, steps: Iterable[Step]) -> str:
    """What the servers disagree about after these steps, from empty databases on; empty if they
    agree."""
    pair.clear()
    try:
        for client, request in steps:
            pair.run(client, request)
        pair.check_contents()
    except Difference as difference:
        return str(difference)
    return ""


def shrunk(pair: Pair, steps: list[Step]) -> list[Step]:
    """Steps without those that a difference does not need."""
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if fails(pair, fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps
