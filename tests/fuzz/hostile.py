"""Hostile arguments: any type, any size, and objects whose methods act while a call uses them.

:class:`Hostile` makes one at a time from its random numbers.  An object that acts calls ``act``,
which may call the store, close a handle, change a buffer, or raise.
"""

from __future__ import annotations

import array
import ctypes
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

INTEGERS = [
    *(0, 1, 2, 7, 12, 255, 4096, 2**31 - 1, 2**31, 2**32, 2**53, 2**56, 2**62 - 1, 2**62),
    *(2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40, -1, -2, -(2**31), -(2**62), -(2**62) - 1),
    *(-(2**63), -(2**63) - 1, -(10**40), True, False),
]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 0.5, 1e308, -1.5, 5e-324]
TEXTS = ["", "k", "\ud800", "a\0b", "é" * 300, "thread", "none", "serializable", "x" * 5000]
KEYS = [b"", b"\0", b"\xff", b"\xff" * 9, b"k1", b"k7", b"k33", b"p:a", b"x" * 300, b"k" * 70_000]
SHORT = [0, 0.001, -1, 0.0, -0.5, True, "1", b"1", float("nan"), [], -(10**40)]
"""For parameters that are times: a call that is asked to wait for 2**62 seconds may do so."""
METHODS = {
    "bytes": [
        *("__len__", "__iter__", "__getitem__", "__hash__", "__eq__", "__lt__", "__gt__"),
        *(
            "__add__",
            "__contains__",
            "__bytes__",
            "__buffer__",
            "__repr__",
            "startswith",
            "decode",
            "join",
        ),
    ],
    "str": [
        *("__len__", "__iter__", "__getitem__", "__hash__", "__eq__", "__lt__", "__str__"),
        *(
            "encode",
            "__add__",
            "__contains__",
            "__repr__",
            "__format__",
            "startswith",
            "split",
            "join",
        ),
    ],
    "int": [
        *("__index__", "__int__", "__add__", "__radd__", "__sub__", "__lt__", "__gt__", "__le__"),
        *("__eq__", "__hash__", "__bool__", "__mul__", "__rmul__", "__neg__", "__repr__"),
    ],
    "float": ["__float__", "__add__", "__radd__", "__lt__", "__le__", "__eq__", "__hash__"],
    "tuple": ["__len__", "__iter__", "__getitem__", "__eq__", "__hash__", "__contains__"],
    "list": ["__len__", "__iter__", "__getitem__", "__eq__", "__contains__", "append", "sort"],
    "dict": ["__len__", "__iter__", "__getitem__", "__contains__", "get", "items", "keys"],
    "object": [
        *("__len__", "__iter__", "__next__", "__getitem__", "__hash__", "__eq__", "__lt__"),
        *("__index__", "__int__", "__float__", "__bool__", "__fspath__", "__bytes__", "__buffer__"),
        *("__call__", "__enter__", "__exit__", "__contains__", "__getattr__", "__repr__", "keys"),
        *("key_may_match", "create_filter", "compare", "extract", "open_directory", "put", "write"),
    ],
}
"""By base class: the methods that a subclass overrides, some of them each time."""
BASES: dict[str, list[Any]] = {
    "bytes": KEYS, "str": TEXTS, "int": [0, 1, -1, 2**63, 5], "float": FLOATS,
    "tuple": [(), (b"k", b"v")], "list": [[], [b"k"]], "dict": [{}, {b"k": b"v"}], "object": [],
}  # fmt: skip
WRONG = [None, -1, 2**70, "x", b"x", [], 0, NotImplemented, ...]
"""Results, most of them of a type that the method must not have."""


class HostileError(Exception):
    """Raised by an argument."""


class HostileExit(BaseException):
    """Raised by an argument, and caught by no ``except Exception``."""


