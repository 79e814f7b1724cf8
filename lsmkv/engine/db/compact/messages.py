"""The messages between a store's process and its workers: lines of JSON, each way.

The store's process sends the settings, then one request at a time; the worker sends reports.

===========  ======================================================================================
line         content
===========  ======================================================================================
settings     ``token``, ``low_priority``, and the options that tables depend on; the first line
request      ``job`` (its number); ``options``: those of the outputs, which the store's process
             has chosen; for a flush ``log``, ``usage`` and ``pinned``; for a compaction
             ``level``, ``rewrite``, ``files`` and ``oldest``
report       ``job``; ``read``: the bytes read so far, or at the end ``files`` and ``opened``; or
             ``declined``: why the job was not done; or ``error``
===========  ======================================================================================

``files`` is a :class:`~lsmkv.engine.format.version_edit.VersionEdit` in hexadecimal digits, so that
there is no second format for a table's number, size and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from lsmkv.engine.counters import NUM_LEVELS, Counters
from lsmkv.engine.db.compact.picking import Compaction
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.errors import (
    CorruptionError,
    Error,
    IOError,
    UnsupportedCompressionError,
    errno_of,
)
from lsmkv.engine.filter.known import policy_from_text, policy_text
from lsmkv.engine.filter.prefix import own_extractor
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import OPTIONS, Options
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator

_COMPARATORS: dict[str, Comparator] = {
    comparator.name: comparator for comparator in (BYTEWISE, REVERSE_BYTEWISE)
}
_OPENING: Final = (
    *("tables_opened", "metadata_reads", "metadata_bytes_read"),
    *("identity_check_reads", "identity_check_bytes_read"),
)
"""The counters of opened tables."""
_PLAIN_OPTIONS = tuple([name for name, option in OPTIONS.items() if option.in_workers])


def encode_settings(token: str, low_priority: bool, options: Options) -> bytes:
    """The first line.  ``options`` are the user's; comparator, policy and prefix extractor are
    provided by lsmkv."""
    return _line({"token": token, "low_priority": low_priority, **_plain(options)})


def decode_settings(line: bytes) -> tuple[str, bool, Options]:
    """Token, low priority, and options.  There is no block cache: each block is read once."""
    settings = _parsed(line)
    return settings["token"], settings["low_priority"], _options_in(settings)


def _plain(options: Options) -> dict[str, Any]:
    """The options that tables depend on."""
    extractor = options.prefix_extractor
    plain: dict[str, Any] = {name: getattr(options, name) for name in _PLAIN_OPTIONS}
    plain["comparator"] = options.comparator.name
    plain["filter"] = policy_text(options.filter_policy)
    plain["filter_layout"] = options.filter_layout
    plain["prefix_extractor"] = "" if extractor is None else extractor.name
    return plain


def _options_in(plain: dict[str, Any]) -> Options:
    return Options(
        comparator=_COMPARATORS[plain["comparator"]],
        filter_policy=policy_from_text(plain["filter"]),
        filter_layout=plain["filter_layout"],
        prefix_extractor=own_extractor(plain["prefix_extractor"]),
        **{name: plain[name] for name in _PLAIN_OPTIONS},
    )


class FlushRequest(NamedTuple):
    """Asks for tables of all entries of a log, which are those of the memtable."""

    job: int
    options: Options
    """Those of the tables."""
    log: int
    """The log's number."""
    usage: int
    """The memtable's usage.  Every write adds to it, so it shows whether the log holds them all."""
    pinned: list[int]
    """The pinned sequences."""

    def encode(self) -> bytes:
        """The line."""
        return _line({**self._asdict(), "options": _plain(self.options)})


