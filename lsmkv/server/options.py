"""The arguments of a command after its fixed ones: options, and lists with their length."""

from __future__ import annotations

from lsmkv.server.numbers import to_int_from
from lsmkv.server.resp import CommandError, syntax_error


class Options:
    """Options, read from left to right, as Redis checks them::

        options = Options(args[3:])
        for word in options:
            if word == b"REPLACE":
                replace = True
            elif word == b"DB":
                database = database_at(session, options.value())
            else:
                raise syntax_error()

    The iteration yields each option in upper case, and passes over the values that are taken.
    """

    def __init__(self, words: list[bytes], missing: CommandError | None = None) -> None:
        self._words = words
        self._missing = missing
        """The error of an option without its value, if that is not a syntax error."""
        self._at = 0
        """The index of the next option or value."""

    def __iter__(self) -> Options:
        return self

    def __next__(self) -> bytes:
        at = self._at
        if at >= len(self._words):
            raise StopIteration
        self._at = at + 1
        return self._words[at].upper()

    @property
    def left(self) -> int:
        """The number of words after the last one."""
        return len(self._words) - self._at

    @property
    def given(self) -> bytes:
        """The last option as the client wrote it."""
        return self._words[self._at - 1]

    def value(self) -> bytes:
        """The value after an option.  Raises :class:`CommandError` if there is none."""
        return self.values(1)[0]

    def values(self, count: int) -> list[bytes]:
        """Take this many values after an option.  Raises :class:`CommandError` if there are
        fewer."""
        at = self._at
        if at + count > len(self._words):
            raise self._missing or syntax_error()
        self._at = at + count
        return self._words[at : at + count]


def optional_count(args: list[bytes]) -> int | None:
    """The count that may follow a key, as in SPOP; None without one."""
    if len(args) > 3:
        raise syntax_error()
    return None if len(args) == 2 else positive(args[2])


def positive(text: bytes) -> int:
    """A number of elements to take, at least 0."""
    return to_int_from(0, text, "ERR value is out of range, must be positive")


def checked_limit(words: list[bytes]) -> int:
    """``[LIMIT n]``; 0 for none."""
    limit = 0
    options = Options(words)
    for word in options:
        if word != b"LIMIT":
            raise syntax_error()
        limit = to_int_from(0, options.value(), "ERR LIMIT can't be negative")
    return limit


def split_numbered(
    args: list[bytes], at: int, too_few: str = "ERR syntax error"
) -> tuple[list[bytes], list[bytes]]:
    """The keys after their number, which is argument ``at``, and the arguments after them."""
    count = to_int_from(1, args[at], "ERR numkeys should be greater than 0")
    if count > len(args) - at - 1:
        raise CommandError(too_few)
    return args[at + 1 : at + 1 + count], args[at + 1 + count :]


def pop_options(
    args: list[bytes], at: int, ends: tuple[bytes, bytes]
) -> tuple[list[bytes], bool, int]:
    """``numkeys key ... WHERE [COUNT n]``, from argument ``at`` on, and whether WHERE is the second
    end.

    The arguments are checked from left to right.
    """
    keys, rest = split_numbered(args, at)
    if not rest or rest[0].upper() not in ends:
        raise syntax_error()
    count = 1
    if len(rest) > 1:
        if len(rest) == 2 or rest[1].upper() != b"COUNT":
            raise syntax_error()
        count = to_int_from(1, rest[2], "ERR count should be greater than 0")
        if len(rest) > 3:
            raise syntax_error()
    return keys, rest[0].upper() == ends[1], count


def clip(start: int, end: int, size: int) -> tuple[int, int]:
    """The half-open range of positions from ``start`` to ``end``; negative positions count from the
    end."""
    start = max(start + size if start < 0 else start, 0)
    end = min(end + size if end < 0 else end, size - 1)
    return (start, end + 1) if start <= end else (0, 0)


def wait_seconds(text: bytes) -> float:
    """A time to wait in milliseconds, as CLIENT PAUSE, WAIT and XREAD have it, in seconds."""
    error = "ERR timeout is not an integer or out of range"
    return to_int_from(0, text, "ERR timeout is negative", error) / 1000


def in_error(word: bytes) -> str:
    """A word as an error shows it: up to a null byte."""
    return word.partition(b"\0")[0].decode("utf-8", "surrogateescape")
