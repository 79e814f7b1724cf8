"""Options and walks shared by the SCAN commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from lsmkv.server.cursors import cursor_number
from lsmkv.server.encoding import element_prefix
from lsmkv.server.globs import matcher
from lsmkv.server.numbers import NOT_AN_INTEGER, to_int_from
from lsmkv.server.options import Options
from lsmkv.server.resp import Reply, syntax_error

if TYPE_CHECKING:
    from lsmkv.server.session import Session


class ScanOptions(NamedTuple):
    """The options of a SCAN command."""

    pattern: bytes
    limit: int
    """COUNT: how many elements are looked at, at most ``_MOST``."""
    kind: str | None
    """TYPE, in lower case; None for any."""

    @property
    def matches(self) -> Callable[[bytes], bool]:
        """A predicate that is true of the keys or elements to return."""
        return matcher(self.pattern)


_MOST: Final = 10_000
"""A call looks at no more elements, whatever COUNT says: others wait for it."""


def scan_options(words: list[bytes], *, kinds: bool = False) -> ScanOptions:
    """Read ``[MATCH pattern] [COUNT n] [TYPE kind]``."""
    pattern, limit = b"*", 10
    kind: str | None = None
    options = Options(words)
    for word in options:
        value = options.value()
        match word:
            case b"MATCH":
                pattern = value
            case b"COUNT":
                limit = min(to_int_from(1, value, "ERR syntax error", NOT_AN_INTEGER), _MOST)
            case b"TYPE" if kinds:
                kind = value.decode("latin-1").lower()
            case _:
                raise syntax_error()
    return ScanOptions(pattern, limit, kind)


def scan_elements(
    session: Session,
    args: list[bytes],
    kind: int,
    shown: Callable[[bytes, bytes], list[Reply]],
) -> Reply:
    """HSCAN, SSCAN and ZSCAN: ``shown`` turns the key and value of an element into items of the
    reply."""
    number = cursor_number(args[2])
    entry = session.space.find(session.database, args[1], kind)
    if entry is None:
        return [b"0", []]
    options = scan_options(args[3:])
    scope = element_prefix(entry)
    position = session.service.cursors.position(number, scope)
    matches = options.matches
    found: list[Reply] = []
    for seen, (element, value) in enumerate(session.space.records.under(scope, position)):
        if seen == options.limit:
            return [b"%d" % session.service.cursors.make(scope, element), found]
        if matches(element):
            found += shown(element, value)
    return [b"0", found]
