"""The requests in a client's stream of bytes.

A request is an array of bulk strings, as every client library sends it, which ``hiredis`` parses;
or, for people at a terminal, a line of words ("inline command").  The first byte of a request tells
which of the two it is.

``hiredis`` does not say where in a chunk a request ends, and knows no inline commands.  So the
place of one behind an array is found by adding up the sizes of the arrays before it, which are
known if their lengths are written without leading zeros, as every client writes them.
"""

from __future__ import annotations

import hiredis

from lsmkv.server.words import split_words

MAX_INLINE = 64 * 1024
"""The longest line of words, in bytes, as Redis has it."""
MAX_ARGUMENTS = 1024 * 1024
"""The most elements of an array, as Redis has it."""
_ARRAY = ord("*")


class ProtocolError(Exception):
    """The bytes are no request.  Nothing that follows can be understood."""


class RequestReader:
    """Bytes in, requests out.

    Call order: ``(feed next_request* )*``.  ``next_request`` returns None when it needs more bytes,
    and raises :class:`ProtocolError`, from then on always, if the bytes are no request.
    """

    def __init__(self) -> None:
        self._parser = hiredis.Reader()
        self._chunk = b""
        """The bytes that were fed last, from a boundary of requests on if one is known."""
        self._earlier = 0
        """Bytes that the parser had of the unfinished request before this chunk."""
        self._returned: list[list[bytes]] = []
        """The arrays that ended in this chunk: what tells where it stands."""
        self._lines = True
        """Whether the chunk is not yet fed to the parser: it may begin with a line."""
        self._error = ""

    @property
    def buffered(self) -> int:
        """Bytes of a request that is not whole yet."""
        if self._lines:
            return len(self._chunk)
        return len(self._chunk) - self._begin()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream; the requests before must have been asked for."""
        if self._lines:
            self._chunk = self._chunk + data if self._chunk else data
            return
        self._earlier = self.buffered
        if self._earlier:
            self._parser.feed(data)
        else:
            self._lines = True
        self._returned.clear()
        self._chunk = data

    def next_request(self) -> list[bytes] | None:
        """The next request, not empty; None if there is no whole one."""
        if self._error:
            raise ProtocolError(self._error)
        if not self._chunk:
            return None
        try:
            while True:
                request = self._next_line() if self._lines else self._next_array()
                if request or (request is None and not (self._lines and self._chunk[:1] == b"*")):
                    return request
        except ProtocolError as error:
            self._error = str(error)
            raise

    def _next_array(self) -> list[bytes] | None:
        """An array; empty if there was one without elements, or if a line follows."""
        try:
            request = self._parser.gets()
        except (hiredis.HiredisError, MemoryError) as error:
            if self._turn_to_line():
                return []
            raise ProtocolError(f"Protocol error: {error}") from None
        if type(request) is list:
            for argument in request:
                if type(argument) is not bytes:
                    raise ProtocolError("Protocol error: expected '$'")
            if self._parser.has_data():
                self._returned.append(request)
            else:  # the chunk ends with this request
                self._chunk = b""
                self._earlier = 0
                self._lines = True
                self._returned.clear()
            return request
        if request is False:  # not whole
            if self._turn_to_line():
                return []
            self._check_header()
            return None
        if self._turn_to_line():
            return []
        if request is None:  # *-1
            self._returned.append([])
            self._earlier -= 1
            return []
        raise ProtocolError("Protocol error: expected '*'")

    def _begin(self) -> int:
        """Where in the chunk the request behind those that were returned begins."""
        return _size(self._returned) - self._earlier

    def _turn_to_line(self) -> bool:
        """Take what follows from the parser if it begins no array."""
        begin = self._begin()
        if begin < 0 or begin >= len(self._chunk) or self._chunk[begin] == _ARRAY:
            return False
        rest = self._chunk[begin:]
        self._parser = hiredis.Reader()
        self._chunk = rest
        self._earlier = 0
        self._returned.clear()
        self._lines = True
        return True

    def _check_header(self) -> None:
        """Refuse an array of more elements than any request has."""
        begin = self._begin()
        header = self._chunk[begin + 1 : begin + 20].partition(b"\r")[0]
        if begin >= 0 and header.isdigit() and int(header) > MAX_ARGUMENTS:
            raise ProtocolError("Protocol error: invalid multibulk length")

    def _next_line(self) -> list[bytes] | None:
        """The words of a line; empty for an empty line, and if an array follows."""
        chunk = self._chunk
        if chunk[:1] == b"*":
            self._lines = False
            self._parser.feed(chunk)
            return []
        line, newline, rest = chunk.partition(b"\n")
        if len(line) > MAX_INLINE:
            raise ProtocolError("Protocol error: too big inline request")
        if not newline:
            return None
        self._chunk = rest
        try:
            return split_words(line.removesuffix(b"\r"))
        except ValueError:
            raise ProtocolError("Protocol error: unbalanced quotes in request") from None


def _size(requests: list[list[bytes]]) -> int:
    """The bytes of arrays as clients write them."""
    size = 0
    for request in requests:
        size += 3 + len(str(len(request)))
        for argument in request:
            size += 5 + len(str(len(argument))) + len(argument)
    return size
