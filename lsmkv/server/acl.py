"""Access control: users, and what the rules of each permit.

A user is what its rules say, in the words of ACL SETUSER, ACL LIST and the files of Redis.  They
are applied from left to right.  ``User.words`` returns rules that make the same user again: so
files are written, and a change is tried on a copy first.

The rules of commands are kept as they were given, without those that a later one overrides, as in
Redis 7.2.  Redis 7.0 finds categories and commands that amount to the same.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from lsmkv.server.command import MISSING, Command, KeyUse, Table
from lsmkv.server.globs import matcher
from lsmkv.server.pubsub import PATTERN

# fmt: off
CATEGORIES: Final = (
    "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
    "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous",
    "connection", "transaction", "scripting",
)
# fmt: on
UNKNOWN_NAME: Final = "Unknown command or category name in ACL"
_SYNTAX: Final = "Syntax error"
_AFTER_ALL: Final = (
    "Adding a pattern after the * pattern (or the '{}' flag) is not valid and does not have any"
    " effect. Try '{}' to start with an empty list of {}"
)
_READ: Final = 1
_WRITE: Final = 2
_MARKS: Final = {_READ: b"%R~", _WRITE: b"%W~", _READ | _WRITE: b"~"}
_KEY_RULE: Final = re.compile(rb"(?:~|%(R|W|RW|WR)~)(.*)", re.IGNORECASE | re.DOTALL)
_SPACE: Final = re.compile(rb"[\s\0]")
_HASH: Final = re.compile(rb"[0-9a-f]{64}")
_ALIASES: Final = {
    b"allkeys": b"~*",
    b"allchannels": b"&*",
    b"allcommands": b"+@all",
    b"nocommands": b"-@all",
}
_ONE_CHANNEL: Final = ("PUBLISH", "SPUBLISH")
_ALL_CHANNELS: Final = ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE")
"""Commands whose arguments are channels: the first one, or all.  Ending a subscription is free."""


class RuleError(Exception):
    """A rule is invalid: the reason, in Redis' words."""


class Denial(NamedTuple):
    """A reason for refusing a command; of those of several selectors the largest is reported."""

    rank: int
    """1 for the command, 2 for a key, 3 for a channel."""
    place: int
    """The index of the key or channel among those of its kind."""
    name: bytes

    @property
    def reason(self) -> str:
        """``command``, ``key`` or ``channel``."""
        return ("", "command", "key", "channel")[self.rank]


class _KeyPattern(NamedTuple):
    rights: int
    matches: Callable[[bytes], bool]


def has_space(text: bytes) -> bool:
    """True if a name or pattern contains white space, which a file of users cannot represent."""
    return _SPACE.search(text) is not None


