"""A line of progress instead of a letter for each of thousands of tests, and failures at once.

On a terminal the line is written over; elsewhere there is one for each tenth of the run.  ``-v``
has pytest's own display.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence

import pytest

_WIDTH = 78


def folder_of(nodeid: str) -> str:
    """The folder of a test below ``tests`` or ``lsmkv``: ``tests/engine/db`` for all that is
    inside.
    """
    parts = nodeid.partition("::")[0].split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


class Progress:
    """The plugin; pytest-xdist's main process has one, its workers none."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._on_terminal = sys.stdout.isatty()
        self._started = time.monotonic()
        self._shown = 0.0
        self._total = 0
        self._done = 0
        self._failed = 0
        self.seconds: Counter[str] = Counter()
        """What the tests of each folder took, setup and teardown included."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the number of tests of a run without workers."""
        self._total = max(self._total, len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take the number of tests that every worker has found."""
        self._total = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> tuple[str, str, str]:
        """No letters; the words are those of pytest's summary."""
        if report.failed and report.when in ("setup", "teardown"):
            return "error", "", "ERROR"
        if report.failed or report.skipped:
            return report.outcome, "", report.outcome.upper()
        return (report.outcome if report.when == "call" else ""), "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that has ended; show a failure."""
        self.seconds[folder_of(report.nodeid)] += report.duration
        if report.failed:
            self._failed += 1
            self._write(f"FAILED {report.nodeid} ({report.when})")
            if self._failed == 1:  # the others follow at the end of the run, as pytest has them
                self._write(report.longreprtext)
        if report.when == "teardown":
            tenth = 10 * self._done // max(self._total, 1)
            self._done += 1
            if self._on_terminal:
                if time.monotonic() - self._shown > 0.2:
                    self._shown = time.monotonic()
                    self._show(report.nodeid)
            elif 10 * self._done // max(self._total, 1) > tenth:
                self._write(self._line())

    def pytest_sessionfinish(self) -> None:
        """Remove the line."""
        if self._on_terminal:
            self._reporter.write("\r" + " " * _WIDTH + "\r")

    def _line(self) -> str:
        seconds = int(time.monotonic() - self._started)
        share = 100 * self._done // max(self._total, 1)
        failed = f", {self._failed} failed" if self._failed else ""
        clock = f"{seconds // 60}:{seconds % 60:02d}"
        return f"{share:3d}%  {self._done:,} of {self._total:,} tests{failed}  {clock}"

    def _show(self, test: str) -> None:
        line = self._line()
        at = test.partition("::")[0][: max(0, _WIDTH - len(line) - 3)]
        self._reporter.write(f"\r{f'{line}   {at}':{_WIDTH}}")

    def _write(self, text: str) -> None:
        if self._on_terminal:
            self._reporter.write("\r" + " " * _WIDTH + "\r")
        self._reporter.write_line(text)
