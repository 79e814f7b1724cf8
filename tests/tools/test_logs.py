"""Lines of the log."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

from lsmkv.tools.logs import logging_to, set_level


def log_something() -> None:
    log = logging.getLogger("lsmkv.server")
    log.info("nobody\nsees %s", "it", extra={"client": "127.0.0.1:5"})
    log.warning("no client")
    try:
        raise ValueError("x")
    except ValueError:
        log.exception("failed")


def test_lines_of_text(tmp_path: Path) -> None:
    with logging_to(str(tmp_path / "log"), as_json=False):
        set_level("notice")
        log_something()
    lines = (tmp_path / "log").read_text().splitlines()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[-+]\d\d:\d\d"
    assert re.fullmatch(f"{time} INFO 127.0.0.1:5 nobody", lines[0])
    assert lines[1] == "  sees it"
    assert re.fullmatch(f"{time} WARNING - no client", lines[2])
    assert re.fullmatch(f"{time} ERROR - failed", lines[3])
    assert lines[-1] == "  ValueError: x"


def test_objects_a_line(tmp_path: Path) -> None:
    with logging_to(str(tmp_path / "log"), as_json=True):
        set_level("warning")
        log_something()
        set_level("verbose")
        log_something()
    found = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(one["level"], one["client"], one["message"]) for one in found] == [
        ("warning", None, "no client"),
        ("error", None, "failed"),
        ("info", "127.0.0.1:5", "nobody\nsees it"),
        ("warning", None, "no client"),
        ("error", None, "failed"),
    ]
    assert found[1]["traceback"].endswith("ValueError: x")
    assert "traceback" not in found[0]


def test_a_file_that_was_moved_is_opened_again(tmp_path: Path) -> None:
    with logging_to(str(tmp_path / "log"), as_json=True):
        set_level("warning")
        log_something()
        (tmp_path / "log").rename(tmp_path / "log.1")
        log_something()
    assert (tmp_path / "log").read_text().count("no client") == 1


def test_logging_ends_with_the_block(tmp_path: Path) -> None:
    root, ours = logging.getLogger(), logging.getLogger("lsmkv")
    before = (root.level, list(root.handlers), ours.level, list(ours.handlers))
    with logging_to(str(tmp_path / "log"), as_json=False):
        set_level("verbose")
        assert ours.level == logging.DEBUG
    log_something()
    assert (tmp_path / "log").read_text() == ""
    assert (root.level, list(root.handlers), ours.level, list(ours.handlers)) == before
