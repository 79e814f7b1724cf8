"""Parses the requests in a client's stream of bytes.

A request is an array of bulk strings, which every client library sends.  For people at a terminal
it may also be a line of words ("inline command").  The first byte of a request shows which of the
two it is.

``hiredis`` parses arrays that arrived complete, because it is fast.  But it also accepts bytes that
are not requests, does not report where in a chunk an array ends, does not parse lines, and
allocates as many elements as an array claims to have.  So its results are checked against their
size on the wire.  Anything odd or incomplete is parsed here, element by element.  This parser alone
decides what is a request.
"""

from __future__ import annotations

import re
from typing import Any

import hiredis

from lsmkv.server.quoting import split_words

MAX_INLINE = 64 * 1024
"""The longest line of words, in bytes; Redis' limit."""
MAX_ARGUMENTS = 2**31 - 1
"""The most elements of an array; Redis' limit.  ``memory`` counts what they take."""
MAX_BULK = 512 * 2**20
"""The default limit of an element, in bytes."""
_LONGEST_HEADER = 32
_ONE_ELEMENT = 49
"""Overhead of an element in memory, in bytes."""
_ARRAY = ord("*")
_BULK = ord("$")
_NUMBER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_MANY = [re.compile(re.escape(mark) + rb"[1-9][0-9]{5}") for mark in (b"*", b"~", b">", b"|")]
"""May be the header of an array too long for hiredis, or part of a value."""


class ProtocolError(Exception):
    """The bytes are not a request.  Nothing after them can be parsed."""


