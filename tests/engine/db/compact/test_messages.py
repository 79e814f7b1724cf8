"""lsmkv.engine.db.compact.messages: settings, requests and reports survive a round trip."""

from __future__ import annotations

import errno

import pytest

from lsmkv.engine.counters import NUM_LEVELS, Counters
from lsmkv.engine.db.compact.messages import (
    CompactionRequest,
    FlushRequest,
    Report,
    decode_request,
    decode_settings,
    encode_settings,
    opened_by,
)
from lsmkv.engine.db.compact.picking import Compaction, compaction_of_range
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.known import policy_text
from lsmkv.engine.format.keys import InternalKeyComparator, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options, make_options
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE
from lsmkv.engine.util.compression import ZSTD
from lsmkv.errors import CorruptionError, Error, IOError, UnsupportedCompressionError, errno_of

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "options",
    [
        make_options(),
        make_options(
            block_size=1000,
            block_restart_interval=3,
            max_file_size=70_000,
            max_open_files=33,
            max_block_bytes=1 << 21,
            compression="zstd",
            zstd_compression_level=7,
            bloom_filter_bits=17,
            filter_layout="both",
            comparator=REVERSE_BYTEWISE,
        ),
        make_options(compression=None, bloom_filter_bits=0),
        make_options(filter_policy=Bloom64Policy(12.5), prefix_extractor=b":\xff"),
        make_options(filter_policy=BinaryFusePolicy(7), prefix_extractor=5),
    ],
)
@pytest.mark.parametrize("low_priority", [False, True])
def test_settings_round_trip(options: Options, low_priority: bool) -> None:
    line = encode_settings(TOKEN, low_priority, options)
    assert b"\n" not in line
    token, low, decoded = decode_settings(line)
    assert (token, low) == (TOKEN, low_priority)
    for name in (
        "block_size",
        "block_restart_interval",
        "max_file_size",
        "max_open_files",
        "max_block_bytes",
        "compression",
        "zstd_compression_level",
        "filter_layout",
        "comparator",
    ):
        assert getattr(decoded, name) == getattr(options, name), name
    assert repr(decoded.filter_policy) == repr(options.filter_policy)
    extractor, other = decoded.prefix_extractor, options.prefix_extractor
    assert repr(extractor) == repr(other)
    assert decoded.block_cache is None


def test_flush_request_round_trip() -> None:
    options = make_options(filter_policy=BloomFilterPolicy(9.48), compression="zstd")
    request = FlushRequest(7, options, 12, 4_000_000, [3, 9, (1 << 56) - 1])
    assert b"\n" not in request.encode()
    decoded = decode_request(request.encode())
    assert policy_text(decoded.options.filter_policy) == "bloom:9.48"
    assert decoded.options.compression == ZSTD
    assert decoded._replace(options=options) == request


def file(number: int, smallest: bytes, largest: bytes, size: int = 1000) -> FileMetaData:
    return FileMetaData(number, size, pack(smallest, 9, 1), pack(largest, 8, 0))


def numbers(files: list[FileMetaData]) -> list[int]:
    return [each.number for each in files]


