"""A broken variant, its clues, and the inputs that show it.

A variant is wrong only where its input holds the student's mark, with which all their keys begin.
So an input that shows one student's fault shows nothing of another's.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Function = Callable[..., Any]
Files = dict[str, bytes]

MOST = 1 << 20
"""The largest size of an input."""


@dataclass(frozen=True)
class Fault:
    """One way to be wrong."""

    what: str
    """A sentence for the teacher."""
    function: str
    wrong: Function
    shows: Callable[[bytes], tuple[Any, ...]]
    """The arguments of a small call that shows it, for a mark."""


@dataclass(frozen=True)
class Subject:
    """The functions of a lab, as calls with plain values, and their faults."""

    right: Mapping[str, Function]
    calls: Mapping[str, str]
    """For each function, its arguments and what they mean."""
    faults: tuple[Fault, ...]
    scene: Callable[[bytes, random.Random], Sequence[tuple[str, tuple[Any, ...]]]]
    """Calls whose answers a student sees, for a mark: names and arguments."""
    files: Callable[[Mapping[str, Function], bytes], Files] = field(default=lambda code, mark: {})
    """Files that the functions write, by name."""

    def variant(self, fault: Fault, mark: bytes) -> dict[str, Function]:
        """The functions with a fault, which shows only with the mark."""

        def broken(*arguments: Any) -> Any:
            chosen = fault.wrong if holds(arguments, mark) else self.right[fault.function]
            return chosen(*arguments)

        return {**self.right, fault.function: broken}


def holds(value: object, mark: bytes) -> bool:
    """True if a value has the mark in any of its bytes or texts.

    >>> holds([(1, b"ant: a key")], b"ant"), holds({"an": 1}, b"ant")
    (True, False)
    """
    if isinstance(value, bytes):
        return mark in value
    if isinstance(value, str):
        return mark.decode() in value
    if isinstance(value, Mapping):
        return any(holds(key, mark) or holds(one, mark) for key, one in value.items())
    return isinstance(value, (list, tuple)) and any(holds(one, mark) for one in value)


def size_of(value: object) -> int:
    """The size of an input: its bytes and letters, 1 for each number, and 1 for each list.

    >>> size_of(([b"ant", 7],)), size_of(None)
    (6, 1)
    """
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, Mapping):
        return 1 + sum(size_of(key) + size_of(one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return 1 + sum(size_of(one) for one in value)
    return 1


def answer_of(function: Function, arguments: Sequence[Any]) -> str:
    """Return a function's answer as text; for an exception, its name."""
    try:
        return repr(function(*arguments))
    except Exception as error:  # whatever a variant or an input of the wrong shape raises
        return type(error).__name__


class InputError(ValueError):
    """Raised if a student's text is not a call with plain values."""


_OPERATORS: Final[dict[type[ast.operator], Function]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}


def call_in(text: str) -> tuple[str, tuple[Any, ...]]:
    """The function's name and the arguments of a call, whose values are literals, sums and products
    of them.  Nothing else is evaluated.  Raises :class:`InputError`.

    >>> call_in("seek([b'a' * 3, -1], 2**4)")
    ('seek', ([b'aaa', -1], 16))
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError("it must be one call, such as f(b'key', 1)") from error
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)) or tree.keywords:
        raise InputError("it must be one call, such as f(b'key', 1)")
    try:
        arguments = tuple(_value(one) for one in tree.args)
    except (TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise InputError(f"its arguments cannot be computed: {error}") from error
    if size_of(arguments) > MOST:
        raise InputError(f"its arguments have a size of more than {MOST:,}")
    return tree.func.id, arguments


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple([_value(one) for one in node.elts])
    if isinstance(node, ast.Dict):
        keys = [_value(one) for one in node.keys if one is not None]
        if len(keys) < len(node.values):
            raise InputError("a dict must have a key for each value")
        return dict(zip(keys, map(_value, node.values), strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left), _value(node.right)
        _require_small(node.op, left, right)
        return _OPERATORS[type(node.op)](left, right)
    raise InputError("its arguments must be numbers, texts, bytes, lists, tuples and dicts")


def _require_small(how: ast.operator, left: Any, right: Any) -> None:
    """Refuse what would take much memory or time."""
    numbers = [one for one in (left, right) if isinstance(one, int)]
    if isinstance(how, ast.Pow) and not (
        len(numbers) == 2 and abs(left) <= 10**6 and 0 <= right <= 128
    ):
        raise InputError("a power must have a small base, and an exponent up to 128")
    if isinstance(how, ast.Mult):
        times = numbers[0] if len(numbers) == 1 else 0
        long = right if left is times else left
        if not isinstance(long, int) and times * max(1, size_of(long)) > MOST:
            raise InputError(f"its arguments have a size of more than {MOST:,}")
