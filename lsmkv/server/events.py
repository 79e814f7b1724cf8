"""Keyspace notifications: messages that say which keys have changed, and how.

A command notes its events with the changes that they belong to.  They become messages when the
command has succeeded, and leave if its tick is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lsmkv.server.resp import CommandError

_ALL = "g$lshzxetd"
"""The event classes that ``A`` stands for."""
_CLASSES = _ALL + "KEmn"
INVALID = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."


def parse_classes(text: str) -> str:
    """The classes of events that a setting names, in the order of Redis.

    >>> parse_classes("KEA"), parse_classes("xE")
    ('g$lshzxetdKE', 'xE')
    """
    named = set(text.replace("A", _ALL))
    if not named <= set(_CLASSES):
        raise CommandError(INVALID)
    return "".join(one for one in _CLASSES if one in named)


def shown_classes(classes: str) -> str:
    """Classes as CONFIG GET shows them.

    >>> shown_classes("g$lshzxetdKE"), shown_classes("lxtnKEm")
    ('AKE', 'lxtnKEm')
    """
    rest = "".join(one for one in "KEm" if one in classes)
    if set(_ALL) <= set(classes):
        return "A" + rest  # as in Redis 7.0, which shows no n there
    return "".join(one for one in _ALL + "n" if one in classes) + rest


class _Event(NamedTuple):
    writes: int
    """The number of writes that the command had made."""
    name: str
    database: int
    key: bytes


class Events:
    """Keyspace events, noted by commands.

    Call order: ``(add* (undo | publish))*``.
    """

    def __init__(self) -> None:
        self.classes = ""
        """The enabled event classes; empty for none."""
        self.send: Callable[[bytes, bytes], object] = _drop
        """Publishes a message on a channel."""
        self._noted: list[_Event] = []

    def select(self, classes: str) -> None:
        """Enable events of these classes; none without a kind of channel."""
        self.classes = classes if "K" in classes or "E" in classes else ""

    def add(self, kind: str, name: str, database: int, key: bytes, writes: int) -> None:
        """Note an event of a class."""
        if kind in self.classes:
            self._noted.append(_Event(writes, name, database, key))

    def take(self, other: Events) -> None:
        """Note the events of a command that ran elsewhere."""
        self._noted += other._noted

    def undo(self, writes: int) -> None:
        """Forget the events of all writes after this many."""
        while self._noted and self._noted[-1].writes > writes:
            self._noted.pop()

    def publish(self) -> None:
        """Send the messages of what was noted."""
        if not self._noted:
            return
        noted, self._noted = self._noted, []
        for event in noted:
            name = event.name.encode()
            if "K" in self.classes:
                self.send(b"__keyspace@%d__:%b" % (event.database, event.key), name)
            if "E" in self.classes:
                self.send(b"__keyevent@%d__:%b" % (event.database, name), event.key)


def _drop(channel: bytes, message: bytes) -> None:
    pass
