"""lsmkv.engine.util.call_site: a warning shows the user's line."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import pytest

from lsmkv.engine.util.call_site import CallSite, call_site, called_at


def line_of(site: CallSite) -> tuple[str, int]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        site.warn("a warning", UserWarning)
    (one,) = caught
    assert (str(one.message), one.category) == ("a warning", UserWarning)
    return Path(one.filename).name, one.lineno


def here() -> CallSite:
    return call_site()


def test_the_line_is_the_innermost_that_is_not_of_lsmkv() -> None:
    line = here.__code__.co_firstlineno + 1
    assert line_of(here()) == (Path(__file__).name, line)
    assert line_of(called_at(None, call_site))[0] == Path(__file__).name


def test_a_noted_line_counts_in_another_thread_until_the_call_ends() -> None:
    site, found = here(), []

    def run() -> None:
        found.append(called_at(site, call_site))
        with pytest.raises(ZeroDivisionError):
            called_at(site, lambda: 1 // 0)
        found.append(call_site())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found[0] is site
    assert found[1] is not site


def test_the_filter_default_shows_a_line_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            here().warn("a warning", UserWarning)
    assert len(caught) == 1
