"""The settings that CONFIG GET shows and CONFIG SET changes, under Redis' names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lsmkv.server.events import parse_classes, shown_classes
from lsmkv.server.numbers import to_int
from lsmkv.server.resp import CommandError
from lsmkv.server.script_choice import INLINE, ScriptChoice

Sync = Literal["always", "everysec", "no"]
_MOST = 2**63 - 1
_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1024, "m": 10**6, "mb": 2**20, "g": 10**9, "gb": 2**30}
_ALWAYS = {
    "cluster-enabled": "no",
    "daemonize": "no",
    "latency-tracking": "yes",
    "latency-tracking-info-percentiles": "50 99 99.9",
    "replicaof": "",
    "slaveof": "",
}
"""Settings that clients ask for, and that are fixed in this server."""
_IMMUTABLE = {
    "aclfile",
    "cluster-enabled",
    "daemonize",
    "databases",
    "unixsocket",
    "unixsocketperm",
}
_PROTECTED = {"dir"}
"""Settings that Redis refuses to set, even to their current value."""


class _Number(NamedTuple):
    """A whole-number setting and its bounds."""

    attribute: str
    least: int
    most: int
    in_bytes: bool = False
    """True if it may have a unit, such as mb."""


_NUMBERS = {
    "acllog-max-len": _Number("acl_log_length", 0, _MOST),
    "busy-reply-threshold": _Number("script_time_limit", 0, _MOST),
    "client-query-buffer-limit": _Number("query_buffer_limit", 2**20, _MOST, in_bytes=True),
    "hll-sparse-max-bytes": _Number("hll_sparse_most", 0, _MOST, in_bytes=True),
    "latency-monitor-threshold": _Number("latency_threshold", 0, _MOST),
    "lua-time-limit": _Number("script_time_limit", 0, _MOST),  # its name before Redis 7
    "max-disk": _Number("max_disk", 0, _MOST, in_bytes=True),
    "maxclients": _Number("maxclients", 1, 2**32 - 1),
    "maxmemory": _Number("max_disk", 0, _MOST, in_bytes=True),  # its name in Redis
    "maxmemory-samples": _Number("samples", 1, 64),
    "proto-max-bulk-len": _Number("max_bulk", 2**20, _MOST, in_bytes=True),
    "script-max-time": _Number("script_time", 0, _MOST),
    "script-max-memory": _Number("script_memory", 2**20, 2**40, in_bytes=True),
    "slowlog-log-slower-than": _Number("slowlog_slower_than", -1, _MOST),
    "slowlog-max-len": _Number("slowlog_length", 0, _MOST),
    "stream-node-max-entries": _Number("stream_node", 0, _MOST),
    "tcp-keepalive": _Number("tcp_keepalive", 0, 2**31 - 1),
    "timeout": _Number("timeout", 0, 2**31 - 1),
}
_LOG_LEVELS = ("debug", "verbose", "notice", "warning")
ALIASES = {"lua-time-limit": "busy-reply-threshold", "maxmemory": "max-disk"}
"""Other names of settings."""
_POLICIES = (
    *("noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random"),
    *("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"),
)
_LIMITS = "client-output-buffer-limit"


@dataclass
class Settings:
    """The settings of a server.

    Raises ``ValueError`` for an invalid value.
    """

    appendfsync: Sync = "everysec"
    password: str = ""
    """CONFIG's ``requirepass``, of the user ``default``; empty for none."""
    acl_file: str = ""
    """The file of users: CONFIG's ``aclfile``; empty for none."""
    protected_mode: bool = True
    """True to serve only clients on this machine while there is no password."""
    maxclients: int = 10_000
    most_clients: Callable[[int], int] = int
    """Return the number of clients, at most this many, that the file descriptors allow."""
    timeout: int = 0
    """Seconds without a request after which a client is disconnected; 0: never."""
    tcp_keepalive: int = 300
    """Seconds; 0 for none."""
    max_disk: int = 0
    """Bytes that the store may take on disk; 0: no limit."""
    eviction: str = "noeviction"
    """The choice of keys to remove beyond that: CONFIG's ``maxmemory-policy``."""
    samples: int = 5
    """The number of keys of which one is evicted: CONFIG's ``maxmemory-samples``."""
    max_bulk: int = 512 * 2**20
    """Bytes of the longest argument: CONFIG's ``proto-max-bulk-len``."""
    query_buffer_limit: int = 2**30
    """Bytes of the longest request: CONFIG's ``client-query-buffer-limit``."""
    pubsub_limit: int = 32 * 2**20
    """Bytes that may wait for a subscriber or monitor before it is disconnected; 0: no limit."""
    hll_sparse_most: int = 3000
    """Bytes above which a HyperLogLog becomes dense: CONFIG's ``hll-sparse-max-bytes``."""
    stream_node: int = 100
    """Entries of a stream that trimming with ``~`` removes together: CONFIG's
    ``stream-node-max-entries``; 0: only all."""
    script_time_limit: int = 5000
    """Milliseconds after which other clients get BUSY while a script runs; 0: never."""
    script_memory: int = 256 * 2**20
    """Bytes that a script may have in Lua: CONFIG's ``script-max-memory``."""
    script_time: int = 10_000
    """Milliseconds after which a script in a separate process is ended, and undone: CONFIG's
    ``script-max-time``; 0: never."""
    scripts: ScriptChoice = INLINE
    """The choice of scripts that run, and where."""
    events: str = ""
    """The classes of keyspace notifications: CONFIG's ``notify-keyspace-events``."""
    slowlog_slower_than: int = 10_000
    """Microseconds; negative turns the slow log off."""
    slowlog_length: int = 128
    acl_log_length: int = 128
    latency_threshold: int = 0
    """Milliseconds from which LATENCY notes an event; 0: never.  CONFIG's
    ``latency-monitor-threshold``."""
    notable: int = field(default=0, init=False)
    """Nanoseconds from which a command is in the slow log, or noted by LATENCY."""
    log_level: str = "warning"
    """``debug``, ``verbose``, ``notice`` or ``warning``: CONFIG's ``loglevel``, for programs that
    set up logging by it."""
    config_file: str = ""
    """The path of the configuration file; empty if there is none."""
    rewrite_config: Callable[[], None] | None = None
    """Writes the settings into that file.  Raises ``OSError``."""
    on_change: list[Callable[[], None]] = field(default_factory=list)
    """Called after each change."""
    fixed: dict[str, str] = field(default_factory=dict)
    """Further settings that CONFIG GET shows and CONFIG SET refuses to change."""

    def __post_init__(self) -> None:
        if self.appendfsync not in ("always", "everysec", "no"):
            raise ValueError(
                f"appendfsync must be always, everysec or no, not {self.appendfsync!r}"
            )
        if self.maxclients < 1:
            raise ValueError("maxclients must be at least 1")
        if self.password and self.acl_file:
            raise ValueError(
                "a password cannot be combined with a file of users: set that of the user default"
                " in the file"
            )
        if self.max_disk < 0:
            raise ValueError("max_disk must be at least 0")
        if self.eviction not in _POLICIES:
            raise ValueError(f"maxmemory_policy must be one of {', '.join(_POLICIES)}")
        self._find_notable()

    def _find_notable(self) -> None:
        limits = [_MOST]
        if self.slowlog_slower_than >= 0:
            limits.append(self.slowlog_slower_than * 1000)
        if self.latency_threshold:
            limits.append(self.latency_threshold * 1_000_000)
        self.notable = min(limits)

    def shown(self) -> dict[str, str]:
        """Every setting with its value as text."""
        return {**_ALWAYS, **self.fixed, **self.changeable(), "aclfile": self.acl_file}

    def changeable(self) -> dict[str, str]:
        """The settings that may change while the server runs, with their values as text."""
        numbers = {name: str(getattr(self, one.attribute)) for name, one in _NUMBERS.items()}
        return {
            **numbers,
            "appendfsync": self.appendfsync,
            "loglevel": self.log_level,
            "maxmemory-policy": self.eviction,
            "notify-keyspace-events": shown_classes(self.events),
            _LIMITS: f"normal 0 0 0 slave 0 0 0 pubsub {self.pubsub_limit} 0 0",
            "protected-mode": "yes" if self.protected_mode else "no",
            "requirepass": self.password,
        }

    def change(self, pairs: list[tuple[str, str]]) -> None:
        """Change settings: all of them, or none and :class:`CommandError`."""
        shown = self.shown()
        seen: set[str] = set()
        for given, _ in pairs:
            name = given.lower()
            if name not in shown:
                raise CommandError(
                    f"ERR Unknown option or number of arguments for CONFIG SET - '{given}'"
                )
            if name in _IMMUTABLE:
                raise _refused(given, "can't set immutable config")
            if name in _PROTECTED:
                raise _refused(given, "can't set protected config")
            if name in seen:
                raise _refused(given, "duplicate parameter")
            seen.add(name)
        changes = [self._parsed(name.lower(), value) for name, value in pairs]
        for attribute, parsed in changes:
            if attribute:
                setattr(self, attribute, parsed)
        self._find_notable()
        for call in self.on_change:
            call()

    def _parsed(self, name: str, value: str) -> tuple[str, object]:
        """The attribute of a setting that may change, and the value for it."""
        if name in _NUMBERS:
            number = _number(name, value)
            if name == "maxclients":
                self._check_clients(number)
            return _NUMBERS[name].attribute, number
        match name:
            case "appendfsync":
                if value.lower() not in ("always", "everysec", "no"):
                    choices = "everysec, always, no"
                    raise _refused(name, f"argument(s) must be one of the following: {choices}")
                return "appendfsync", value.lower()
            case "loglevel":
                if value.lower() not in _LOG_LEVELS:
                    choices = ", ".join(_LOG_LEVELS)
                    raise _refused(name, f"argument(s) must be one of the following: {choices}")
                return "log_level", value.lower()
            case "maxmemory-policy":
                if value.lower() not in _POLICIES:
                    choices = ", ".join(_POLICIES)
                    raise _refused(name, f"argument(s) must be one of the following: {choices}")
                return "eviction", value.lower()
            case "notify-keyspace-events":
                try:
                    return "events", parse_classes(value)
                except CommandError as error:
                    raise _refused(name, str(error)) from None
            case "protected-mode":
                if value.lower() not in ("yes", "no"):
                    raise _refused(name, "argument must be 'yes' or 'no'")
                return "protected_mode", value.lower() == "yes"
            case "requirepass":
                return "password", value
            case "client-output-buffer-limit":
                return "pubsub_limit", _pubsub_limit(value.split(), self.pubsub_limit)
        if value != (_ALWAYS | self.fixed)[name]:
            raise _refused(name, "can't set immutable config")
        return "", None

    def _check_clients(self, clients: int) -> None:
        """Refuse more clients than the process has descriptors for."""
        possible = self.most_clients(clients)
        if possible < clients:
            raise _refused(
                "maxclients",
                "The operating system is not able to handle the specified number of clients, try"
                f" with {possible}",
            )


