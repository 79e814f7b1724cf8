"""A Redis as the commands that make its keys again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from lsmkv.server.moving.client import Client, RedisError
from lsmkv.server.moving.recreating import (
    MAKERS,
    GroupContent,
    PendingEntry,
    StreamContent,
    Words,
    collection_commands,
    expiry_command,
    stream_commands,
)
from lsmkv.server.stream_ids import id_text, parse_id

_AT_ONCE = 1000
"""Elements that one request reads."""
_SCANS = {"hash": b"HSCAN", "set": b"SSCAN", "zset": b"ZSCAN"}


class Source:
    """The keys of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.left_out: Counter[str] = Counter()
        """Keys of kinds that lsmkv lacks."""
        self._clock = 0
        """Milliseconds by which the server's clock is before this one's."""

    def run_id(self) -> bytes:
        """The id of this run of the server, distinct from all others."""
        fields = self._info(b"server")
        return fields.get(b"run_id", b"unknown")

    def sizes(self) -> dict[int, int]:
        """The number of keys of each database that has any."""
        found = {}
        for name, text in self._info(b"keyspace").items():
            if name[:2] == b"db" and name[2:].isdigit():
                figures = dict(pair.split(b"=") for pair in text.split(b","))
                found[int(name[2:])] = int(figures[b"keys"])
        return found

    def _info(self, section: bytes) -> dict[bytes, bytes]:
        lines = self._client.ask(b"INFO", section).split(b"\r\n")
        pairs = [line.split(b":", 1) for line in lines if b":" in line]
        return {pair[0]: pair[1] for pair in pairs}

    def select(self, database: int) -> None:
        """Read this database from now on."""
        self._client.ask(b"SELECT", b"%d" % database)
        seconds, microseconds = [int(one) for one in self._client.ask(b"TIME")]
        self._clock = time.time_ns() // 1_000_000 - seconds * 1000 - microseconds // 1000

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """Some keys, and the cursor of the next ones; 0 after the last."""
        following, keys = self._client.ask(b"SCAN", b"%d" % cursor, b"COUNT", b"%d" % count)
        return int(following), list(dict.fromkeys(keys))

    def commands(self, keys: list[bytes]) -> Iterator[Words]:
        """The commands that make keys again; none for those that are gone.

        The first elements of all are read together.
        """
        requests = [[word, key] for key in keys for word in (b"TYPE", b"PTTL")]
        replies = self._checked(requests)
        kinds = [kind.decode() for kind in replies[::2]]
        read = [self._first_request(kind, key) for kind, key in zip(kinds, keys, strict=True)]
        first = iter(self._checked([one for one in read if one]))
        now = self._now()
        for key, kind, left, request in zip(keys, kinds, replies[1::2], read, strict=True):
            if not request:
                if kind != "none":
                    self.left_out[kind] += 1
                continue
            yield from self._commands_of(kind, key, next(first))
            if left >= 0:
                yield expiry_command(key, now + left)

    def _now(self) -> int:
        return time.time_ns() // 1_000_000 - self._clock

    def _checked(self, requests: list[list[bytes]]) -> list[Any]:
        replies = self._client.ask_all(requests)
        for request, reply in zip(requests, replies, strict=True):
            if isinstance(reply, RedisError):
                raise RedisError(f"{reply} (to {b' '.join(request[:2])[:200]!r})")
        return replies

    @staticmethod
    def _first_request(kind: str, key: bytes) -> list[bytes]:
        if kind == "string":
            return [b"GET", key]
        if kind == "list":
            return [b"LRANGE", key, b"0", b"%d" % (_AT_ONCE - 1)]
        if kind in _SCANS:
            return [_SCANS[kind], key, b"0", b"COUNT", b"%d" % _AT_ONCE]
        if kind == "stream":
            return [b"XINFO", b"STREAM", key]
        return []

    def _commands_of(self, kind: str, key: bytes, first: Any) -> Iterator[Words]:
        if kind == "string":
            if first is not None:
                yield [b"SET", key, first]
        elif kind == "list":
            yield from collection_commands(kind, key, self._list(key, first))
        elif kind in MAKERS:
            yield from collection_commands(kind, key, self._scanned(kind, key, first))
        else:
            yield from self._stream(key, _fields(first))

    def _list(self, key: bytes, values: list[bytes]) -> Iterator[Words]:
        at = 0
        while values:
            for value in values:
                yield [value]
            if len(values) < _AT_ONCE:
                return
            at += len(values)
            bounds = (b"%d" % at, b"%d" % (at + _AT_ONCE - 1))
            values = self._client.ask(b"LRANGE", key, *bounds)

    def _scanned(self, kind: str, key: bytes, reply: Any) -> Iterator[Words]:
        while True:
            cursor, items = reply
            if kind == "set":
                yield from ([item] for item in items)
            else:
                for one, other in zip(items[::2], items[1::2], strict=True):
                    yield [other, one] if kind == "zset" else [one, other]
            if cursor == b"0":
                return
            reply = self._client.ask(_SCANS[kind], key, cursor, b"COUNT", b"%d" % _AT_ONCE)

    # Streams

    def _stream(self, key: bytes, fields: dict[bytes, Any]) -> Iterator[Words]:
        groups = [self._group(key, _fields(one)) for one in self._client.ask(*_XINFO_GROUPS, key)]
        content = StreamContent(
            parse_id(fields[b"last-generated-id"]),
            parse_id(fields.get(b"max-deleted-entry-id", b"0-0")),
            fields.get(b"entries-added", fields[b"length"]),
            groups,
            self._gone(key, groups),
        )
        yield from stream_commands(key, self._entries(key), content)

    def _entries(self, key: bytes) -> Iterator[tuple[bytes, Words]]:
        start = b"-"
        while True:
            entries = self._client.ask(b"XRANGE", key, start, b"+", b"COUNT", b"%d" % _AT_ONCE)
            for id_, words in entries:
                yield parse_id(id_), words
            if len(entries) < _AT_ONCE:
                return
            start = b"(" + entries[-1][0]

    def _group(self, key: bytes, fields: dict[bytes, Any]) -> GroupContent:
        name, read = fields[b"name"], fields.get(b"entries-read")
        consumers = self._client.ask(b"XINFO", b"CONSUMERS", key, name)
        return GroupContent(
            name,
            parse_id(fields[b"last-delivered-id"]),
            -1 if read is None else read,
            [_fields(one)[b"name"] for one in consumers],
            list(self._pending(key, name)),
        )

    def _pending(self, key: bytes, group: bytes) -> Iterator[PendingEntry]:
        start = b"-"
        while True:
            found = self._client.ask(b"XPENDING", key, group, start, b"+", b"%d" % _AT_ONCE)
            now = self._now()
            for id_, consumer, idle, deliveries in found:
                yield PendingEntry(parse_id(id_), consumer, max(0, now - idle), deliveries)
            if len(found) < _AT_ONCE:
                return
            start = b"(" + found[-1][0]

    def _gone(self, key: bytes, groups: list[GroupContent]) -> list[bytes]:
        """The pending ids whose entries were removed."""
        ids = sorted({one.id for group in groups for one in group.pending})
        gone: list[bytes] = []
        for at in range(0, len(ids), _AT_ONCE):
            part = ids[at : at + _AT_ONCE]
            requests = [[b"XRANGE", key, id_text(id_), id_text(id_)] for id_ in part]
            replies = self._checked(requests)
            gone += [id_ for id_, found in zip(part, replies, strict=True) if not found]
        return gone


_XINFO_GROUPS = (b"XINFO", b"GROUPS")


def _fields(reply: list[Any]) -> dict[bytes, Any]:
    return dict(zip(reply[::2], reply[1::2], strict=True))
