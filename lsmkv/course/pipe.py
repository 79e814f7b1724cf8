"""Calls between two processes over pipes: the judge's, and the one that runs a student's code.

A message is its length in 4 bytes, little-endian, and then JSON.  Plain values (numbers, text,
bytes, lists, tuples, dicts, sets) pass by value; nothing is ever unpickled.  Everything else stays
in its process, and the other one gets a stand-in, through which it can call what :func:`shape_of`
lists, and nothing more.  So a student's code cannot reach into the judge.

* Lists, dicts and sets among the arguments are copied, and what the call changed in them is copied
  back.
* An iterator is advanced one step for each step of its stand-in, so a lazy one stays lazy.  Those
  of lists and tuples pass by value.
* An exception is raised again under its name, with the builtin exception that it is derived from
  as its base.  One that only passed through the other process comes back as the same object.

Calls may be nested in both directions, and may come from several threads, one at a time.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import Any, NamedTuple

from lsmkv import Directory, RandomAccessFile, WritableFile
from lsmkv.course.failure import Place
from lsmkv.engine.errors import CorruptionError

LARGEST_MESSAGE = 64 << 20
"""Bytes.  A larger message counts as damage."""

_LARGE = 1 << 63
"""From here on, numbers pass as hexadecimal text: JSON's decimals are limited in length."""


class PipeError(Exception):
    """The other process has ended, or has sent a malformed message."""


class Shape(NamedTuple):
    """The parts of an object that the other process sees."""

    kind: str
    methods: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Attributes that are copied once, with the object."""


_FUNCTION = Shape("function", ("__call__",))
_ITERATOR = Shape("iterator", ("__next__",))
_ITERABLE = Shape("iterable", ("__iter__",))
SEQUENCE = Shape("sequence", ("__len__", "__getitem__"))
MUTABLE = Shape("list", (*SEQUENCE.methods, "__setitem__", "__delitem__", "insert", "sort"))

_FILES: tuple[tuple[type, Shape], ...] = (
    (
        Directory,
        Shape(
            "object",
            (
                *("names", "exists", "size", "open", "create", "append_to", "read_file"),
                *("rename", "remove", "sync", "close"),
            ),
            ("path",),
        ),
    ),
    (WritableFile, Shape("object", ("append", "size", "truncate", "sync", "close"), ("path",))),
    (RandomAccessFile, Shape("object", ("read", "close"), ("path", "size"))),
)


def shape_of(value: object) -> Shape:
    """Return the callable methods of an object.  A class of the labs states them as ``SHARED``."""
    declared = getattr(type(value), "SHARED", None)
    if isinstance(declared, Shape):
        return declared
    for kind, shape in _FILES:
        if isinstance(value, kind):
            return shape
    if isinstance(value, Iterator):
        return _ITERATOR
    if callable(value):
        return _FUNCTION
    return _ITERABLE if isinstance(value, Iterable) else Shape("other")


class Stand:
    """Stands for an object of the other process."""

    def __init__(self, peer: Peer, number: int, shape: Shape, fields: Sequence[Any], text: str):
        self._peer = peer
        self._number = number
        self._methods = shape.methods
        self._text = text
        self.__dict__.update(zip(shape.fields, fields, strict=True))

    def __repr__(self) -> str:
        return self._text

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("_methods", ()):
            raise AttributeError(f"there is no {name} here", name=name, obj=self)

        def call(*arguments: Any, **named: Any) -> Any:
            return self._peer.call(self._number, name, arguments, named)

        return call

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class FunctionStand(Stand):
    """A function of the other process."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._peer.call(self._number, "__call__", arguments, named, self._text)


class IterableStand(Stand):
    """Something that the other process can iterate over."""

    def __iter__(self) -> Iterator[Any]:
        found: Iterator[Any] = self._peer.call(self._number, "__iter__")
        return found


class IteratorStand(Stand):
    """An iterator of the other process, which forgets it at its end."""

    _is_at_end = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._is_at_end:
            raise StopIteration
        try:
            return self._peer.call(self._number, "__next__")
        except StopIteration:
            self._is_at_end = True
            raise