class Hostile:
    """Makes arguments.  ``handles`` has objects of the store, which may be arguments as well."""

    def __init__(
        self, rng: random.Random, act: Callable[[], None], handles: Callable[[], list[Any]]
    ) -> None:
        self._rng = rng
        self._act = act
        self._handles = handles
        self.buffers = [bytearray(b"k%d" % number * 3) for number in range(4)]
        """Arguments of many calls, changed in the middle of them."""
        self._kinds: list[Callable[[], Any]] = [
            lambda: None, lambda: None, self._number, self._number, self.key, self.key, self.key,
            lambda: rng.choice(FLOATS), lambda: rng.choice(TEXTS), self._buffer, self._buffer,
            self._sequence, self._sequence, self._cycle, self._subclass, self._subclass,
            self._subclass, self._subclass, self._finalized, self._callable, self._callable,
            self._handle, lambda: object, lambda: ..., lambda: rng.choice(self.buffers),
        ]  # fmt: skip

    def value(self) -> Any:
        """Any argument."""
        return self._rng.choice(self._kinds)()

    def key(self) -> bytes:
        """Plain ``bytes``, so that calls get further than their checks."""
        return self._rng.choice(KEYS)

    def time(self) -> Any:
        """A number of seconds, or something else, for which nobody waits long."""
        return self._rng.choice(SHORT)

    def change_buffers(self) -> None:
        """Resize and overwrite those that are not held by a view."""
        for buffer in self.buffers:
            try:
                if self._rng.random() < 0.5:
                    buffer += b"more" * self._rng.randrange(200)
                else:
                    buffer[:] = b"k%d" % self._rng.randrange(9)
            except BufferError:
                pass

    def _number(self) -> int:
        return self._rng.choice(INTEGERS)

    def _handle(self) -> Any:
        return self._rng.choice(self._handles())

    def _buffer(self) -> Any:
        released = memoryview(b"released")
        released.release()
        return self._rng.choice([
            released, memoryview(b"read only"), memoryview(b"k1k2k3k4")[::2],
            memoryview(b"abcdefgh")[::-1], memoryview(bytes(24)).cast("B", (2, 3, 4)),
            memoryview(array.array("d", [1.5, 2.5])), array.array("Q", [1, 2**64 - 1]),
            array.array("u", "text"), (ctypes.c_char * 5)(*b"12345"), (ctypes.py_object * 2)(),
            memoryview(self._rng.choice(self.buffers)), bytearray(), bytearray(b"k7"),
        ])  # fmt: skip

    def _sequence(self) -> Any:
        parts = [self._rng.choice((self.key, self._number))() for _ in range(3)]
        pairs = [(self.key(), self.key()) for _ in range(3)]
        return self._rng.choice([
            parts, tuple(parts), pairs, dict(pairs), set(KEYS), [self.key()] * 3000, range(3000),
            zip(KEYS, parts, strict=False), self._acting(parts), self._acting(pairs), [], (), {},
            [None], [[]], (1,), (b"k",), (b"k", b"l"), (b"k", None), iter(()), map(int, "12x"),
        ])  # fmt: skip

    def _acting(self, parts: list[Any]) -> Iterator[Any]:
        for part in parts:
            self._act()
            yield part

    def _cycle(self) -> Any:
        chain: list[Any] = []
        chain.append(chain)
        table: dict[Any, Any] = {b"k": chain}
        table[b"l"] = table
        deep: tuple[Any, ...] = ()
        for _ in range(500):
            deep = (deep,)
        return self._rng.choice([chain, table, deep, (chain, table)])

    def _callable(self) -> Any:
        answers = [*WRONG, self.key(), True]

        def called(*_arguments: Any, **_named: Any) -> Any:
            self._act()
            return self._rng.choice(answers)

        return self._rng.choice([called, called, len, bytes, lambda *_: b"k", int.__add__])

    def _subclass(self) -> Any:
        name = self._rng.choice(list(METHODS))
        base: Any = {"object": object}.get(name, vars(sys.modules["builtins"])[name])
        chosen = self._rng.sample(METHODS[name], self._rng.randrange(1, 6))
        answers = self._rng.random() < 0.5

        def method(of: str) -> Callable[..., Any]:
            whole = getattr(base, of, None)

            def acting(self_: Any, *arguments: Any) -> Any:
                self._act()
                if answers or whole is None:
                    return self._rng.choice([*WRONG, self_])
                return whole(self_, *arguments)

            return acting

        made = type(f"Hostile{name.title()}", (base,), {of: method(of) for of in chosen})
        values = BASES[name]
        return made(self._rng.choice(values)) if values else made()

    def _finalized(self) -> Any:
        base: type = self._rng.choice([bytes, str, list, object])

        def end(_self: Any) -> None:
            self._act()

        return type("Finalized", (base,), {"__del__": end})()