def _pubsub_limit(words: list[str], limit: int) -> int:
    """The limit for subscribers in a list of client classes, or the old one."""
    if len(words) % 4:
        raise _refused(_LIMITS, "Wrong number of arguments in buffer limit configuration.")
    for at in range(0, len(words), 4):
        kind, hard, soft, seconds = words[at : at + 4]
        if kind.lower() not in ("normal", "slave", "replica", "pubsub"):
            raise _refused(_LIMITS, "Invalid client class specified in buffer limit configuration.")
        sizes = [_bytes(hard), _bytes(soft), int(seconds) if seconds.isdecimal() else None]
        if None in sizes:
            reason = "Error in hard, soft or soft_seconds setting in buffer limit configuration."
            raise _refused(_LIMITS, reason)
        if kind.lower() == "pubsub":
            limit = sizes[0] or 0
    return limit


def parse_size(text: str) -> int:
    """A number of bytes, which may have a unit.  ``ValueError`` if it is invalid.

    >>> parse_size("10gb"), parse_size("3M")
    (10737418240, 3000000)
    """
    size = _bytes(text)
    if size is None:
        raise ValueError(f"invalid size: {text!r} (such as 10gb)")
    return size


def _bytes(value: str) -> int | None:
    """A number of bytes, which may have a unit; None if it is invalid."""
    digits = value.lower().rstrip("bkmg")
    unit = _UNITS.get(value.lower()[len(digits) :])
    if unit is None or len(digits) > 19 or not digits.isdecimal():
        return None
    return int(digits) * unit


def _number(name: str, value: str) -> int:
    one = _NUMBERS[name]
    number = _bytes(value) if one.in_bytes else None
    if one.in_bytes and number is None:
        raise _refused(name, "argument must be a memory value")
    if number is None:
        try:
            number = to_int(value.encode("utf-8", "surrogateescape"))
        except CommandError:
            raise _refused(name, "argument couldn't be parsed into an integer") from None
    if not one.least <= number <= one.most:
        raise _refused(name, f"argument must be between {one.least} and {one.most} inclusive")
    return number


def _refused(name: str, reason: str) -> CommandError:
    return CommandError(f"ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
