"""lsmkv.tools.top.watch: what happened between publications, and who is looked at."""

from __future__ import annotations

import time

import pytest
from watching import Owner

from lsmkv import CorruptionError
from lsmkv.tools.top.watch import RECENT, between


def test_nobody_publishes() -> None:
    owner = Owner()
    watch = owner.look()
    assert watch.published is None
    assert watch.last is None
    assert watch.owner.pid == owner.now.pid
    owner.lock.close()
    assert owner.look().owner.pid is None


def test_the_first_look_has_the_time_since_the_opening() -> None:
    owner = Owner()
    owner.operate("get", 505, 1000)
    owner.publish(stats={"gets": 505})
    watch = owner.look()
    assert watch.last is not None
    assert watch.last is watch.recent
    assert watch.last.seconds == pytest.approx(101)
    assert watch.last.rate(watch.last.operations("get")) == pytest.approx(5)
    assert list(watch.rates["get"]) == list(watch.times) == []


def test_rates_and_percentiles_are_of_what_is_new() -> None:
    owner = Owner()
    owner.operate("get", 1000, 5_000_000)
    owner.publish()
    owner.look()
    owner.operate("get", 30, 1000)
    owner.publish(2.0, stats={"gets": 30})
    watch = owner.look()
    assert watch.last is not None
    assert watch.last.seconds == pytest.approx(2)
    assert watch.last.stats.gets == 30
    assert watch.last.latencies["get"].count == 30
    assert watch.last.latencies["get"].percentile(100) < 1100
    assert list(watch.rates["get"]) == pytest.approx([15])
    assert list(watch.rates["put"]) == [0]
    assert watch.p99[-1] < 1100


def test_a_look_between_two_publications_changes_nothing() -> None:
    owner = Owner()
    for _ in range(3):
        owner.operate("put", 10, 1000)
        owner.publish()
        for _ in range(3):
            watch = owner.look()
    assert list(watch.rates["put"]) == pytest.approx([10, 10])


def test_recent_is_the_last_ten_seconds() -> None:
    owner = Owner()
    for n in range(40):
        owner.publish(stats={"gets": n})
        watch = owner.look()
    assert watch.recent is not None
    assert watch.recent.seconds == pytest.approx(RECENT)
    assert watch.recent.stats.gets == RECENT


def test_another_owner_starts_again() -> None:
    owner = Owner()
    for gets in (100, 200):
        owner.publish(stats={"gets": gets})
        owner.look()
    owner.publish(opened=owner.now.time, stats={"gets": 5})
    watch = owner.look()
    assert watch.last is not None
    assert watch.last.stats.gets == 5
    assert list(watch.rates["get"]) == []


def test_a_clock_that_is_set_back_starts_again() -> None:
    owner = Owner()
    for seconds in (1.0, 1.0, -50.0):
        owner.publish(seconds)
        watch = owner.look()
    assert watch.published is not None
    assert watch.published.time == owner.now.time
    assert list(watch.rates["get"]) == []
    owner.publish()
    assert list(owner.look().rates["get"]) == [0]


def test_an_owner_that_went_is_forgotten() -> None:
    owner = Owner()
    owner.publish()
    assert owner.look().published is not None
    owner.lock.close()  # as when it is killed
    watch = owner.look()
    assert watch.published is None
    assert watch.recent is None
    assert watch.owner.published is not None


def test_damage_is_kept_until_the_next_look() -> None:
    owner = Owner()
    owner.publish()
    owner.look()
    owner.write(b"{")
    watch = owner.look()
    assert isinstance(watch.error, CorruptionError)
    assert watch.published is None
    owner.publish()
    assert owner.look().error is None
    assert watch.published is not None


def test_an_owner_that_is_stopped_is_silent() -> None:
    owner = Owner()
    owner.publish(0.0)
    assert owner.look().silent_seconds == 0.0
    owner.now = owner.now._replace(time=time.time() - 60)
    owner.publish(0.0, opened=owner.now.time - 10)
    assert 59 < owner.look().silent_seconds < 70


def test_a_window_is_never_empty() -> None:
    owner = Owner()
    assert between(owner.now, owner.now).seconds > 0
