"""RESP, the protocol of Redis: replies and pushes as bytes.

https://redis.io/docs/latest/develop/reference/protocol-spec/ describes both versions.  A command
returns a Python value, and :func:`encode` writes it in the client's version:

=====================  =========================  ======================================
value                  RESP2                      RESP3
=====================  =========================  ======================================
``None``               ``$-1`` null bulk string   ``_`` null
``NULL_ARRAY``         ``*-1`` null array         ``_`` null
``bytes``              ``$`` bulk string          ``$`` bulk string
``int``                ``:`` integer              ``:`` integer
``bool``               ``:`` 1 or 0               ``#`` boolean
``float``              ``$`` bulk string          ``,`` double
``list``               ``*`` array                ``*`` array
``Members``            ``*`` array                ``~`` set
``dict``               ``*`` keys and values      ``%`` map
``Pairs``              ``*`` flat array           ``*`` array of arrays of two
``ByKey``              ``*`` arrays of two        ``%`` map
``Push``               ``*`` array                ``>`` push
``Verbatim``           ``$`` bulk string          ``=`` verbatim string
``Simple``             ``+`` simple string        ``+`` simple string
``CommandError``       ``-`` error                ``-`` error
``Encoded``            its bytes                  its bytes
=====================  =========================  ======================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import mypyc_attr

Reply = Any
"""A value of one of the types above."""
_PIECE: Final = 256
"""Elements that are encoded at a time, where others wait for it."""


class CommandError(Exception):
    """An error reply.  The command has changed nothing.

    The text begins with a code in capitals, by which clients decide: ``ERR``, ``WRONGTYPE``, ...
    """


@mypyc_attr(native_class=False)
class Encoded(bytes):
    """A reply that is encoded already, the same in both versions."""


@mypyc_attr(native_class=False)
class Simple(str):
    """A simple string: a status such as OK."""


@mypyc_attr(native_class=False)
class Verbatim(bytes):
    """Text for people, which RESP3 marks as such."""


@mypyc_attr(native_class=False)
class Members(list[Reply]):
    """A set: the order has no meaning."""


@mypyc_attr(native_class=False)
class Pairs(list[tuple[Reply, Reply]]):
    """Pairs, such as members with their scores: flat in RESP2, an array of arrays in RESP3."""


@mypyc_attr(native_class=False)
class ByKey(list[tuple[Reply, Reply]]):
    """Replies by key: an array of arrays of two in RESP2, a map in RESP3."""


@mypyc_attr(native_class=False)
class Push(list[Reply]):
    """A push message, which answers no command."""


OK = Encoded(b"+OK\r\n")
QUEUED = Encoded(b"+QUEUED\r\n")
PONG = Encoded(b"+PONG\r\n")


class _NullArray:
    """The null of commands that otherwise return an array."""

    def __reduce__(self) -> str:
        """The one instance, also in the process of a script."""
        return "NULL_ARRAY"


NULL_ARRAY = _NullArray()


class _NoReply:
    """No reply: the command has sent pushes, or blocks."""


NO_REPLY = _NoReply()


def full_error() -> CommandError:
    return CommandError("OOM command not allowed when used memory > 'maxmemory'.")


def wrong_type() -> CommandError:
    return CommandError("WRONGTYPE Operation against a key holding the wrong kind of value")


def syntax_error() -> CommandError:
    return CommandError("ERR syntax error")


def read_only_error() -> CommandError:
    return CommandError("READONLY You can't write against a read only replica.")


def busy_error(function: bool) -> CommandError:
    kind = "FUNCTION" if function else "SCRIPT"
    return CommandError(
        f"BUSY Redis is busy running a script. You can only call {kind} KILL or SHUTDOWN NOSAVE."
    )


def wrong_subcommand(args: list[bytes]) -> CommandError:
    """Redis' reply to a subcommand with too many arguments."""
    outer, inner = args[0].decode("latin-1").upper(), args[1].decode("latin-1")
    return CommandError(
        f"ERR unknown subcommand or wrong number of arguments for '{inner}'. Try {outer} HELP."
    )


def encode(reply: Reply, resp3: bool = False) -> bytes:
    r"""The bytes of a reply.  O(its size).  Raises ``TypeError`` for other types.

    >>> encode([b"a", 1, None]), encode({b"k": 1.5}, resp3=True)
    (b'*3\r\n$1\r\na\r\n:1\r\n$-1\r\n', b'%1\r\n$1\r\nk\r\n,1.5\r\n')
    """
    kind = type(reply)
    if kind is bytes:
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    if kind is Encoded:
        return bytes(reply)
    if kind is int:
        return b":%d\r\n" % reply
    if reply is None:
        return b"_\r\n" if resp3 else b"$-1\r\n"
    parts: list[bytes] = []
    _append(parts, reply, resp3)
    return b"".join(parts)


