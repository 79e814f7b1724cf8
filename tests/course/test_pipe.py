"""Values and calls pass between two processes, and nothing else does."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lsmkv import MemoryEnv
from lsmkv.course.pipe import MUTABLE, SEQUENCE, Peer, PipeError, Shape
from lsmkv.errors import CorruptionError


class Watched(list[int]):
    SHARED = MUTABLE


class Level(list[int]):
    SHARED = SEQUENCE


class Table:
    SHARED = Shape("object", ("read",), ("number",))

    def __init__(self, number: int) -> None:
        self.number = number
        self.steps: list[int] = []

    def read(self, block: int) -> int:
        self.steps.append(block)
        return block + self.number


class Root:
    """What the other end calls: a function by its name."""

    SHARED = Shape("object", ("run",))

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        self.functions = functions

    def run(self, name: str, *arguments: Any) -> Any:
        return self.functions[name](*arguments)


FUNCTIONS: dict[str, Callable[..., Any]] = {}


def there(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the other end."""
    FUNCTIONS[function.__name__] = function
    return function


@pytest.fixture
def run() -> Iterator[Callable[..., Any]]:
    """Calls a function at the other end of the pipes."""
    (a, b), (c, d) = os.pipe(), os.pipe()
    other = Peer(a, d, Root(FUNCTIONS), passes=BaseException)
    thread = threading.Thread(target=other.serve)
    thread.start()
    peer = Peer(c, b)
    yield lambda name, *arguments: peer.call(0, "run", (name, *arguments))
    os.close(b)
    thread.join()
    for end in (a, c, d):
        os.close(end)


