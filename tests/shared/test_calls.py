"""The threads in which an owner runs what members call."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lsmkv.engine.util.threads import new_lock
from lsmkv.shared.calls import Calls
from lsmkv.shared.frames import FAILED, HEADER, LEAVING, PROGRESS, RESULT
from lsmkv.shared.group_commit import MemberConnection


class Ends:
    """A member's connection, from both ends, and the calls of an owner."""

    def __init__(self, method: Callable[[str, dict[str, Any], Callable[..., None]], Any]) -> None:
        near, self.far = socket.socketpair()
        near.setblocking(False)
        self.member = MemberConnection(near, 0, 1)
        self._over = new_lock()
        self._over.acquire()
        self.calls = Calls(select, method, self._over.release)

    def run(self) -> list[tuple[int, dict[str, Any]]]:
        """What the member is sent by one call, which is over then."""
        self.calls.start(self.member, 5, {"method": "name", "arguments": {"n": 1}})
        self._over.acquire()
        self.far.setblocking(False)
        data = self.far.recv(1 << 20)
        found = []
        while data:
            size, kind, request = HEADER.unpack_from(data)
            assert request == 5
            content = data[HEADER.size : HEADER.size + size]
            found.append((kind, json.loads(content) if content else {}))
            data = data[HEADER.size + size :]
        return found

    def close(self) -> None:
        self.member.socket.close()
        self.far.close()


Begin = Callable[..., Ends]


@pytest.fixture
def begin() -> Iterator[Begin]:
    made: list[Ends] = []

    def one(method: Callable[[str, dict[str, Any], Callable[..., None]], Any]) -> Ends:
        made.append(Ends(method))
        return made[-1]

    yield one
    for ends in made:
        ends.close()


def test_progress_comes_before_the_result(begin: Begin) -> None:
    def method(name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        tell(1, 2, "copied")
        return [name, arguments]

    assert begin(method).run() == [
        (PROGRESS, {"arguments": [1, 2, "copied"]}),
        (RESULT, {"result": ["name", {"n": 1}]}),
    ]


def test_an_error_is_the_answer(begin: Begin) -> None:
    def method(*_: Any) -> Any:
        raise ValueError("no")

    ((kind, content),) = begin(method).run()
    assert (kind, content["text"]) == (FAILED, "no")


def test_a_call_ends_when_the_owner_stops(begin: Begin) -> None:
    """At the next thing that it tells; and its thread closes the connection."""

    def method(name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        ends.calls.stop()
        tell(1, 2, "copied")

    ends = begin(method)
    assert ends.run() == [(LEAVING, {})]
    ends.far.setblocking(True)
    assert ends.far.recv(1) == b""  # once it is closed, which comes after the answer


def test_a_call_that_is_over_leaves_the_next_one_its_connection(begin: Begin) -> None:
    """The listener may hear the next call, which stops the owner, before the thread of the last one
    has ended."""
    go_on = new_lock()
    go_on.acquire()

    def method(name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        if name == "second":
            go_on.acquire()
        return name

    def wake() -> None:
        if list(ends.calls.finished()) and ends.member.call == 5:
            ends.calls.start(ends.member, 6, {"method": "second"})
            ends.calls.stop()
            over.release()

    over = new_lock()
    over.acquire()
    ends = begin(method)
    ends.calls = Calls(select, method, wake)
    ends.calls.start(ends.member, 5, {"method": "first"})
    over.acquire()
    first = HEADER.size + len(b'{"result": "first"}')
    assert len(ends.far.recv(first, socket.MSG_WAITALL)) == first
    go_on.release()
    _, kind, request = HEADER.unpack(ends.far.recv(HEADER.size, socket.MSG_WAITALL))
    assert (kind, request) == (RESULT, 6)


def test_a_member_is_busy_until_the_listener_has_heard_of_it(begin: Begin) -> None:
    def method(*_: Any) -> Any:
        runs.append(ends.calls.runs(ends.member))

    runs: list[bool] = []
    ends = begin(method)
    assert not ends.calls.runs(ends.member)
    ends.run()
    assert runs == [True]
    assert ends.member.busy
    assert not ends.calls.runs(ends.member)
    assert list(ends.calls.finished()) == [ends.member]
    assert not ends.member.busy
    assert list(ends.calls.finished()) == []


def test_progress_that_finds_no_room_is_left_out(begin: Begin) -> None:
    def method(name: str, arguments: dict[str, Any], tell: Callable[..., None]) -> Any:
        near = ends.member.socket
        try:
            while True:
                near.send(bytes(1 << 16))
        except BlockingIOError:
            pass
        tell(1, 2, "copied")  # which would wait for ever, as nobody reads
        ends.far.setblocking(False)
        try:
            while ends.far.recv(1 << 20):
                pass
        except BlockingIOError:
            pass
        return "done"

    ends = begin(method)
    assert ends.run() == [(RESULT, {"result": "done"})]
