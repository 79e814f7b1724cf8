"""XREAD and XREADGROUP: what has come to streams, now or later."""

from __future__ import annotations

from lsmkv.server.commands.streams import find_stream
from lsmkv.server.consumer_group import Group, find_group
from lsmkv.server.encoding import STREAM
from lsmkv.server.numbers import to_int
from lsmkv.server.options import Options, in_error, wait_seconds
from lsmkv.server.registry import command
from lsmkv.server.resp import (
    NO_REPLY,
    NULL_ARRAY,
    ByKey,
    CommandError,
    Reply,
    syntax_error,
)
from lsmkv.server.session import Session
from lsmkv.server.stream import Stream, shown
from lsmkv.server.stream_ids import LAST_ID, NO_ID, id_after, id_text, parse_id

_NEW = LAST_ID
"""``>``: what no consumer of the group got."""


class _Read:
    """A request, while it runs and while it waits."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self.seconds = -1.0
        """BLOCK; negative if it does not wait."""
        self._count = 0
        self._group = b""
        self._consumer = b""
        self._has_group = False
        self._acknowledged = False
        """NOACK: what is delivered is not pending."""
        self._after: list[tuple[bytes, bytes]] = []
        """Each key, and the id after which it is read."""
        self._known: dict[bytes, tuple[Stream | None, Group | None]] = {}
        """The streams and groups that were looked up in this attempt."""

    @property
    def keys(self) -> list[bytes]:
        return [key for key, _ in self._after]

    @property
    def gone(self) -> Reply:
        """The reply if a stream is removed while its group is waited for."""
        if self._has_group:
            return CommandError("UNBLOCKED the stream key no longer exists")
        return NO_REPLY

    def parse(self, args: list[bytes]) -> None:
        """Read the arguments.  They are checked from left to right."""
        grouped = self._name == "XREADGROUP"
        streams: list[bytes] = []
        options = Options(args[1:])
        for word in options:
            if word == b"BLOCK":
                time = options.value()
                if self._session.of_scripts:
                    name = args[0].decode("utf-8", "surrogateescape")
                    raise CommandError(
                        f"ERR {name} command is not allowed with BLOCK option from scripts"
                    )
                self.seconds = wait_seconds(time)
            elif word == b"COUNT":
                self._count = max(0, to_int(options.value()))
            elif word == b"STREAMS":
                streams = options.values(max(1, options.left))
            elif word == b"GROUP":
                self._group, self._consumer = options.values(2)
                self._check_grouped(grouped, "GROUP")
                self._has_group = True
            elif word == b"NOACK":
                self._check_grouped(grouped, "NOACK")
                self._acknowledged = True
            else:
                raise syntax_error()
        if len(streams) % 2:
            raise CommandError(
                "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be"
                " specified."
            )
        if not streams:
            raise syntax_error()
        if grouped and not self._has_group:
            raise CommandError("ERR Missing GROUP option for XREADGROUP")
        half = len(streams) // 2
        for key, text in zip(streams[:half], streams[half:], strict=True):
            self._after.append((key, self._id_after(key, text)))

    @staticmethod
    def _check_grouped(grouped: bool, option: str) -> None:
        if not grouped:
            raise CommandError(
                f"ERR The {option} option is only supported by XREADGROUP. You called XREAD"
                " instead."
            )

    def _id_after(self, key: bytes, text: bytes) -> bytes:
        """The id after which a key is read."""
        stream, group = self._look_up(key)
        if self._has_group and group is None:
            raise CommandError(
                f"NOGROUP No such key '{in_error(key)}' or consumer group '{in_error(self._group)}'"
                " in XREADGROUP with GROUP option"
            )
        if text == b"$":
            if self._has_group:
                raise CommandError(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the"
                    " history of this consumer by specifying a proper ID, or use the > ID to get"
                    " new messages. The $ ID would just return an empty result set."
                )
            return NO_ID if stream is None else stream.last
        if text == b">":
            if not self._has_group:
                raise CommandError(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP"
                    " <group> <consumer> option."
                )
            return _NEW
        return parse_id(text)

    def _look_up(self, key: bytes) -> tuple[Stream | None, Group | None]:
        """A stream and its group, of which one request has one view even if it names it twice."""
        known = self._known.get(key)
        if known is None:
            stream, group = find_stream(self._session, key), None
            if stream is not None and self._has_group:
                group = find_group(self._session.space.records, stream.entry, self._group)
            known = self._known[key] = (stream, group)
        elif known[0] is None:  # Redis looks up each key twice: for its id, and to read it
            self._session.space.miss(self._session.database, key)
        elif self._session.space.counting:
            self._session.space.note_lookup(True)
        return known

    # Reading

    def attempt(self, keys: list[bytes]) -> Reply:
        """Read new entries of some of its keys; ``NO_REPLY`` if there are none."""
        asked = self._after
        if len(keys) < len(asked):  # it waits, and this key is ready: only its first id counts
            asked = [next(one for one in asked if one[0] == keys[0])]
        found = ByKey()
        for key, after in asked:
            stream, group = self._look_up(key)
            consumers = 0 if group is None else group.size
            entries = None if stream is None else self._read(stream, group, after)
            if group is not None and group.size > consumers:
                self._session.announce("t", "xgroup-createconsumer", key)
            if entries is not None:
                found.append((key, entries))
        self._known.clear()
        return found if found else NO_REPLY

    def _read(self, stream: Stream, group: Group | None, after: bytes) -> list[Reply] | None:
        """The entries after an id; None if there are none to wait for."""
        if not self._has_group:
            start = id_after(after)
            if start is None or after >= stream.last:
                return None
            return stream.shown(start, LAST_ID, self._count) or None
        if group is None:  # it was there when the client began to wait
            raise CommandError(
                "NOGROUP the consumer group this client was blocked on no longer exists"
            )
        if after != _NEW:
            return self._read_again(stream, group, after)
        if group.last >= stream.last:
            return None
        ahead = self._session.space.read_ahead
        found = ahead.slice(stream, group.version, group.last, self._count)
        if not found:
            return None
        now = self._session.space.now()
        consumer = group.use_consumer(self._consumer, now)
        entries: list[Reply] = []
        for id_, record in found:
            group.pass_entry(stream, id_)
            if not self._acknowledged:
                group.deliver(id_, consumer, now, 1, group.delivery(id_))
            entries.append(shown(id_, record))
        group.save()
        return entries

    def _read_again(self, stream: Stream, group: Group, after: bytes) -> list[Reply]:
        """Return the entries after an id that the consumer was sent and has not acknowledged."""
        now = self._session.space.now()
        consumer = group.use_consumer(self._consumer, now)
        entries: list[Reply] = []
        start = id_after(after)
        assert start is not None  # the highest id stands for new entries
        for id_, _ in consumer.pending.walk(start):
            record = stream.get(id_)
            delivery = group.delivery(id_)
            if record is None:
                entries.append([id_text(id_), NULL_ARRAY])
            elif delivery is not None:
                group.deliver(id_, consumer, now, delivery.deliveries + 1, delivery)
                entries.append(shown(id_, record))
            if len(entries) == self._count:
                break
        group.save()
        return entries


def _run(session: Session, args: list[bytes], name: str) -> Reply:
    read = _Read(session, name)
    read.parse(args)
    keys = read.keys
    if read.seconds < 0:
        found = read.attempt(keys)
        return NULL_ARRAY if found is NO_REPLY else found
    return session.service.waits.wait(
        session, keys, STREAM, read.seconds, read.attempt, NULL_ARRAY, read.gone
    )


@command("XREAD", -4, "readonly blocking", group="stream")
def xread(session: Session, args: list[bytes]) -> Reply:
    """Return the entries of streams after some ids, or wait for one.  O(their number)."""
    return _run(session, args, "XREAD")


@command("XREADGROUP", -7, "write blocking", group="stream")
def xreadgroup(session: Session, args: list[bytes]) -> Reply:
    """Deliver entries to a consumer of a group, or return what it has not acknowledged."""
    return _run(session, args, "XREADGROUP")