@there
def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            0,
            -1,
            2**63,
            -(2**64),
            10**5000,
            1.5,
            "é\ud800",
            b"\x00\xff",
            bytearray(b"x"),
        ),
        *([], [1, [b"a"]], (), (1, (2,)), {b"k": (1,)}, {1, 2}, frozenset({b"x"}), slice(1, None)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back_with_their_types(run: Callable[..., Any], value: object) -> None:
    got = run("same", value)
    assert (type(got), got) == (type(value), value)


@there
def change(numbers: list[Any], content: dict[str, int]) -> None:
    numbers[0].append(3)
    numbers.append([4])
    content["b"] = 2


def test_what_a_call_changes_in_its_arguments_is_seen(run: Callable[..., Any]) -> None:
    inner = [1]
    numbers: list[Any] = [inner, 2]
    content = {"a": 1}
    run("change", numbers, content)
    assert (numbers, content) == ([[1, 3], 2, [4]], {"a": 1, "b": 2})


@there
def first_of(numbers: Iterator[int]) -> int:
    return next(numbers)


@there
def doubled(numbers: Iterator[int]) -> Iterator[int]:
    return (2 * number for number in numbers)


@there
def chained(runs: list[Iterator[int]], flag: bool) -> Iterator[int]:
    assert flag
    return itertools.chain.from_iterable(runs)


def test_an_iterator_is_advanced_as_far_as_it_is_needed(run: Callable[..., Any]) -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    numbers = endless()
    assert run("first_of", numbers) == 0
    assert taken == [0]
    result = run("doubled", numbers)
    assert [next(result), next(result)] == [2, 4]
    assert taken == [0, 1, 2]
    chained = run("chained", [iter([1]), endless()], True)
    assert [next(chained), next(chained)] == [1, 0]
    short = run("doubled", iter([5, 6]))
    assert list(short) == [10, 12]
    assert list(short) == []


@there
def insert_three(numbers: list[int]) -> int:
    numbers.insert(1, 3)
    numbers[0] = 9
    return len(numbers) + numbers[-1]


@there
def sort(numbers: list[int]) -> None:
    numbers.sort(key=lambda number: -number)


def test_a_list_that_stays_is_changed_where_it_is(run: Callable[..., Any]) -> None:
    watched = Watched([1, 2])
    assert run("insert_three", watched) == 5
    assert watched == [9, 3, 2]
    run("sort", watched)
    assert watched == [9, 3, 2]
    with pytest.raises(AttributeError):
        run("sort", Level([1, 2]))


@there
def read(table: Any) -> Any:
    return table.number, table.read(5), table


@there
def attribute(value: Any, name: str) -> Any:
    return getattr(value, name)


@there
def reach(value: Any, name: str) -> Any:
    return value._peer.call(value._number, name)


def test_an_object_comes_back_as_itself(run: Callable[..., Any]) -> None:
    table = Table(7)
    assert run("read", table) == (7, 12, table)
    assert table.steps == [5]


@pytest.mark.parametrize("name", ["steps", "__init__", "__class__", "__getattribute__"])
def test_only_what_is_shared_can_be_called(run: Callable[..., Any], name: str) -> None:
    if not name.startswith("__"):
        with pytest.raises(AttributeError):
            run("attribute", Table(7), name)
    with pytest.raises(AttributeError):
        run("reach", Table(7), name)


@there
def write(directory: Any) -> list[str]:
    with directory.create("a") as file:
        file.append(b"abc")
        file.sync()
        assert file.size() == 3
    names: list[str] = directory.names()
    return names


def test_a_directory_is_used_from_there(run: Callable[..., Any]) -> None:
    with MemoryEnv().open_directory("d", create=True) as directory:
        assert run("write", directory) == ["a"]
        assert directory.read_file("a", 10) == b"abc"


class OwnError(ValueError):
    pass


@there
def fail(kind: str) -> None:
    if kind == "own":
        raise OwnError("mine")
    if kind == "exit":
        raise SystemExit(0)
    if kind == "corruption":
        raise CorruptionError("damaged")
    {}["k"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("kind", "base", "name", "text"),
    [
        ("own", ValueError, "OwnError", "mine"),
        ("exit", Exception, "SystemExit", "0"),
        ("corruption", CorruptionError, "CorruptionError", "damaged"),
        ("key", KeyError, "KeyError", "'k'"),
    ],
)
def test_an_exception_is_raised_under_its_name(
    run: Callable[..., Any], kind: str, base: type[Exception], name: str, text: str
) -> None:
    with pytest.raises(base) as raised:
        run("fail", kind)
    assert (type(raised.value).__name__, str(raised.value)) == (name, text)


@there
def call(function: Callable[[], object]) -> object:
    return function()


@there
def try_to_call(function: Callable[[], object]) -> str:
    try:
        function()
    except OSError as error:
        return str(error)
    return ""


def test_an_exception_that_passes_through_is_the_same_object(run: Callable[..., Any]) -> None:
    mine = OSError("the disk failed")

    def failing() -> None:
        raise mine

    with pytest.raises(OSError, match="the disk failed") as raised:
        run("call", failing)
    assert raised.value is mine
    assert run("try_to_call", failing) == "the disk failed"


def test_an_interrupt_stays_on_this_side(run: Callable[..., Any]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("call", interrupted)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[]",
        b"{}",
        b'["ok"]',
        b'["ok", {"pickle": "gASVAAAA"}, null]',
        b'["ok", {"yours": 99}, null]',
        b'["ok", {"bytes": 3}, null]',
        b'["ok", {"shared": [1, ["function", [], ["_peer"]], [null], ""]}, null]',
        b'["error", {}]',
        b'["what", 1]',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_refused(message: bytes) -> None:
    (a, b), (c, d) = os.pipe(), os.pipe()
    os.write(d, len(message).to_bytes(4, "little") + message[:60_000])
    os.close(d)
    peer = Peer(c, b)
    with pytest.raises(PipeError):
        peer.call(0, "run", ("same", 1))
    assert peer.is_broken or len(message) > 60_000
    for end in (a, b, c):
        os.close(end)


def test_a_length_that_is_too_large_is_not_read() -> None:
    (a, b), (c, d) = os.pipe(), os.pipe()
    os.write(d, b"\xff\xff\xff\xff")
    with pytest.raises(PipeError, match="4,294,967,295 bytes"):
        Peer(c, b).call(0, "run")
    for end in (a, b, c, d):
        os.close(end)