def encode_in_pieces(reply: Reply, resp3: bool, rest: Callable[[], None]) -> bytes:
    """The bytes of a reply of a thread, which calls ``rest`` after each few hundred elements, so
    that other threads go on.  It takes the reply apart: freeing it as a whole takes long as well.

    O(its size).  Raises ``TypeError`` as :func:`encode` does, and what ``rest`` raises.
    """
    if not isinstance(reply, list):
        return encode(reply, resp3)
    pieces: list[bytes] = []
    _append_pieces(pieces, reply, resp3, rest)
    return b"".join(pieces)


def _append_pieces(
    pieces: list[bytes], reply: list[Any], resp3: bool, rest: Callable[[], None]
) -> None:
    kind = type(reply)
    pieces.append(_head(kind, len(reply), resp3))
    for start in range(0, len(reply), _PIECE):
        some = reply[start : start + _PIECE]
        reply[start : start + _PIECE] = [None] * len(some)
        parts: list[bytes] = []
        if kind is list:
            for one in some:
                _append_long(parts, one, resp3, rest)
        elif kind is ByKey:
            for key, value in some:
                if not resp3:
                    parts.append(b"*2\r\n")
                _append(parts, key, resp3)
                _append_long(parts, value, resp3, rest)
        else:
            _append(parts, kind(some), resp3)
            parts[0] = b""  # the head of these alone
        pieces.append(b"".join(parts))
        some.clear()
        rest()


def _append_long(parts: list[bytes], reply: Reply, resp3: bool, rest: Callable[[], None]) -> None:
    if isinstance(reply, list) and (len(reply) > _PIECE or type(reply) is ByKey):
        _append_pieces(parts, reply, resp3, rest)
    else:
        _append(parts, reply, resp3)


def _head(kind: type, count: int, resp3: bool) -> bytes:
    """The first line of a reply of some elements."""
    if kind is dict or kind is ByKey:
        return b"%b%d\r\n" % (b"%" if resp3 else b"*", count * (1 + (kind is dict and not resp3)))
    if kind is Pairs and not resp3:
        count *= 2
    mark = b"~" if kind is Members else b">" if kind is Push else b"*"
    return b"%b%d\r\n" % (mark if resp3 else b"*", count)


def _append(parts: list[bytes], reply: Reply, resp3: bool) -> None:
    kind = type(reply)
    if kind is bytes:
        parts.append(b"$%d\r\n%b\r\n" % (len(reply), reply))
    elif kind is list or kind is tuple:
        parts.append(b"*%d\r\n" % len(reply))
        for one in reply:
            if type(one) is bytes:  # as nearly always
                parts.append(b"$%d\r\n%b\r\n" % (len(one), one))
            else:
                _append(parts, one, resp3)
    elif kind is Members or kind is Push:
        parts.append(_head(kind, len(reply), resp3))
        for one in reply:
            _append(parts, one, resp3)
    elif kind is dict:
        parts.append(_head(kind, len(reply), resp3))
        for key, value in reply.items():
            _append(parts, key, resp3)
            _append(parts, value, resp3)
    elif kind is ByKey:
        parts.append(_head(kind, len(reply), resp3))
        for key, value in reply:
            if not resp3:
                parts.append(b"*2\r\n")
            _append(parts, key, resp3)
            _append(parts, value, resp3)
    elif kind is Pairs:
        parts.append(_head(kind, len(reply), resp3))
        for pair in reply:
            if resp3:
                parts.append(b"*2\r\n")
            for one in pair:
                _append(parts, one, resp3)
    else:
        parts.append(_encode_scalar(reply, kind, resp3))


def _encode_scalar(reply: Reply, kind: type, resp3: bool) -> bytes:
    if kind is int:
        return b":%d\r\n" % reply
    if reply is None:
        return b"_\r\n" if resp3 else b"$-1\r\n"
    if kind is float:
        text = format_double(reply)
        return b",%b\r\n" % text if resp3 else b"$%d\r\n%b\r\n" % (len(text), text)
    if kind is bool:
        return (b"#t\r\n" if reply else b"#f\r\n") if resp3 else b":%d\r\n" % reply
    if kind is Encoded:
        return bytes(reply)
    if kind is Simple:
        return b"+%b\r\n" % reply.encode()
    if kind is Verbatim:
        if resp3:
            return b"=%d\r\ntxt:%b\r\n" % (len(reply) + 4, reply)
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    if reply is NULL_ARRAY:
        return b"_\r\n" if resp3 else b"*-1\r\n"
    if isinstance(reply, CommandError):
        return encode_error(str(reply))
    raise TypeError(f"no reply: {reply!r}")


def encode_error(text: str) -> bytes:
    """The bytes of an error.  It stays one line, even if it quotes a client's input."""
    line = text.replace("\r", " ").replace("\n", " ")
    return b"-%b\r\n" % line.encode("utf-8", "surrogateescape")


def format_double(value: float) -> bytes:
    """The fewest digits that give the same number; whole numbers below 10^17 have no exponent.

    >>> [format_double(one) for one in (3.0, 0.1, 1e17, float("-inf"))]
    [b'3', b'0.1', b'1e+17', b'-inf']
    """
    if value % 1 == 0:
        return b"%.17g" % value
    for digits in (15, 16, 17):
        text = b"%.*g" % (digits, value)
        if float(text) == value:
            break
    return text
