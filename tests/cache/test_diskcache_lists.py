"""Which of diskcache's own tests are left out (``diskcache_suite.py``)."""

from __future__ import annotations

from diskcache_suite import HAS_MORE, LEFT_OUT, left_out


def test_few_tests_are_left_out_each_with_its_reason() -> None:
    about_files, about_others = left_out(LEFT_OUT), left_out(HAS_MORE)
    assert len(about_files) <= 25
    assert not about_files.keys() & about_others.keys()
    for name, reason in (about_files | about_others).items():
        assert name.startswith("tests/test_")
        assert reason
