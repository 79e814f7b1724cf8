"""lsmkv.engine.db.write.write_queue: which batches make up a group, and which writers are woken."""

from __future__ import annotations

import threading

import pytest

from lsmkv.engine.db.write.write_queue import PendingWrite, WriteQueue
from lsmkv.engine.util.threads import ThreadLock


def put(key: bytes, size: int = 1, *, sync: bool = False, alone: bool = False) -> PendingWrite:
    return PendingWrite([(key, bytes(size))], sync, (lambda: None) if alone else None)


def queue_of(*batches: PendingWrite) -> WriteQueue:
    queue = WriteQueue(ThreadLock())
    for batch in batches:
        queue.waiting.append(batch)
    return queue


def gathered(queue: WriteQueue, own: PendingWrite) -> list[PendingWrite]:
    batch = queue.build_group(own)
    members = [batch] if batch.members is None else batch.members
    assert batch.operations == [one for member in members for one in member.operations]
    assert batch.sync == members[0].sync
    return members


def test_small_batches_make_up_a_group_in_order() -> None:
    batches = [put(b"%d" % n) for n in range(5)]
    assert gathered(queue_of(*batches), batches[0]) == batches


def test_a_leader_that_did_not_queue_comes_first() -> None:
    own, *others = [put(b"%d" % n) for n in range(3)]
    assert gathered(queue_of(*others), own) == [own, *others]


def test_a_single_batch_is_no_group() -> None:
    own = put(b"k", sync=True)
    assert queue_of(own).build_group(own) is own


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (put(b"a"), put(b"b", sync=True), False),  # the second would not be synced
        (put(b"a", sync=True), put(b"b"), True),
        (put(b"a", sync=True), put(b"b", sync=True), True),
        (put(b"a"), put(b"b", alone=True), False),
        (put(b"a", alone=True), put(b"b"), False),
        (
            put(b"a", 100),
            put(b"b", 200 << 10),
            False,
        ),  # a small batch does not wait for a large one
        (put(b"a", 200 << 10), put(b"b", 700 << 10), True),
        (put(b"a", 200 << 10), put(b"b", 900 << 10), False),  # a group has at most a megabyte
    ],
)
def test_limits_of_a_group(first: PendingWrite, second: PendingWrite, together: bool) -> None:
    last = put(b"c", sync=True)
    expected = [first, second] if together else [first]
    if together and first.sync:
        expected.append(last)
    assert gathered(queue_of(first, second, last), first) == expected


def test_done_batches_are_left_out_and_removed() -> None:
    done, own = put(b"done"), put(b"own")
    done.finish()
    queue = queue_of(done, own)
    assert gathered(queue, own) == [own]
    assert len(queue.waiting) == 1


def test_finishing_a_group_finishes_each_member() -> None:
    members = [put(b"%d" % n) for n in range(3)]
    queue = queue_of(*members)
    group = queue.build_group(members[0])
    error = ValueError()
    group.finish(error)
    assert [(member.done, member.error) for member in members] == [(True, error)] * 3
    queue.release_followers(group)
    assert len(queue.waiting) == 0


def test_a_writer_may_be_woken_more_than_once() -> None:
    pending = put(b"k")
    pending.wake()  # it does not wait yet
    ticket = pending.ticket()
    pending.wake()
    pending.wake()
    assert ticket.acquire_soon()


@pytest.mark.parametrize("done", [False, True])
def test_a_waiting_follower_is_woken(done: bool) -> None:
    leader, follower = put(b"leader"), put(b"follower")
    queue = queue_of(leader, follower)
    ticket = follower.ticket()
    if done:
        group = queue.build_group(leader)
        group.finish()
        queue.release_followers(group)
    else:
        queue.remove(leader)
        queue.wake_first()
    assert ticket.acquire_soon()
    assert follower.done is done


@pytest.mark.parametrize("done", [False, True])
def test_waiting_ends_when_done_or_first(done: bool) -> None:
    lock = ThreadLock()
    lock.guard.acquire()  # a leader holds it all the time
    leader, follower = put(b"leader"), put(b"follower")
    queue = WriteQueue(lock)
    queue.wait(leader)  # the first in the queue does not wait
    thread = threading.Thread(target=queue.wait, args=(follower,))
    thread.start()
    while follower._turn is None:
        threading.Event().wait(0.001)
    if done:
        queue.build_group(leader).finish()
    else:
        queue.remove(leader)
    thread.join()
    assert follower.done is done
    assert len(queue.waiting) == 1  # the writer removes its batch when it is done


def after_a_sync_of(queue: WriteQueue, *batches: PendingWrite) -> None:
    """These batches were synced together, and are removed."""
    for batch in batches[1:]:
        queue.waiting.append(batch)
    group = queue.build_group(batches[0])
    queue.count_writers(batches[0])
    group.finish()
    queue.release_followers(group)


def test_commit_delay_waits_for_the_writers_of_the_last_sync() -> None:
    lock = ThreadLock()
    lock.guard.acquire()  # the leader holds it
    queue = WriteQueue(lock)
    after_a_sync_of(queue, *[put(b"%d" % n, sync=True) for n in range(3)])
    own, *others = [put(b"again %d" % n, sync=True) for n in range(3)]
    threads = [threading.Thread(target=queue.wait, args=(other,)) for other in others]
    for thread in threads:
        threading.Timer(0.05, thread.start).start()
    queue.delay_commit(own, 1e9)  # endless, if they are not noticed
    assert queue.waiting[0] is own  # else a follower before it would wait for the lock
    assert set(gathered(queue, own)) == {own, *others}
    queue.count_writers(own)
    for pending in (own, *others):
        pending.finish()
        pending.wake()
    for thread in threads:
        thread.join()


def test_commit_delay_waits_once_for_a_writer_that_stays_away() -> None:
    queue = WriteQueue(ThreadLock())
    after_a_sync_of(queue, *[put(b"%d" % n, sync=True) for n in range(3)])
    own = put(b"again", sync=True)
    queue.delay_commit(own, 0.001)
    assert gathered(queue, own) == [own]
    after_a_sync_of(queue, own)
    queue.delay_commit(put(b"k", sync=True), 1e9)
    assert len(queue.waiting) == 0


@pytest.mark.parametrize("queued", [False, True])
def test_no_commit_delay_if_all_writers_have_queued(queued: bool) -> None:
    queue = WriteQueue(ThreadLock())
    after_a_sync_of(queue, put(b"a", sync=True), put(b"b", sync=True))
    own, other = put(b"own", sync=True), put(b"other")
    queue.waiting.extend([own, other] if queued else [other])
    queue.delay_commit(own, 1e9)
    assert gathered(queue, own) == [own, other]


def test_an_empty_queue_has_no_writer_to_wake() -> None:
    queue = WriteQueue(ThreadLock())
    queue.wake_first()
    queue.remove(put(b"k"))
    assert len(queue.waiting) == 0
