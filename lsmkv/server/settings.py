"""What CONFIG GET shows and CONFIG SET changes, under Redis' names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from lsmkv.server.resp import CommandError

Sync = Literal["always", "everysec", "no"]
_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1024, "m": 10**6, "mb": 2**20, "g": 10**9, "gb": 2**30}


@dataclass
class Settings:
    """The settings of a server.

    ``ValueError`` for a value that is none.
    """

    appendfsync: Sync = "everysec"
    password: str = ""
    """CONFIG's ``requirepass``; empty for none."""
    protected_mode: bool = True
    """Without a password, serve clients of this machine only."""
    maxclients: int = 10_000
    most_clients: Callable[[int], int] = int
    """How many of so many clients the process has descriptors for."""
    timeout: int = 0
    """Seconds without a request after which a client is disconnected; 0 for never."""
    tcp_keepalive: int = 300
    """Seconds; 0 for none."""
    max_bulk: int = 512 * 2**20
    """Bytes of the longest argument: CONFIG's ``proto-max-bulk-len``."""
    query_buffer_limit: int = 2**30
    """Bytes of the longest request: CONFIG's ``client-query-buffer-limit``."""
    pubsub_limit: int = 32 * 2**20
    """Bytes that may wait for a subscriber or monitor before it is disconnected; 0: any number."""
    slowlog_slower_than: int = 10_000
    """Microseconds; negative for no slow log."""
    slowlog_length: int = 128
    fixed: dict[str, str] = field(default_factory=dict)
    """What CONFIG GET shows beside these, and CONFIG SET refuses to change."""

    def __post_init__(self) -> None:
        if self.appendfsync not in ("always", "everysec", "no"):
            raise ValueError(f"appendfsync is always, everysec or no, not {self.appendfsync!r}")
        if self.maxclients < 1:
            raise ValueError("maxclients is at least 1")

    def shown(self) -> dict[str, str]:
        """Every setting with its value as text."""
        pubsub = f"normal 0 0 0 slave 0 0 0 pubsub {self.pubsub_limit} 0 0"
        return self.fixed | {
            "appendfsync": self.appendfsync,
            "client-output-buffer-limit": pubsub,
            "client-query-buffer-limit": str(self.query_buffer_limit),
            "maxclients": str(self.maxclients),
            "proto-max-bulk-len": str(self.max_bulk),
            "protected-mode": "yes" if self.protected_mode else "no",
            "requirepass": self.password,
            "slowlog-log-slower-than": str(self.slowlog_slower_than),
            "slowlog-max-len": str(self.slowlog_length),
            "tcp-keepalive": str(self.tcp_keepalive),
            "timeout": str(self.timeout),
        }

    def change(self, name: str, value: str) -> None:
        """Give a setting another value; :class:`CommandError` if that cannot be."""
        match name:
            case "appendfsync" if value in ("always", "everysec", "no"):
                self.appendfsync = value  # type: ignore[assignment]
            case "requirepass":
                self.password = value
            case "protected-mode" if value in ("yes", "no"):
                self.protected_mode = value == "yes"
            case "maxclients":
                self.maxclients = self._possible(_number(name, value, 1))
            case "timeout":
                self.timeout = _number(name, value)
            case "tcp-keepalive":
                self.tcp_keepalive = _number(name, value)
            case "proto-max-bulk-len":
                self.max_bulk = _number(name, value, 2**20)
            case "client-query-buffer-limit":
                self.query_buffer_limit = _number(name, value, 2**20)
            case "slowlog-log-slower-than":
                self.slowlog_slower_than = _number(name, value, -1)
            case "slowlog-max-len":
                self.slowlog_length = _number(name, value)
            case "client-output-buffer-limit":
                self._change_limits(value.split())
            case _ if name not in self.shown():
                raise CommandError(
                    f"ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                )
            case _ if name in self.fixed:
                if value != self.fixed[name]:
                    raise _refused(name, "can't set immutable config")
            case _:
                raise _refused(name, "argument couldn't be parsed")

    def _possible(self, clients: int) -> int:
        possible = self.most_clients(clients)
        if possible < clients:
            raise _refused(
                "maxclients",
                "The operating system is not able to handle the specified number of clients, try"
                f" with {possible}",
            )
        return clients

    def _change_limits(self, words: list[str]) -> None:
        if len(words) % 4 or not words:
            raise _refused("client-output-buffer-limit", "wrong number of arguments")
        for at in range(0, len(words), 4):
            if words[at] not in ("normal", "slave", "replica", "pubsub"):
                raise _refused("client-output-buffer-limit", "invalid client class")
            if words[at] == "pubsub":
                self.pubsub_limit = _number("client-output-buffer-limit", words[at + 1])


def _number(name: str, value: str, least: int = 0) -> int:
    digits = value.lower().rstrip("bkmg")
    unit = _UNITS.get(value.lower()[len(digits) :])
    if unit is None or len(digits) > 19 or not digits.removeprefix("-").isdecimal():
        raise _refused(name, "argument must be a number")
    number = int(digits) * unit
    if number < least:
        raise _refused(name, f"argument must be at least {least}")
    return number


def _refused(name: str, reason: str) -> CommandError:
    return CommandError(f"ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
