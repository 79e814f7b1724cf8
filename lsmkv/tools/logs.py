"""The log of ``lsmkv serve``: a line of text or of JSON for each event, on stderr or in a file."""

from __future__ import annotations

import datetime
import json
import logging
import logging.handlers
from collections.abc import Iterator
from contextlib import contextmanager

_LEVELS = {
    "debug": logging.DEBUG,
    "verbose": logging.DEBUG,
    "notice": logging.INFO,
    "warning": logging.WARNING,
}
"""The levels by Redis' names."""


@contextmanager
def logging_to(file: str, as_json: bool) -> Iterator[None]:
    """Log to a file, or to stderr if its name is empty, until the block ends.

    A file that was moved away, as by logrotate, is opened again.  Raises ``OSError`` if it cannot
    be opened.
    """
    handler: logging.Handler = logging.StreamHandler()
    if file:
        handler = logging.handlers.WatchedFileHandler(file, encoding="utf-8", errors="replace")
    handler.setFormatter(_Json() if as_json else _Text())
    root, ours = logging.getLogger(), logging.getLogger("lsmkv")
    levels, held = (root.level, ours.level), list(ours.handlers)
    ours.handlers.clear()  # warnings that are held until a command ends
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
        ours.handlers[:] = held
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


def set_level(name: str) -> None:
    """Log from this level on: ``debug``, ``verbose``, ``notice`` or ``warning``.

    It holds until the block of ``logging_to`` ends.
    """
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("lsmkv").setLevel(_LEVELS[name])


def _time(record: logging.LogRecord) -> str:
    time = datetime.datetime.fromtimestamp(record.created).astimezone()
    return time.isoformat(timespec="milliseconds")


class _Text(logging.Formatter):
    """``2026-11-30T08:21:19.123+00:00 WARNING 127.0.0.1:5000 message``, with ``-`` for no client.

    Lines after the first, as of a traceback, are indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        client = getattr(record, "client", "-")
        text = super().format(record).replace("\n", "\n  ")
        return f"{_time(record)} {record.levelname} {client} {text}"


class _Json(logging.Formatter):
    """An object a line: time, level, client (null for none), message, and perhaps a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "client": getattr(record, "client", None),
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)
