"""lsmkv.engine.db.compact.background_thread: the end of a thread can be awaited, and is reported
once.
"""

from __future__ import annotations

import threading
import weakref

from lsmkv.engine.db.compact.background_thread import BackgroundThread


class Owner:
    """What a runner keeps alive."""


def test_waiting_lasts_until_the_thread_has_ended() -> None:
    runner = BackgroundThread(None, [])
    may_end = threading.Event()
    began = threading.Event()
    events: list[str] = []

    def work() -> None:
        runner.begin()
        began.set()
        may_end.wait()
        events.append("ended")
        runner.end()

    def wait() -> None:
        began.set()
        runner.wait()
        events.append("waited")

    threads = [threading.Thread(target=work), threading.Thread(target=wait)]
    threads[0].start()
    began.wait()
    began.clear()
    threads[1].start()
    began.wait()
    may_end.set()
    for thread in threads:
        thread.join()
    assert events == ["ended", "waited"]
    runner.wait()  # any number of times


def test_the_thread_does_not_wait_for_itself() -> None:
    runner = BackgroundThread(None, [])
    runner.begin()
    runner.wait()


def test_the_owner_is_kept_alive_until_the_end() -> None:
    owner = Owner()
    seen = weakref.ref(owner)
    runner = BackgroundThread(owner, [])
    runner.begin()
    del owner
    assert seen() is not None
    runner.end()
    assert seen() is None