class SequenceStand(Stand, Sequence[Any]):
    """A sequence of the other process."""

    def __len__(self) -> int:
        length: int = self._peer.call(self._number, "__len__")
        return length

    def __getitem__(self, at: Any) -> Any:
        return self._peer.call(self._number, "__getitem__", (at,))


class ListStand(SequenceStand, MutableSequence[Any]):
    """A list of the other process."""

    def __setitem__(self, at: Any, value: Any) -> None:
        self._peer.call(self._number, "__setitem__", (at, value))

    def __delitem__(self, at: Any) -> None:
        self._peer.call(self._number, "__delitem__", (at,))

    def insert(self, index: int, value: Any) -> None:
        self._peer.call(self._number, "insert", (index, value))

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self._peer.call(self._number, "sort", (), {"key": key, "reverse": reverse})


_STANDS: dict[str, type[Stand]] = {
    "function": FunctionStand,
    "iterable": IterableStand,
    "iterator": IteratorStand,
    "sequence": SequenceStand,
    "list": ListStand,
    "object": Stand,
    "other": Stand,
}


class Peer:
    """One end of the pipes.

    ``place_of`` finds the line of the student's file in an exception.  ``waiting`` is called with
    True before each wait for the other process, and with False after it.  Exceptions of the class
    ``passes`` are passed on; others, such as the judge's own interrupts and limits, end the call.
    """

    def __init__(
        self,
        reading: int,
        writing: int,
        root: object = None,
        place_of: Callable[[BaseException], Place | None] = lambda error: None,
        waiting: Callable[[bool], None] = lambda waits: None,
        passes: type[BaseException] = Exception,
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._place_of = place_of
        self._waiting = waiting
        self._lock = threading.RLock()
        self._ahead = bytearray()
        self._passes = passes
        self._own: dict[int, object] = {0: root}
        self._last = 0
        self._numbers: dict[int, int] = {}
        self._stands: dict[int, Stand] = {}
        self._errors: list[BaseException] = []
        self.is_broken = False
        """True if the other process has sent a malformed message."""
        self.has_ended = False
        """True if the other process has closed its end."""

    # Calls

    def call(
        self,
        target: int,
        method: str,
        arguments: Sequence[Any] = (),
        named: dict[str, Any] | None = None,
        what: str = "",
    ) -> Any:
        """Call a method of an object of the other process; 0 is its root.

        Raises what the call raises, and :class:`PipeError`.
        """
        with self._lock:
            self._send(
                ["call", target, method, self._packed(list(arguments)), self._packed(named or {})]
            )
            while True:
                message = self._receive()
                if message[0] == "call":
                    self._serve(*message[1:])
                    continue
                if message[0] == "ok":
                    if message[2] is not None:
                        _restore(list(arguments), self._unpacked(message[2]))
                    return self._unpacked(message[1])
                if message[0] == "stop":
                    raise StopIteration
                if message[0] == "error":
                    error = self._raised(message[1])
                    if what and not hasattr(error, "call"):
                        error.__dict__["call"] = what, tuple(arguments)
                    raise error
                raise self._broken(f"an unknown message, {message[0]!r}")

    def serve(self) -> None:
        """Answer calls until the other process closes the pipe."""
        with contextlib.suppress(PipeError):
            while True:
                self._serve(*self._receive()[1:])

    def _serve(self, target: Any, method: Any, arguments: Any, named: Any) -> None:
        try:
            found = self._own[target]
            if method not in shape_of(found).methods:
                raise AttributeError(f"there is no {method} here")
            given = self._unpacked(arguments)
            keywords = self._unpacked(named)
            before = arguments if _can_change(given) else None
            value = getattr(found, method)(*given, **keywords)
            after = None if before is None else self._packed(given)
            answer = ["ok", self._packed(value), None if after == before else after]
        except StopIteration:
            self._numbers.pop(id(self._own.pop(target, None)), None)
            answer = ["stop"]
        except PipeError:
            raise
        except BaseException as error:
            if not isinstance(error, self._passes):
                raise
            answer = ["error", self._described(error)]
        self._send(answer)

    # Messages

    def _send(self, message: list[Any]) -> None:
        data = json.dumps(message).encode()
        data = len(data).to_bytes(4, "little") + data
        try:
            while data:
                data = data[os.write(self._writing, data) :]
        except OSError as error:
            raise self._ended() from error

    def _receive(self) -> list[Any]:
        self._waiting(True)
        try:
            length = int.from_bytes(self._read(4), "little")
            if length > LARGEST_MESSAGE:
                raise self._broken(f"a message of {length:,} bytes")
            data = self._read(length)
        finally:
            self._waiting(False)
        try:
            message = json.loads(data)
            kind, *rest = message
            if not isinstance(message, list) or len(rest) != {"call": 4, "ok": 2, "stop": 0}.get(
                kind, 1
            ):
                raise self._broken("it is malformed")
        except (ValueError, TypeError, RecursionError) as error:
            raise self._broken("it is malformed") from error
        return message

    def _ended(self) -> PipeError:
        self.has_ended = True
        return PipeError("the other process has ended")

    def _broken(self, what: str) -> PipeError:
        self.is_broken = True
        return PipeError(what)

    def _read(self, length: int) -> bytes:
        while len(self._ahead) < length:
            try:
                part = os.read(self._reading, 1 << 16)
            except OSError as error:
                raise self._ended() from error
            if not part:
                raise self._ended()
            self._ahead += part
        data = bytes(self._ahead[:length])
        del self._ahead[:length]
        return data

    # Values

    def _packed(self, value: Any) -> Any:
        """A value as JSON: a list for a list, and an object of one member for what JSON lacks."""
        kind = type(value)
        if kind is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        if value is None or kind is bool or kind is str or kind is float:
            return value
        if kind is int:
            return value if -_LARGE < value < _LARGE else {"int": hex(value)}
        if kind is list:
            return [self._packed(one) for one in value]
        if kind is tuple:
            return {"tuple": [self._packed(one) for one in value]}
        if kind is dict:
            pairs = value.items()
            return {"dict": [[self._packed(key), self._packed(one)] for key, one in pairs]}
        if kind is slice:
            return {"slice": [self._packed(at) for at in (value.start, value.stop, value.step)]}
        if kind in _COPIED_ITERATORS:
            return {"iter": [self._packed(one) for one in value]}
        if isinstance(value, Stand) and value._peer is self:
            return {"yours": value._number}
        for name in ("set", "frozenset"):
            if _is(value, name):
                return {name: [self._packed(one) for one in value]}
        for name in ("bytearray", "memoryview"):
            if _is(value, name):
                return {name: base64.b64encode(value).decode()}
        return self._packed_base(value)

    def _packed_base(self, value: Any) -> Any:
        """A value of a class derived from a plain one, as a plain one; others are shared."""
        if not isinstance(getattr(type(value), "SHARED", None), Shape):
            base: Any
            for base in (int, float, str, bytes, list, tuple, dict):
                if isinstance(value, base):
                    return self._packed(base(value))
        return self._shared(value)

    def _shared(self, value: object) -> Any:
        number = self._numbers.get(id(value))
        if number is None or self._own.get(number) is not value:
            self._last += 1
            number = self._last
            self._own[number] = value
            self._numbers[id(value)] = number
        shape = shape_of(value)
        fields = [self._packed(getattr(value, name)) for name in shape.fields]
        text = getattr(value, "__name__", None) if shape.kind == "function" else None
        return {"shared": [number, list(shape), fields, text or repr(value)[:200]]}

    def _unpacked(self, value: Any) -> Any:
        """The value of some JSON.  Raises :class:`PipeError` if it is malformed."""
        try:
            return self._made(value)
        except PipeError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise self._broken("it has a malformed value") from error

    def _made(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._made(one) for one in value]
        if not isinstance(value, dict):
            return value
        ((name, content),) = value.items()
        if name == "bytes":
            return base64.b64decode(content)
        if name == "tuple":
            return tuple([self._made(one) for one in content])
        if name == "dict":
            return {self._made(key): self._made(one) for key, one in content}
        if name == "yours":
            return self._own[content]
        if name == "shared":
            number, (kind, methods, fields), values, text = content
            if number not in self._stands:
                if any(one.startswith("_") for one in fields):
                    raise self._broken("an attribute that is not public")
                shape = Shape(kind, tuple(methods), tuple(fields))
                made = _STANDS[kind](self, number, shape, self._made(values), str(text))
                self._stands[number] = made
            return self._stands[number]
        if name == "iter":
            return iter([self._made(one) for one in content])
        if name == "int":
            return int(content, 16)
        if name in ("set", "frozenset"):
            members = [self._made(one) for one in content]
            return set(members) if name == "set" else frozenset(members)
        if name in ("bytearray", "memoryview"):
            data = bytearray(base64.b64decode(content))
            return data if name == "bytearray" else memoryview(data)
        if name == "slice":
            return slice(*[self._made(one) for one in content])
        raise self._broken(f"an unknown kind of value, {name!r}")

    # Exceptions

    def _described(self, error: BaseException) -> dict[str, Any]:
        origin = getattr(error, "origin", None)
        if isinstance(origin, tuple) and origin[0] is self:
            return {"yours": origin[1]}
        self._errors.append(error)
        try:
            text = str(error)
        except Exception:
            text = ""
        place = self._place_of(error)
        return {
            "number": len(self._errors) - 1,
            "name": type(error).__name__,
            "bases": [one.__name__ for one in type(error).__mro__],
            "text": text[:10_000],
            "place": None if place is None else list(place),
        }

    def _raised(self, described: Any) -> BaseException:
        try:
            if "yours" in described:
                number: int = described["yours"]
                return self._errors[number]
            name, bases, text = (described[key] for key in ("name", "bases", "text"))
            place = described["place"]
            error = _error(str(name), [str(one) for one in bases], str(text))
            error.__dict__["origin"] = self, int(described["number"])
            error.__dict__["place"] = _place(place)
        except (ValueError, TypeError, KeyError, IndexError) as broken:
            raise self._broken("it has a malformed exception") from broken
        return error


def _place(place: Any) -> Place | None:
    if place is None:
        return None
    file, line, text, function, other = place
    return Place(str(file), int(line), str(text)[:200], str(function), str(other))


def _is(value: object, name: str) -> bool:
    kind: type = getattr(builtins, name)
    return isinstance(value, kind)


def _error(name: str, bases: list[str], text: str) -> BaseException:
    """An exception of this name, derived from the first of its bases that is known here."""
    if "CorruptionError" in bases:
        return CorruptionError(text)
    base: type[Exception] = Exception
    for one in bases:
        known = getattr(builtins, one, None)
        if isinstance(known, type) and issubclass(known, Exception):
            base = known
            break
    members = {"__str__": lambda self: text, "__init__": lambda self: None}
    made: type[Exception] = type(name, (base,), members)
    return made()


_CONTAINERS = (list, tuple, dict, set, bytearray)
_COPIED_ITERATORS: tuple[type, ...] = (type(iter([])), type(iter(())))


def _can_change(arguments: Sequence[object]) -> bool:
    """True if a call may have changed something in its arguments that is copied back.

    Nothing is, if a copied iterator is among them: to look at it would advance it.
    """
    inside = [one for one in arguments if not isinstance(one, Stand)]
    changeable = False
    while inside:
        one = inside.pop()
        if isinstance(one, _COPIED_ITERATORS):
            return False
        if isinstance(one, _CONTAINERS):
            changeable = changeable or not isinstance(one, tuple)
            if isinstance(one, list | tuple):
                inside += one
    return changeable


def _restore(old: Any, new: Any) -> None:
    """Make what a call changed in lists, dicts and sets visible to the caller."""
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            if type(one) is type(other) and isinstance(one, list | tuple | dict | set | bytearray):
                _restore(one, other)
            elif isinstance(old, list):
                old[at] = other
    elif isinstance(old, list | bytearray):
        old[:] = new
    elif isinstance(old, dict | set):
        old.clear()
        old.update(new)