class RequestReader:
    """Bytes in, requests out.

    Call order: ``(feed next_request* )*``.  ``next_request`` returns None when it needs more bytes.
    If the bytes are not a request it raises :class:`ProtocolError`, and raises it again on every
    later call.
    """

    def __init__(self, max_bulk: int = MAX_BULK) -> None:
        self._max_bulk = max_bulk
        self._data = b""
        self._at = 0
        """The offset of the next request, or of the rest of an unfinished one."""
        self._parser = hiredis.Reader()
        self._parsed = False
        """True if hiredis has been fed the data from here on."""
        self._slow_before = 0
        """Up to this offset requests are parsed here."""
        self._arguments: list[bytes] = []
        """The complete elements of an unfinished array."""
        self._left = 0
        """The number of missing elements; 0 if no array is unfinished."""
        self._taken = 0
        """The number of its bytes before ``_at``."""
        self._later: list[bytes] = []
        """Chunks that are not joined to the data until ``_missing`` is 0."""
        self._later_size = 0
        self._missing = 0
        """The number of bytes that the next element still needs."""
        self._error = ""

    @property
    def buffered(self) -> int:
        """The number of bytes of an incomplete request."""
        return self._taken + len(self._data) - self._at + self._later_size

    @property
    def memory(self) -> int:
        """The memory of an incomplete request, in bytes.  Short elements take more than on the
        wire."""
        return self.buffered + _ONE_ELEMENT * len(self._arguments)

    def feed(self, data: bytes) -> None:
        """Append the next bytes of the stream.  All requests before them must have been taken."""
        rest = self._data[self._at :]
        if self._missing:
            self._missing = max(0, self._missing - len(data))
            self._later.append(data)
            self._later_size += len(data)
            if self._missing:
                return
            data = b"".join((rest, *self._later))
            self._later.clear()
            self._later_size = 0
        elif rest:
            data = rest + data
        self._data = data
        self._at = self._slow_before = 0

    def next_request(self) -> list[bytes] | None:
        """The next request, never empty; None if it is incomplete."""
        if self._error:
            raise ProtocolError(self._error)
        if self._missing:
            return None
        data = self._data
        try:
            while True:
                if self._left:
                    return self._finish_array()
                at = self._at
                if at >= len(data):
                    self._parsed = False
                    return None
                request: list[bytes] | None = None
                if data[at] != _ARRAY:
                    request = self._next_line()
                elif not self._next_parsed(at):
                    if not self._begin_array(at):
                        return None
                    continue
                else:
                    request, self._arguments = self._arguments, []
                if request or request is None:
                    return request
        except ProtocolError as error:
            self._error = str(error)
            raise

    # With hiredis

    def _next_parsed(self, at: int) -> bool:
        """True if hiredis has parsed a complete array, whose elements are now in ``_arguments``."""
        data = self._data
        if not self._parsed:
            if at < self._slow_before:
                return False
            many = _behind_many(data, at)
            if many:
                self._slow_before = many
                return False
            self._parser.feed(data[at:] if at else data)
            self._parsed = True
        try:
            request = self._parser.gets()
        except Exception:  # its own errors, and others, such as TypeError for a list as a map's key
            request = False
        end = self._end_of(request, at) if type(request) is list else 0
        if not end:
            self._unparse()
            self._slow_before = len(data)
            return False
        self._at = end
        self._arguments = request
        return True

    def _end_of(self, request: list[Any], at: int) -> int:
        """Return the end of an array that has only bulk strings; otherwise 0."""
        data = self._data
        size = len(data)
        count = len(request)
        end = at + (4 if count < 10 else 3 + len(str(count)))
        for argument in request:
            if type(argument) is not bytes or end >= size or data[end] != _BULK:
                return 0
            length = len(argument)
            end += length + (6 if length < 10 else 7 if length < 100 else 5 + len(str(length)))
        return end if end <= size else 0

    def _unparse(self) -> None:
        """Take the data back from hiredis."""
        if self._parsed:
            self._parser = hiredis.Reader()
            self._parsed = False

    # Element by element

    def _begin_array(self, at: int) -> bool:
        """Read the number of elements.  Returns whether it is complete."""
        count = self._header(at, "invalid multibulk length")
        if count is None:
            return False
        if count > MAX_ARGUMENTS:
            raise ProtocolError("Protocol error: invalid multibulk length")
        self._taken = self._at - at if count > 0 else 0
        self._left = max(0, count)
        return True

    def _finish_array(self) -> list[bytes] | None:
        """The unfinished array, if all of it has arrived."""
        data, size = self._data, len(self._data)
        while self._left:
            at = self._at
            if at >= size:
                return None
            if data[at] != _BULK:
                raise ProtocolError(f"Protocol error: expected '$', got {chr(data[at])!r}")
            length = self._header(at, "invalid bulk length")
            if length is None:
                return None
            if not 0 <= length <= self._max_bulk:
                raise ProtocolError("Protocol error: invalid bulk length")
            start = self._at
            stop = start + length
            if stop + 2 > size:
                self._at = at
                self._missing = stop + 2 - size
                return None
            self._arguments.append(data[start:stop])
            self._at = stop + 2
            self._taken += self._at - at
            self._left -= 1
        self._taken = 0
        request, self._arguments = self._arguments, []
        return request

    def _header(self, at: int, reason: str) -> int | None:
        """The number after a marker, up to the end of its line; None if the line is incomplete."""
        end = self._data.find(b"\r\n", at, at + _LONGEST_HEADER)
        if end < 0:
            if len(self._data) - at >= _LONGEST_HEADER:
                raise ProtocolError(f"Protocol error: {reason}")
            return None
        if not _NUMBER.fullmatch(self._data, at + 1, end):
            raise ProtocolError(f"Protocol error: {reason}")
        self._at = end + 2
        return int(self._data[at + 1 : end])

    def _next_line(self) -> list[bytes] | None:
        """The words of a line; empty for an empty line, None if it is incomplete."""
        self._unparse()
        end = self._data.find(b"\n", self._at)
        stop = end if end >= 0 else len(self._data)
        if stop - self._at > MAX_INLINE:
            raise ProtocolError("Protocol error: too big inline request")
        if end < 0:
            return None
        line = self._data[self._at : end]
        self._at = end + 1
        try:
            return split_words(line.removesuffix(b"\r"))
        except ValueError:
            raise ProtocolError("Protocol error: unbalanced quotes in request") from None


def _behind_many(data: bytes, at: int) -> int:
    """The offset after what may be the header of a long array; 0 if there is none."""
    found = _MANY[0].search(data, at)
    if found is None and (b"~" in data or b">" in data or b"|" in data):
        for pattern in _MANY[1:]:
            found = found or pattern.search(data, at)
    return 0 if found is None else found.end()
