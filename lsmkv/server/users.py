"""The users of a server, and the file in which they are."""

from __future__ import annotations

from collections.abc import Iterable

from lsmkv.engine.env.whole_file import read_whole, replace_whole
from lsmkv.server.acl import UNKNOWN_NAME, RuleError, User, has_space
from lsmkv.server.command import Table
from lsmkv.server.options import in_error
from lsmkv.server.resp import CommandError
from lsmkv.server.settings import Settings

_DEFAULT = b"default"
_ALL_RIGHTS = (b"on", b"nopass", b"~*", b"&*", b"+@all")
_UNCHANGED = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)


class Users:
    """Users by their names.  New connections belong to the user ``default``."""

    def __init__(self, table: Table, settings: Settings) -> None:
        """Read the file of users, if there is one.  Raises ``ValueError`` or ``OSError``."""
        self._table = table
        self.file = settings.acl_file
        self.default = self._all_powerful()
        self._by_name = {_DEFAULT: self.default}
        self.set_password(settings.password)
        if self.file:
            try:
                self.load()
            except CommandError as error:
                raise ValueError(str(error).removeprefix("ERR ")) from None

    def _all_powerful(self) -> User:
        user = User(_DEFAULT, self._table)
        for rule in _ALL_RIGHTS:
            user.apply(rule)
        return user

    def set_password(self, password: str) -> None:
        """Set the only password of the user ``default``; it needs none if this is empty."""
        self.default.apply(b"nopass")
        if password:
            self.default.apply(b">" + password.encode("utf-8", "surrogateescape"))

    def find(self, name: bytes) -> User | None:
        """The user with this name; None if there is none."""
        return self._by_name.get(name)

    def all(self) -> list[User]:
        """Every user, in the order of the names."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def change(self, name: bytes, rules: list[bytes]) -> User:
        """Make or change a user: ACL SETUSER.  Raises :class:`CommandError`, and changes nothing,
        if a rule is invalid."""
        if has_space(name):
            raise CommandError("ERR Usernames can't contain spaces or null characters")
        rules, unmatched = _joined(rules)
        if unmatched:
            text = f"Unmatched parenthesis in acl selector starting at '{in_error(unmatched)}'."
            raise CommandError(f"ERR {text}")
        old = self._by_name.get(name)
        made = User(name, self._table)
        for rule in [] if old is None else old.words():
            made.apply(rule)
        for rule in rules:
            try:
                made.apply(rule)
            except RuleError as error:
                text = f"ERR Error in ACL SETUSER modifier '{in_error(rule)}': {error}"
                raise CommandError(text) from None
        if old is None:
            self._by_name[name] = made
            return made
        old.take(made)
        return old

    def remove(self, names: list[bytes]) -> int:
        """Remove users, and take all rights from them.  Returns how many there were.  Raises
        :class:`CommandError`."""
        if _DEFAULT in names:
            raise CommandError("ERR The 'default' user cannot be removed")
        removed = [
            self._by_name.pop(name) for name in dict.fromkeys(names) if name in self._by_name
        ]
        self._disempower(removed)
        return len(removed)

    def _disempower(self, removed: Iterable[User]) -> None:
        """Take all rights from users that are no longer there, but may be in a transaction."""
        for user in removed:
            user.take(User(user.name, self._table))

    def load(self) -> None:
        """Replace all users by those in the file.

        A file without a user ``default`` has one that may do everything.  Raises
        :class:`CommandError`, and changes nothing, if a line is invalid; ``OSError``.
        """
        made: dict[bytes, User] = {}
        faults: list[str] = []
        for number, line in enumerate(read_whole(self.file).split(b"\n"), 1):
            words = [word for word in line.strip(b" \t\r").split(b" ") if word]
            if words:
                self._load_line(f"{self.file}:{number}", words, made, faults)
        if faults:
            raise CommandError(f"ERR {''.join(faults)}{_UNCHANGED}")
        self.default.take(made.get(_DEFAULT) or self._all_powerful())
        self._disempower(one for one in self.all() if one is not self.default)
        self._by_name = made | {_DEFAULT: self.default}

    def _load_line(
        self, place: str, words: list[bytes], made: dict[bytes, User], faults: list[str]
    ) -> None:
        """Make the user of a line, and note what is wrong with it."""
        if words[0] != b"user" or len(words) < 2:
            faults.append(f"{place} should start with user keyword followed by the username. ")
            return
        name = words[1]
        if name in made:
            line = place.rpartition(":")[2]
            faults.append(f"WARNING: Duplicate user '{in_error(name)}' found on line {line}. ")
            return
        if has_space(name):
            faults.append(f"{place}: username '{in_error(name)}' contains invalid characters. ")
            return
        user = made[name] = User(name, self._table)
        rules, unmatched = _joined(words[2:])
        if unmatched:
            faults.append(f"{place}: Unmatched parenthesis in selector definition. ")
        for rule in rules:
            try:
                user.apply(rule)
            except RuleError as error:
                # Other rules may have passwords.
                named = str(error) == UNKNOWN_NAME
                where = f"Error in applying operation '{in_error(rule)}': " if named else ""
                faults.append(f"{place}: {where}{error}. ")

    def save(self) -> None:
        """Write all users to the file.  ``OSError``."""
        replace_whole(self.file, b"".join(user.line() + b"\n" for user in self.all()))


def _joined(words: list[bytes]) -> tuple[list[bytes], bytes]:
    """Rules, with a selector as one of them; and the word that opens one without an end."""
    rules: list[bytes] = []
    selector: list[bytes] = []
    for word in words:
        if selector or (word[:1] == b"(" and not word.endswith(b")")):
            selector.append(word)
            if word.endswith(b")"):
                rules.append(b" ".join(selector))
                selector = []
        else:
            rules.append(word)
    return rules, selector[0] if selector else b""