class Selector:
    """Commands, and the keys and channels that they may use."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.all_commands = False
        self.all_keys = False
        self.all_channels = False
        self._from_all = False
        """True if the command rules begin with ``+@all``, and so permit later commands."""
        self._rules: list[bytes] = []
        """The rules of commands after that, or after ``-@all``."""
        self._commands: set[str] = set()
        """The names of the permitted commands and subcommands."""
        self._first_arguments: dict[str, set[bytes]] = {}
        """The arguments with which a command is permitted that otherwise is not."""
        self._keys: dict[bytes, _KeyPattern] = {}
        self._channels: dict[bytes, Callable[[bytes], bool]] = {}

    def apply(self, rule: bytes) -> None:
        """Apply a rule.  Raises :class:`RuleError`."""
        lowered = rule.lower()
        lowered = _ALIASES.get(lowered, lowered)
        if lowered in (b"~*", b"resetkeys"):
            self.all_keys = lowered == b"~*"
            self._keys.clear()
        elif lowered in (b"&*", b"resetchannels"):
            self.all_channels = lowered == b"&*"
            self._channels.clear()
        elif lowered in (b"+@all", b"-@all"):
            self.all_commands = self._from_all = lowered == b"+@all"
            self._rules.clear()
            self._first_arguments.clear()
            self._commands.clear()
            if self._from_all:
                for one in self._table.values():
                    self._change(one, True)
        elif lowered[:1] in (b"+", b"-"):
            self._apply_to_commands(lowered)
        elif lowered[:1] == b"&":
            self._add_channel(rule[1:])
        else:
            self._add_key(rule)

    def _add_key(self, rule: bytes) -> None:
        found = _KEY_RULE.fullmatch(rule)
        if found is None:
            raise RuleError(_SYNTAX)
        if self.all_keys:
            raise RuleError(_AFTER_ALL.format("allkeys", "resetkeys", "patterns"))
        marks, pattern = found.groups()
        if has_space(pattern):
            raise RuleError(_SYNTAX)
        marks = (marks or b"RW").upper()
        rights = _READ * (b"R" in marks) | _WRITE * (b"W" in marks)
        if pattern in self._keys:
            rights |= self._keys[pattern].rights
        if pattern == b"*" and rights == _READ | _WRITE:
            self.apply(b"~*")
        else:
            self._keys[pattern] = _KeyPattern(rights, matcher(pattern))

    def _add_channel(self, pattern: bytes) -> None:
        if self.all_channels:
            raise RuleError(_AFTER_ALL.format("allchannels", "resetchannels", "channels"))
        if has_space(pattern):
            raise RuleError(_SYNTAX)
        self._channels[pattern] = matcher(pattern)

    def _apply_to_commands(self, rule: bytes) -> None:
        allowed = rule[:1] == b"+"
        if rule[1:2] == b"@":
            category = rule[2:].decode("latin-1")
            if category not in CATEGORIES:
                raise RuleError(UNKNOWN_NAME)
            for one in self._table.values():
                for inner in (one, *one.subcommands.values()):
                    if category in inner.properties.categories:
                        self._change(inner, allowed)
        else:
            words = rule[1:].upper().split(b"|")
            found = self._table.get(words[0])
            if found is not None and found.subcommands and len(words) == 2:
                found, words = found.subcommands.get(words[1]), [b"|".join(words)]
            if found is None and words[0] not in MISSING:  # what Redis has may stand in its files
                raise RuleError(UNKNOWN_NAME)
            if len(words) == 1:
                if found is not None:
                    self._change(found, allowed)
            else:
                self._add_first_argument(rule, found, words)
        name = rule[1:]
        self._rules = [
            one for one in self._rules if one[1:] != name and not one[1:].startswith(name + b"|")
        ]
        self._rules.append(rule)
        while self._rules and (self._rules[0][:1] == b"+") == self._from_all:
            del self._rules[0]  # it changes nothing

    def _add_first_argument(self, rule: bytes, found: Command | None, words: list[bytes]) -> None:
        """Permit a command with one first argument."""
        if rule[:1] == b"-" or len(words) > 3:
            raise RuleError(UNKNOWN_NAME)
        if found is not None and words[1] in found.subcommands:
            raise RuleError("Allowing first-arg of a subcommand is not supported")
        if len(words) > 2:
            raise RuleError(UNKNOWN_NAME)
        if not words[1]:
            raise RuleError(_SYNTAX)
        if found is not None:
            self._first_arguments.setdefault(found.name, set()).add(words[1])

    def _change(self, found: Command, allowed: bool) -> None:
        """Permit a command with all of its subcommands, or do not."""
        names = {one.name for one in (found, *found.subcommands.values())}
        self._first_arguments.pop(found.name, None)
        if allowed:
            self._commands |= names
        else:
            self._commands -= names
            self.all_commands = False

    @property
    def commands(self) -> bytes:
        """The rules of commands."""
        return b" ".join([b"+@all" if self._from_all else b"-@all", *self._rules])

    @property
    def keys(self) -> bytes:
        """The patterns of keys."""
        if self.all_keys:
            return b"~*"
        return b" ".join(_MARKS[one.rights] + pattern for pattern, one in self._keys.items())

    @property
    def channels(self) -> bytes:
        """The patterns of channels."""
        return b"&*" if self.all_channels else b" ".join(b"&" + one for one in self._channels)

    def words(self) -> list[bytes]:
        """The rules of this selector."""
        reset = b"" if self.all_channels else b"resetchannels "
        return (self.keys + b" " + reset + self.channels + b" " + self.commands).split()

    def denial(self, found: Command, request: list[bytes]) -> Denial | None:
        """Return the selector's reason for refusing a request; None if it permits it.

        O(keys * patterns).
        """
        name = found.name
        if not (self.all_commands or name in self._commands or "no_auth" in found.flags):
            arguments = self._first_arguments.get(name, ())
            if len(request) < 2 or request[1].upper() not in arguments:
                return Denial(1, 0, found.full_name.encode())
        if not self.all_keys:
            for place, use in enumerate(found.keys_of(request)):
                if not self._permits_key(use):
                    return Denial(2, place, use.key)
        if not self.all_channels:
            channels: list[bytes] = []
            if name in _ONE_CHANNEL:
                channels = request[1:2]
            elif name in _ALL_CHANNELS:
                channels = request[1:]
            for place, channel in enumerate(channels):
                if not self.permits_channel(channel, name == "PSUBSCRIBE"):
                    return Denial(3, place, channel)
        return None

    def _permits_key(self, use: KeyUse) -> bool:
        rights = _READ if "access" in use.flags else 0
        if "insert" in use.flags or "update" in use.flags or "delete" in use.flags:
            rights |= _WRITE
        return any(
            one.rights & rights == rights and one.matches(use.key) for one in self._keys.values()
        )

    def permits_channel(self, channel: bytes, pattern: bool) -> bool:
        """True if a channel may be used.  A pattern must be among the permitted ones as it is."""
        if self.all_channels or pattern:
            return self.all_channels or channel in self._channels
        return any(matches(channel) for matches in self._channels.values())

    def reads_all_keys(self) -> bool:
        """True if every key may be read."""
        return self.all_keys or (b"*" in self._keys and self._keys[b"*"].rights & _READ != 0)


class User:
    """A name, passwords and selectors.  What one of its selectors permits, it may do."""

    def __init__(self, name: bytes, table: Table) -> None:
        """A user that may not log in and may do nothing."""
        self.name = name
        self._table = table
        self.enabled = False
        self.any_password = False
        """True if every password is accepted: ``nopass``."""
        self.passwords: list[bytes] = []
        """The SHA-256 of each, in hexadecimal digits."""
        self._payload = b""
        """The rule for RESTORE's payload check, if one was given; kept for files of Redis."""
        self.selectors = [Selector(table)]
        """First that of the rules outside of parentheses."""

    def apply(self, rule: bytes) -> None:
        """Apply a rule.  Raises :class:`RuleError`."""
        lowered, mark = rule.lower(), rule[:1]
        if lowered in (b"on", b"off"):
            self.enabled = lowered == b"on"
        elif lowered in (b"nopass", b"resetpass"):
            self.any_password = lowered == b"nopass"
            self.passwords.clear()
        elif lowered in (b"sanitize-payload", b"skip-sanitize-payload"):
            self._payload = lowered
        elif lowered == b"clearselectors":
            del self.selectors[1:]
        elif lowered == b"reset":
            self.take(User(self.name, self._table))
            self._payload = b"sanitize-payload"
        elif mark == b"(" and rule.endswith(b")"):
            selector = Selector(self._table)
            for one in rule[1:-1].split():
                selector.apply(one)
            self.selectors.append(selector)
        elif mark and mark in b">#<!":
            self._change_password(mark, rule[1:])
        elif rule:
            self.selectors[0].apply(rule)

    def _change_password(self, mark: bytes, password: bytes) -> None:
        if mark in b"><":
            password = _hashed(password)
        elif not _HASH.fullmatch(password):
            raise RuleError(
                "The password hash must be exactly 64 characters and contain only lowercase"
                " hexadecimal characters"
            )
        if mark in b">#":
            self.any_password = False
            if password not in self.passwords:
                self.passwords.append(password)
        elif password in self.passwords:
            self.passwords.remove(password)
        else:
            raise RuleError("The password you are trying to remove from the user does not exist")

    def take(self, other: User) -> None:
        """Take over the rules of another user, which is discarded."""
        self.enabled, self.any_password = other.enabled, other.any_password
        self.passwords, self.selectors = other.passwords, other.selectors
        self._payload = other._payload

    def flags(self) -> list[bytes]:
        """The rules that have no value."""
        flags = [b"on" if self.enabled else b"off"]
        if self.any_password:
            flags.append(b"nopass")
        if self._payload:
            flags.append(self._payload)
        return flags

    def words(self) -> list[bytes]:
        """Rules that make this user."""
        words = self.flags() + [b"#" + one for one in self.passwords] + self.selectors[0].words()
        return words + [b"(" + b" ".join(one.words()) + b")" for one in self.selectors[1:]]

    def line(self) -> bytes:
        """The user as in ACL LIST and in files."""
        return b" ".join([b"user", self.name, *self.words()])

    @property
    def open(self) -> bool:
        """True if any password logs in."""
        return self.enabled and self.any_password

    @property
    def unlimited(self) -> bool:
        """True if a selector permits all commands, keys and channels."""
        return any(one.all_commands and one.all_keys and one.all_channels for one in self.selectors)

    def accepts(self, password: bytes) -> bool:
        """True if this password logs in.  Hashes are compared in constant time."""
        hashed = _hashed(password)
        matches = [hmac.compare_digest(hashed, one) for one in self.passwords]
        return self.enabled and (self.any_password or any(matches))

    def denial(self, found: Command, request: list[bytes]) -> Denial | None:
        """Return the reason for refusing a request; None if a selector permits it."""
        worst: Denial | None = None
        for one in self.selectors:
            denial = one.denial(found, request)
            if denial is None:
                return None
            if worst is None or denial > worst:
                worst = denial
        return worst

    def permits_channels(self, subscriptions: list[set[bytes]]) -> bool:
        """True if the user may keep these subscriptions of a session."""
        return all(
            any(selector.permits_channel(name, kind == PATTERN) for selector in self.selectors)
            for kind, names in enumerate(subscriptions)
            for name in names
        )

    def reads_all_keys(self, found: Command, request: list[bytes]) -> bool:
        """True if a request may read any key besides those that it names."""
        return any(
            one.reads_all_keys() and one.denial(found, request) is None for one in self.selectors
        )


def _hashed(password: bytes) -> bytes:
    return hashlib.sha256(password).hexdigest().encode()