@pytest.mark.parametrize("level", range(NUM_LEVELS - 1))
def test_compaction_request_round_trip(level: int) -> None:
    """The partial version answers a compaction's questions as the whole one does."""
    comparator = InternalKeyComparator(BYTEWISE)
    levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
    keys = [b"%02d" % n for n in range(100)]
    for at in range(level, NUM_LEVELS):
        width = 12 - at
        for begin in range(at, 90, width):
            number = 1000 * (at + 1) + begin
            levels[at].append(file(number, keys[begin], keys[begin + width - 2]))
    version = Version(comparator, levels)
    made = compaction_of_range(version, level, b"30", b"42", make_options())
    assert made is not None
    compaction = made[0]
    policy = None if level == 3 else Bloom64Policy(9.48)
    options = make_options(compression="zstd")._replace(filter_policy=policy)
    request = CompactionRequest.of(5, options, compaction, 77)
    line = request.encode()
    assert b"\n" not in line
    decoded = decode_request(line)
    assert isinstance(decoded, CompactionRequest)
    assert (decoded.job, decoded.level, decoded.oldest) == (5, level, 77)
    assert policy_text(decoded.options.filter_policy) == policy_text(policy)
    assert decoded.options.compression == ZSTD
    arrived: Compaction = decoded.compaction(comparator)
    assert arrived.level == level
    for part in ("inputs", "next_inputs", "grandparents"):
        assert sorted(numbers(getattr(arrived, part))) == sorted(numbers(getattr(compaction, part)))
    assert numbers(arrived.grandparents) == numbers(compaction.grandparents)
    assert arrived.input_size == compaction.input_size
    inputs = compaction.inputs + compaction.next_inputs
    begin = min(each.smallest for each in inputs)[:-8]
    end = max(each.largest for each in inputs)[:-8]
    for key in keys:
        if begin <= key <= end:
            for deeper in range(level + 2, NUM_LEVELS):
                assert arrived.version.overlaps(deeper, key, key) == version.overlaps(
                    deeper, key, key
                )
    # It has no table beside the compaction.
    total = sum(len(files) for files in arrived.version.levels)
    assert total < sum(len(files) for files in levels)


def test_progress_report_round_trip() -> None:
    report = Report(3, bytes_read=12345)
    decoded = Report.decode(report.encode())
    assert decoded == report
    assert not decoded.is_last


@pytest.mark.parametrize("files", [[], [file(1, b"a", b"\xff\n\x00"), file(2, b"", b"", 1 << 40)]])
def test_final_report_round_trip(files: list[FileMetaData]) -> None:
    worker = Counters()
    worker.tables_opened, worker.identity_check_reads, worker.gets = 4, 5, 6
    report = Report(3, files=files, opened=opened_by(worker))
    assert b"\n" not in report.encode()
    decoded = Report.decode(report.encode())
    assert decoded.is_last
    assert (decoded.files, decoded.opened) == (files, opened_by(worker))
    counters = Counters()
    decoded.add_to(counters)
    decoded.add_to(counters)
    assert (counters.tables_opened, counters.identity_check_reads, counters.gets) == (8, 10, 0)


def test_report_of_a_declined_job_round_trip() -> None:
    decoded = Report.decode(Report(3, declined="torn\nlog").encode())
    assert decoded.is_last
    assert (decoded.job, decoded.declined, decoded.error, decoded.files) == (
        3,
        "torn\nlog",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CorruptionError("bad block", "/db/000007.ldb", 123), CorruptionError),
        (CorruptionError("bad key"), CorruptionError),
        (UnsupportedCompressionError("unknown compression type 77"), UnsupportedCompressionError),
        (OSError(errno.ENOSPC, "No space left on device", "/db/x.tmp"), IOError),
        (OSError(errno.EACCES, "Permission denied", "/db/x.tmp"), type(IOError(errno.EACCES, ""))),
        (TimeoutError("without a number"), type(IOError(errno.ETIMEDOUT, ""))),
        (IOError(errno.EIO, "bad", None), IOError),
        (OSError("without a number"), IOError),
        (Error("background work failed"), Error),
        (ZeroDivisionError("oops"), Error),
    ],
)
def test_errors_keep_their_type_and_arguments(error: Exception, kind: type[Exception]) -> None:
    decoded = Report.decode(Report(3, error=error).encode())
    assert decoded.is_last
    assert type(decoded.error) is kind
    if isinstance(error, CorruptionError):
        assert str(decoded.error) == str(error)
    elif isinstance(error, OSError):
        assert isinstance(decoded.error, IOError)
        assert isinstance(decoded.error, type(error))
        assert (decoded.error.errno, decoded.error.filename) == (errno_of(error), error.filename)
        assert (error.strerror or "without a number") in str(decoded.error)
    else:
        assert str(error) in str(decoded.error)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b'{"job": 1, "files": "07"}', b"\xff"])
def test_a_malformed_report_is_refused(line: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, Error)):
        Report.decode(line)
