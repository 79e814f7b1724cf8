"""What becomes of a member's write whose owner goes before it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from others import Other, new

import lsmkv
from lsmkv.shared.connection import OwnerGone
from lsmkv.shared.system.local import PAGES
from lsmkv.shared.system.shared_page import SharedPage
from lsmkv.shared.writing import Fate, fate_of, fate_without_owner

Start = Callable[..., Other]


@pytest.fixture
def page() -> Iterator[SharedPage]:
    made, reading = PAGES.make_page(1, 5)
    yield made
    made.end()
    made.close()
    PAGES.close_descriptor(reading)


# In the owner: the next answer is not sent, and the owner dies.
_DIES_BEFORE_ITS_ANSWER = """
import os
part = db._part
part.listener._group._acknowledge = lambda *arguments: os._exit(0)
"""
# In the owner: the next batch is noted in the page, and never gets into the log.
_DIES_BEFORE_ITS_APPEND = """
import os
page = db._part.publishing.page
note = page.note
def note_and_die(*arguments):
    note(*arguments)
    os._exit(0)
page.note = note_and_die
"""
pytestmark = pytest.mark.skipif(
    lsmkv.COMPILED, reason="methods of compiled classes cannot be replaced"
)


@pytest.mark.parametrize("sync", [False, True])
def test_a_write_that_the_log_holds_has_happened(path: Path, other: Start, sync: bool) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        owner(_DIES_BEFORE_ITS_ANSWER)
        before = owner("db.sequence")
        db.put(b"k", b"v", sync=sync)
        assert db.get(b"k") == b"v"
        assert db.sequence == before + 1


@pytest.mark.parametrize("sync", [False, True])
def test_the_next_owner_syncs_what_it_goes_on_with(path: Path, other: Start, sync: bool) -> None:
    owner = other(create_if_missing=True, reuse_logs=True)
    with new(path, reuse_logs=True) as db:
        owner(_DIES_BEFORE_ITS_ANSWER)
        db.put(b"k", b"v", sync=sync)
        assert db.stats().log_syncs == sync


@pytest.mark.parametrize("others_write_first", [False, True])
def test_a_write_that_the_log_lacks_is_sent_again(
    path: Path, other: Start, others_write_first: bool
) -> None:
    """Even if another write has got its sequence meanwhile."""
    owner, second = other(create_if_missing=True), other()
    with new(path, may_own=False) as db:
        owner(_DIES_BEFORE_ITS_APPEND)
        thread = threading.Thread(target=db.put, args=(b"k", b"v"))
        thread.start()
        owner.process.wait()
        if others_write_first:
            second("db.put(b'other', b'1')")
        else:
            second("db.flush()")
        thread.join()
        assert db.get(b"k") == b"v"
        assert db.sequence == 1 + others_write_first


def test_a_transaction_that_the_log_holds_is_committed(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        transaction = db.transaction()
        transaction.put(b"k", b"v")
        owner(_DIES_BEFORE_ITS_ANSWER)
        transaction.commit()
        assert db.get(b"k") == b"v"


def test_a_connection_that_is_lost_while_its_owner_lives(path: Path, other: Start) -> None:
    """Its slot may be another's by then: nothing is sent again."""
    owner = other(create_if_missing=True)
    with new(path) as db:
        db.put(b"k", b"v")
        owner(
            "listener = db._part.listener; commits = listener._group;"
            " acknowledge = commits._acknowledge;"
            " commits._acknowledge = lambda group, _: listener._drop(group[0].member)"
        )
        with pytest.raises(lsmkv.OutcomeUnknownError, match="it is unknown whether"):
            db.put(b"k", b"w")
        owner("commits._acknowledge = acknowledge")
        assert db.get(b"k") == b"w"
        assert db.role == "member"
        db.put(b"k", b"x")
        assert owner("db.get(b'k')") == b"x"


def test_after_very_many_owners_nobody_knows(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path, may_own=False) as db:
        part = db._part
        assert part is not None
        page = part.joined.page  # type: ignore[union-attr]
        owner.kill()
        for _ in range(70):
            one = other()
            one.kill()
        other()
        assert db._entrance.recovered_after(1, db._part) is None  # type: ignore[arg-type]
        assert page.superseded


SENT = OwnerGone(3, 7)
"""Request 7 of slot 3, whose answer did not come."""


@pytest.mark.parametrize(
    ("gone", "noted", "recovered", "fate"),
    [
        (OwnerGone(), 7, 20, Fate.NOT_WRITTEN),  # it was not sent
        (OwnerGone(3, 7, left=True), 7, 20, Fate.NOT_WRITTEN),
        (SENT, 0, 20, Fate.NOT_WRITTEN),
        (SENT, 6, 20, Fate.NOT_WRITTEN),  # the slot's last request is an earlier one
        (SENT, 7, 11, Fate.NOT_WRITTEN),  # the log holds a part of it, or nothing
        (SENT, 7, 12, Fate.WRITTEN),
        (SENT, 7, 20, Fate.WRITTEN),
        (SENT, 7, None, Fate.UNKNOWN),
        (SENT, 0, None, Fate.UNKNOWN),  # the slot may be another connection's
    ],
)
def test_the_fate_of_a_request(
    page: SharedPage, gone: OwnerGone, noted: int, recovered: int | None, fate: Fate
) -> None:
    page.note(3, noted, 10, 3)
    assert fate_of(gone, page, recovered) is fate


@pytest.mark.parametrize(
    ("gone", "noted", "is_dead", "fate"),
    [
        (OwnerGone(), 7, False, Fate.NOT_WRITTEN),
        (OwnerGone(3, 7, left=True), 7, True, Fate.NOT_WRITTEN),
        (SENT, 0, True, Fate.NOT_WRITTEN),
        (SENT, 7, True, Fate.UNKNOWN),
        (SENT, 0, False, Fate.UNKNOWN),  # its owner may still begin it
    ],
)
def test_the_fate_of_a_request_without_a_next_owner(
    page: SharedPage, gone: OwnerGone, noted: int, is_dead: bool, fate: Fate
) -> None:
    page.note(3, noted, 10, 3)
    if is_dead:
        page.supersede()
    assert fate_without_owner(gone, page) is fate


def test_the_error_of_a_lost_owner_says_where_to_look() -> None:
    gone = OwnerGone(3, 7)
    assert (gone.slot, gone.request, gone.left) == (3, 7, False)
