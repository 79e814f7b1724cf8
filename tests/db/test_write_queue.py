"""lsmkv.db.write_queue: what goes together, and who is told."""

from __future__ import annotations

import threading

import pytest
from librt.threading import Lock

from lsmkv.db.write_queue import Pending, WriteQueue


def put(key: bytes, size: int = 1, *, sync: bool = False, alone: bool = False) -> Pending:
    return Pending([(key, bytes(size))], sync, (lambda: None) if alone else None)


def queue_of(*batches: Pending) -> WriteQueue:
    queue = WriteQueue(Lock())
    for batch in batches:
        queue.waiting.append(batch)
    return queue


def gathered(queue: WriteQueue, own: Pending) -> list[Pending]:
    batch = queue.gather(own)
    members = [batch] if batch.members is None else batch.members
    assert batch.operations == [one for member in members for one in member.operations]
    assert batch.sync == members[0].sync
    return members


def test_small_batches_form_one_group_in_order() -> None:
    batches = [put(b"%d" % n) for n in range(5)]
    assert gathered(queue_of(*batches), batches[0]) == batches


def test_a_writer_that_did_not_queue_leads_its_group() -> None:
    own, *others = [put(b"%d" % n) for n in range(3)]
    assert gathered(queue_of(*others), own) == [own, *others]


def test_a_group_of_one_is_the_batch_itself() -> None:
    own = put(b"k", sync=True)
    assert queue_of(own).gather(own) is own


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (put(b"a"), put(b"b", sync=True), False),  # it would not be synced
        (put(b"a", sync=True), put(b"b"), True),
        (put(b"a", sync=True), put(b"b", sync=True), True),
        (put(b"a"), put(b"b", alone=True), False),
        (put(b"a", alone=True), put(b"b"), False),
        (put(b"a", 100), put(b"b", 200 << 10), False),  # a small one does not wait for a large one
        (put(b"a", 200 << 10), put(b"b", 700 << 10), True),
        (put(b"a", 200 << 10), put(b"b", 900 << 10), False),  # a megabyte is enough
    ],
)
def test_which_batches_form_one_group(first: Pending, second: Pending, together: bool) -> None:
    last = put(b"c", sync=True)
    expected = [first, second] if together else [first]
    if together and first.sync:
        expected.append(last)
    assert gathered(queue_of(first, second, last), first) == expected


def test_a_finished_batch_is_left_out_of_a_group_and_leaves_the_queue() -> None:
    done, own = put(b"done"), put(b"own")
    done.end()
    queue = queue_of(done, own)
    assert gathered(queue, own) == [own]
    assert len(queue.waiting) == 1


def test_the_end_of_a_group_ends_each_of_its_batches() -> None:
    members = [put(b"%d" % n) for n in range(3)]
    queue = queue_of(*members)
    group = queue.gather(members[0])
    error = ValueError()
    group.end(error)
    assert [(member.done, member.error) for member in members] == [(True, error)] * 3
    queue.release_followers(group)
    assert len(queue.waiting) == 0


def test_a_waiting_writer_may_be_woken_more_than_once() -> None:
    pending = put(b"k")
    pending.call()  # it does not wait yet
    ticket = pending.ticket()
    pending.call()
    pending.call()
    assert ticket.acquire_soon()


@pytest.mark.parametrize("done", [False, True])
def test_a_waiting_follower_is_woken(done: bool) -> None:
    leader, follower = put(b"leader"), put(b"follower")
    queue = queue_of(leader, follower)
    ticket = follower.ticket()
    if done:
        group = queue.gather(leader)
        group.end()
        queue.release_followers(group)
    else:
        queue.withdraw(leader)
        queue.call_first()
    assert ticket.acquire_soon()
    assert follower.done is done


@pytest.mark.parametrize("done", [False, True])
def test_a_follower_waits_until_its_batch_is_done_or_it_leads(done: bool) -> None:
    lock = Lock()
    lock.acquire()  # someone leads, all the time
    leader, follower = put(b"leader"), put(b"follower")
    queue = WriteQueue(lock)
    queue.wait(leader)  # the first in line does not wait
    thread = threading.Thread(target=queue.wait, args=(follower,))
    thread.start()
    while follower._turn is None:
        threading.Event().wait(0.001)
    if done:
        queue.gather(leader).end()
    else:
        queue.withdraw(leader)
    thread.join()
    assert follower.done is done
    assert len(queue.waiting) == 1  # a batch that is done leaves by itself


def after_a_sync_of(queue: WriteQueue, *batches: Pending) -> None:
    """These were synced together, and have left."""
    for batch in batches[1:]:
        queue.waiting.append(batch)
    group = queue.gather(batches[0])
    queue.count_writers(batches[0])
    group.end()
    queue.release_followers(group)


def test_a_commit_delay_waits_for_the_writers_of_the_last_sync() -> None:
    lock = Lock()
    lock.acquire()  # by who leads
    queue = WriteQueue(lock)
    after_a_sync_of(queue, *[put(b"%d" % n, sync=True) for n in range(3)])
    own, *others = [put(b"again %d" % n, sync=True) for n in range(3)]
    threads = [threading.Thread(target=queue.wait, args=(other,)) for other in others]
    for thread in threads:
        threading.Timer(0.05, thread.start).start()
    queue.delay_commit(own, 1e9)  # without end, if they are not noticed
    assert queue.waiting[0] is own  # or another one, in line before it, would wait for the lock
    assert set(gathered(queue, own)) == {own, *others}
    queue.count_writers(own)
    for pending in (own, *others):
        pending.end()
        pending.call()
    for thread in threads:
        thread.join()


def test_a_commit_delay_waits_once_for_a_writer_that_does_not_return() -> None:
    queue = WriteQueue(Lock())
    after_a_sync_of(queue, *[put(b"%d" % n, sync=True) for n in range(3)])
    own = put(b"again", sync=True)
    queue.delay_commit(own, 0.001)
    assert gathered(queue, own) == [own]
    after_a_sync_of(queue, own)
    queue.delay_commit(put(b"k", sync=True), 1e9)
    assert len(queue.waiting) == 0


@pytest.mark.parametrize("queued", [False, True])
def test_no_commit_delay_where_all_writers_are_queued(queued: bool) -> None:
    queue = WriteQueue(Lock())
    after_a_sync_of(queue, put(b"a", sync=True), put(b"b", sync=True))
    own, other = put(b"own", sync=True), put(b"other")
    queue.waiting.extend([own, other] if queued else [other])
    queue.delay_commit(own, 1e9)
    assert gathered(queue, own) == [own, other]


def test_waking_the_first_writer_of_an_empty_queue_does_nothing() -> None:
    queue = WriteQueue(Lock())
    queue.call_first()
    queue.withdraw(put(b"k"))
    assert len(queue.waiting) == 0