class CompactionRequest(NamedTuple):
    """Asks for a compaction to be carried out."""

    job: int
    options: Options
    """Those of the outputs."""
    level: int
    rewrite: bool
    files: VersionEdit
    """The inputs, and what overlaps them further down: all that the job asks of a version."""
    oldest: int
    """The oldest pinned sequence."""

    @staticmethod
    def of(
        job: int, options: Options, compaction: Compaction, oldest_pinned: int
    ) -> CompactionRequest:
        """The request for a compaction."""
        version = compaction.version
        comparator = version.comparator
        level = compaction.level
        output_level = compaction.output_level
        files = VersionEdit()
        inputs = compaction.inputs + compaction.next_inputs
        for file in compaction.inputs:
            files.add_file(level, file)
        for file in compaction.next_inputs:
            files.add_file(output_level, file)
        for file in compaction.grandparents:
            files.add_file(output_level + 1, file)
        begin = min((file.smallest for file in inputs), key=comparator.sort_key)[:-8]
        end = max((file.largest for file in inputs), key=comparator.sort_key)[:-8]
        for deeper in range(output_level + 2, NUM_LEVELS):
            for file in version.overlapping(deeper, begin, end):
                files.add_file(deeper, file)
        return CompactionRequest(job, options, level, compaction.is_rewrite, files, oldest_pinned)

    def compaction(self, comparator: InternalKeyComparator) -> Compaction:
        """The compaction, with the part of its version that it needs."""
        levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
        for level, file in self.files.new_files:
            levels[level].append(file)
        below = self.level + (1 if self.rewrite else 2)
        grandparents = list(levels[below]) if below < NUM_LEVELS else []
        inputs = list(levels[self.level])
        next_inputs = [] if self.rewrite else list(levels[self.level + 1])
        version = Version(comparator, levels)
        return Compaction(version, self.level, inputs, next_inputs, grandparents, self.rewrite)

    def encode(self) -> bytes:
        """The line."""
        options, files = _plain(self.options), self.files.encode().hex()
        return _line({**self._asdict(), "options": options, "files": files})


def decode_request(line: bytes) -> FlushRequest | CompactionRequest:
    """The request in a line."""
    request = _parsed(line)
    request["options"] = _options_in(request["options"])
    if "log" in request:
        return FlushRequest(**request)
    request["files"] = VersionEdit.decode(bytes.fromhex(request["files"]))
    return CompactionRequest(**request)


class Report(NamedTuple):
    """The progress of a job, or its result."""

    job: int
    bytes_read: int = 0
    """Bytes that a running compaction has read."""
    files: list[FileMetaData] | None = None
    """The tables that were made, durable under their temporary names: the job is done."""
    opened: Mapping[str, int] = MappingProxyType({})
    """Counters of the tables opened for the job, as :func:`opened_by` returns them."""
    declined: str | None = None
    """Reason for which the job was left to the store's process."""
    error: Exception | None = None
    """The error that the job failed with."""

    @property
    def is_last(self) -> bool:
        """True if the job has ended."""
        return self.files is not None or self.declined is not None or self.error is not None

    def add_to(self, counters: Counters) -> None:
        """Add the worker's reads to the counters of the store's process."""
        for name, number in self.opened.items():
            setattr(counters, name, getattr(counters, name) + number)

    def encode(self) -> bytes:
        """The line."""
        report: dict[str, Any] = {"job": self.job}
        if self.files is not None:
            files = VersionEdit()
            for file in self.files:
                files.add_file(0, file)
            report["files"] = files.encode().hex()
            report["opened"] = dict(self.opened)
        elif self.declined is not None:
            report["declined"] = self.declined
        elif self.error is not None:
            report["error"] = _describe(self.error)
        else:
            report["read"] = self.bytes_read
        return _line(report)

    @staticmethod
    def decode(line: bytes) -> Report:
        """The report in a line."""
        report = _parsed(line)
        job: int = report["job"]
        if "files" in report:
            files = VersionEdit.decode(bytes.fromhex(report["files"]))
            made = [file for _, file in files.new_files]
            return Report(job, files=made, opened=report["opened"])
        if "declined" in report:
            return Report(job, declined=report["declined"])
        if "error" in report:
            return Report(job, error=_exception(*report["error"]))
        return Report(job, report["read"])


def opened_by(counters: Counters) -> dict[str, int]:
    """The counters of opened tables, by name."""
    return {name: getattr(counters, name) for name in _OPENING}


def _describe(error: Exception) -> list[Any]:
    """An exception as plain data: its kind, and its arguments."""
    if isinstance(error, CorruptionError):
        return ["corruption", error.reason, error.path, error.offset]
    if isinstance(error, UnsupportedCompressionError):
        return ["compression", str(error)]
    if isinstance(error, OSError):
        return ["os", errno_of(error), error.strerror or str(error), error.filename]
    if isinstance(error, Error):
        return ["error", str(error)]
    return ["error", f"background work failed: {type(error).__name__}: {error}"]


def _exception(kind: str, *parts: Any) -> Exception:
    """The exception that was described."""
    if kind == "corruption":
        return CorruptionError(*parts)
    if kind == "compression":
        return UnsupportedCompressionError(*parts)
    if kind == "os":
        return IOError(*parts)
    return Error(*parts)


def _line(content: dict[str, Any]) -> bytes:
    import json  # noqa: PLC0415 - few who import lsmkv need a worker process

    return json.dumps(content, separators=(",", ":")).encode("ascii")


def _parsed(line: bytes) -> Any:
    import json  # noqa: PLC0415 - as above

    return json.loads(line)
