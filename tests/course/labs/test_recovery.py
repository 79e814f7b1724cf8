"""Lab 10: planted mistakes are named."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import ModuleType

import pytest
from labs import Mistake, Planted, assert_caught, mistakes, solution

from lsmkv.course.labs.committing import failing
from lsmkv.course.labs.recovery import LAB
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.batch import decode_batch
from lsmkv.engine.format.filenames import FileType, manifest_name, parse_filename, set_current
from lsmkv.engine.format.log import BLOCK_SIZE, FIRST, FULL, HEADER_SIZE, LAST
from lsmkv.engine.util.checksum import typed_crc32c

Replayed = tuple[dict[bytes, bytes | None], int]
Logs = Sequence[Sequence[bytes | None]]


# Mistakes in the choice of logs.


def sorted_by_name(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    return sorted(solution(LAB).logs_to_replay(names, log_number, prev_log_number))


def newer_ones_alone(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    logs: list[str] = solution(LAB).logs_to_replay(names, log_number + 1, prev_log_number)
    return logs


def no_previous_log(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    logs: list[str] = solution(LAB).logs_to_replay(names, log_number, 0)
    return logs


def no_log_zero(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    logs: list[str] = solution(LAB).logs_to_replay(names, log_number, prev_log_number)
    return [name for name in logs if name != "000000.log"]


def the_newest_alone(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    logs: list[str] = solution(LAB).logs_to_replay(names, log_number, prev_log_number)
    return logs[-1:]


def every_log(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    logs: list[str] = solution(LAB).logs_to_replay(names, 0, 0)
    return logs


def all_that_have_a_number(
    names: Sequence[str], log_number: int, prev_log_number: int
) -> list[str]:
    found = {int(match[0]): name for name in names if (match := re.search(r"\d+", name))}
    return [found[one] for one in sorted(found) if one >= log_number or one == prev_log_number]


# Mistakes with torn tails.


def good_fragment(log: bytes, at: int, checks: bool = True, crosses: bool = False) -> int:
    """The type of the fragment that begins there, 0 if there is none."""
    if at + HEADER_SIZE > len(log):
        return 0
    kind = log[at + 6]
    data = log[at + HEADER_SIZE : at + HEADER_SIZE + int.from_bytes(log[at + 4 : at + 6], "little")]
    whole = at + HEADER_SIZE + int.from_bytes(log[at + 4 : at + 6], "little")
    limit = len(log) if crosses else min(len(log), (at // BLOCK_SIZE + 1) * BLOCK_SIZE)
    if not FULL <= kind <= LAST or whole > limit:
        return 0
    right = log[at : at + 4] == typed_crc32c(kind, data).to_bytes(4, "little")
    return kind if right or not checks else 0


def torn_by(places: Callable[[bytes, int], Sequence[int]], *kinds: int) -> Callable[..., bool]:
    return lambda log, offset: all(
        good_fragment(log, at) not in kinds for at in places(log, offset)
    )


def right_behind(log: bytes, offset: int) -> list[int]:
    length = int.from_bytes(log[offset + 4 : offset + 6], "little")
    return [offset + HEADER_SIZE + length]


def in_this_block(log: bytes, offset: int) -> Sequence[int]:
    return range(offset + 1, (offset // BLOCK_SIZE + 1) * BLOCK_SIZE)


def anywhere(log: bytes, offset: int) -> Sequence[int]:
    return range(offset + 1, len(log))


def starts_of_blocks(log: bytes, offset: int) -> Sequence[int]:
    return range((offset // BLOCK_SIZE + 1) * BLOCK_SIZE, len(log), BLOCK_SIZE)


def without_checksum(log: bytes, offset: int) -> bool:
    return all(good_fragment(log, at, checks=False) == 0 for at in anywhere(log, offset))


def from_the_offset_on(log: bytes, offset: int) -> Sequence[int]:
    return range(offset, len(log))


def short_of_an_empty_record(log: bytes, offset: int) -> Sequence[int]:
    return range(offset + 1, len(log) - HEADER_SIZE)


def across_blocks(log: bytes, offset: int) -> bool:
    kinds = [good_fragment(log, at, crosses=True) for at in anywhere(log, offset)]
    return FULL not in kinds and FIRST not in kinds


def runs_past_the_end(log: bytes, offset: int) -> bool:
    return right_behind(log, offset)[0] > len(log) or len(log) < offset + HEADER_SIZE


# Mistakes in replaying.


def replay_by(
    logs: Logs,
    last_sequence: int,
    stops: bool = False,
    skips: bool = False,
    refuses: bool = False,
    forgets: bool = False,
    judges_bad_beginnings: bool = True,
    per_log: bool = False,
) -> Replayed:
    entries: dict[bytes, bytes | None] = {}
    expected: int | None = None
    bad = False
    for log in logs:
        expected = None if per_log else expected
        for piece in log:
            if piece is None:
                bad = True
                if refuses:
                    raise ValueError("bad bytes")
                continue
            sequence, operations = decode_batch(piece)
            gap = sequence != expected if expected is not None else bad and judges_bad_beginnings
            if gap and stops:
                return entries, max(last_sequence, (expected or 1) - 1)
            if gap and not skips:
                raise ValueError("a gap")
            for key, value in operations:
                if value is None and forgets:
                    entries.pop(key, None)
                else:
                    entries[key] = value
            expected = sequence + len(operations)
    return entries, max(last_sequence, (expected or 1) - 1)


def last_start(logs: Logs, last_sequence: int) -> Replayed:
    entries, last = replay_by(logs, last_sequence)
    batches = [piece for log in logs for piece in log if piece is not None]
    return entries, max(last_sequence, decode_batch(batches[-1])[0]) if batches else last


def not_below_the_manifest(logs: Logs, last_sequence: int) -> Replayed:
    return replay_by(logs, 0)


def first_value_wins(logs: Logs, last_sequence: int) -> Replayed:
    entries, last = replay_by(logs, last_sequence)
    for piece in (piece for log in reversed(logs) for piece in reversed(log)):
        if piece is not None:
            entries |= dict(reversed(decode_batch(piece)[1]))
    return entries, last


# Mistakes about what is obsolete.


def obsolete_by(
    wrong: Callable[[int, FileType, Collection[int], int], bool],
) -> Callable[..., list[str]]:
    """Like the reference, and whatever else ``wrong`` says."""

    def obsolete(
        names: Sequence[str], tables: Collection[int], log: int, prev: int, manifest: int
    ) -> list[str]:
        found: list[str] = solution(LAB).obsolete_files(names, tables, log, prev, manifest)
        for name in names:
            parsed = parse_filename(name)
            if parsed is not None and name not in found and wrong(*parsed, tables, log):
                found.append(name)
        return found

    return obsolete


def all_but_what_is_needed(
    names: Sequence[str], tables: Collection[int], log: int, prev: int, manifest: int
) -> list[str]:
    needed = {*solution(LAB).logs_to_replay(names, log, prev), manifest_name(manifest), "CURRENT"}
    suffixes = "ldb", "sst"
    needed |= {f"{number:06d}.{suffix}" for number in tables for suffix in suffixes}
    return [name for name in names if name not in needed]


def without_kind(kind: FileType) -> Callable[..., list[str]]:
    def obsolete(*arguments: object) -> list[str]:
        found: list[str] = solution(LAB).obsolete_files(*arguments)
        return [name for name in found if (parse_filename(name) or (0, kind))[1] is not kind]

    return obsolete


# Mistakes in a commit.


def commit_by(
    directory: Directory,
    files: Mapping[str, bytes],
    manifest_number: int,
    obsolete: Sequence[str],
    unsynced: str = "none",
    syncs_directory: bool = True,
    removes: str = "last",
    makes: str = "",
    catches: bool = False,
) -> None:
    """A commit that is wrong in one way."""

    def remove() -> None:
        for name in obsolete:
            directory.remove(name)

    try:
        if removes == "first":
            remove()
        for name, data in files.items():
            if makes and not name.startswith(makes):
                continue
            with directory.create(name) as file:
                file.append(data)
                if unsynced not in name:
                    file.sync()
        if syncs_directory:
            directory.sync()
        if removes == "before CURRENT":
            remove()
        set_current(directory, manifest_number)
    except OSError:
        if not catches:
            raise
    if removes == "last":
        remove()


def ignores_a_failed_sync(
    directory: Directory, files: Mapping[str, bytes], manifest_number: int, obsolete: Sequence[str]
) -> None:
    for name, data in files.items():
        with directory.create(name) as file:
            file.append(data)
            try:
                file.sync()
            except OSError:
                file.sync()
    directory.sync()
    set_current(directory, manifest_number)
    for name in obsolete:
        directory.remove(name)


def stops_removing(
    directory: Directory, files: Mapping[str, bytes], manifest_number: int, obsolete: Sequence[str]
) -> None:
    solution(LAB).commit(directory, files, manifest_number, ())
    with contextlib.suppress(OSError):
        for name in obsolete:
            directory.remove(name)


def goes_on_removing(
    directory: Directory, files: Mapping[str, bytes], manifest_number: int, obsolete: Sequence[str]
) -> None:
    """No mistake: so does the engine."""
    solution(LAB).commit(directory, files, manifest_number, ())
    for name in obsolete:
        with contextlib.suppress(OSError):
            directory.remove(name)
    directory.sync()


def commit(**wrong: object) -> Callable[..., None]:
    return functools.partial(commit_by, **wrong)  # type: ignore[arg-type]


LOGS, TORN, REPLAY = "the logs that count", "torn tails", "replaying logs"
OBSOLETE, CUTS, DISK = "obsolete files", "a commit and power cuts", "a failing disk"
ENGINE = "in the real engine"
BY = functools.partial

MISTAKES: Planted = {
    ("logs_to_replay", LOGS): [
        ("by name", sorted_by_name, "that of the numbers, not that of"),
        ("newer ones alone", newer_ones_alone, "with that number counts"),
        ("no previous log", no_previous_log, "previous log number"),
        ("no log 0", no_log_zero, "even if that is 0"),
        ("the newest alone", the_newest_alone, "the oldest first"),
        ("every log", every_log, "Logs below the log number are in"),
        ("all numbers", all_that_have_a_number, "Logs end in .log"),
    ],
    ("is_torn_tail", TORN): [
        ("always torn", lambda *_: True, "a record begins after"),
        ("never torn", lambda *_: False, "nothing can follow"),
        (
            "right behind alone",
            torn_by(right_behind, FULL, FIRST),
            "Its length may be what is wrong",
        ),
        ("by its length", runs_past_the_end, "no record begins after"),
        ("no checksum", without_checksum, "no record begins after"),
        ("any fragment", torn_by(anywhere, 1, 2, 3, 4), "without its FIRST"),
        ("FULL alone", torn_by(anywhere, FULL), "begins with a FIRST fragment"),
        ("this block alone", torn_by(in_this_block, FULL, FIRST), "may be in another block"),
        ("blocks alone", torn_by(starts_of_blocks, FULL, FIRST), "try each byte after the offset"),
        ("at the offset, too", torn_by(from_the_offset_on, FULL, FIRST), "begin at offset + 1"),
        ("across blocks", across_blocks, "must end within its block"),
        (
            "no empty record",
            torn_by(short_of_an_empty_record, FULL, FIRST),
            "may be the last 7 bytes",
        ),
    ],
    ("replay", REPLAY): [
        ("stops at a gap", BY(replay_by, stops=True), "your replay does not"),
        ("skips a gap", BY(replay_by, skips=True), "102 is missing"),
        ("refuses a tail", BY(replay_by, refuses=True), "a torn tail"),
        ("no tombstones", BY(replay_by, forgets=True), "a deletion hides"),
        ("log by log", BY(replay_by, per_log=True), "The next log continues"),
        ("a bad beginning", BY(replay_by, judges_bad_beginnings=False), "before the first batch"),
        ("the last start", last_start, "the last sequence is"),
        ("below", not_below_the_manifest, "never below that of the MANIFEST"),
        ("first value", first_value_wins, "The last operation on a key"),
    ],
    ("obsolete_files", OBSOLETE): [
        (
            "the table in use",
            obsolete_by(lambda number, kind, tables, log: kind is FileType.TABLE),
            "No version names table 5",
        ),
        (
            "the log in use",
            obsolete_by(lambda number, kind, tables, log: kind is FileType.LOG and number <= log),
            "Logs from 9 on are needed",
        ),
        (
            "the previous log",
            obsolete_by(lambda number, kind, tables, log: kind is FileType.LOG and number < log),
            "The previous log is also needed",
        ),
        (
            "log 0",
            obsolete_by(lambda number, kind, tables, log: kind is FileType.LOG and number == 0),
            "A previous log number of 0 is that of 000000.log",
        ),
        (
            "all other MANIFESTs",
            obsolete_by(
                lambda number, kind, tables, log: kind is FileType.MANIFEST and number != 7
            ),
            "only lower ones go",
        ),
        ("all others", all_but_what_is_needed, "No version has these files"),
        ("no temporary files", without_kind(FileType.TEMPORARY), "is left from a failed change"),
        ("MANIFESTs kept", without_kind(FileType.MANIFEST), "One MANIFEST is current"),
    ],
    ("commit", CUTS): [
        ("nothing done", lambda *_: None, "commit has not made"),
        ("no table", commit(makes="MANIFEST"), "commit has not made 000101.ldb"),
        ("nothing removed", commit(removes="no"), "commit has not removed"),
        (
            "table not synced",
            commit(unsynced=".ldb"),
            "ldb is not synced before CURRENT names the new MANIFEST",
        ),
        (
            "MANIFEST not synced",
            commit(unsynced="MANIFEST"),
            "a store whose MANIFEST is empty or torn",
        ),
        (
            "directory not synced",
            commit(syncs_directory=False),
            "The directory is not synced between the making of",
        ),
        (
            "removed first",
            commit(removes="first"),
            "is removed before the new MANIFEST takes effect",
        ),
        (
            "removed before CURRENT",
            commit(removes="before CURRENT"),
            "Your commit does not survive a kill of its process",
        ),
    ],
    ("commit", DISK): [
        ("goes on", commit(catches=True), "your commit continues, and removes"),
        ("as if all were well", commit(catches=True, removes="no"), "returns as if it had not"),
        ("a second sync", ignores_a_failed_sync, "When the sync of 0001"),
        ("stops removing", stops_removing, "so you may continue, but with all the"),
        (
            "table not synced, on a failing disk",
            commit(unsynced=".ldb"),
            "What was not synced before is gone",
        ),
    ],
    ("is_torn_tail", ENGINE): [
        ("always torn in a store", lambda *_: True, "finds records after"),
    ],
    ("replay", ENGINE): [
        ("no tombstones in a store", BY(replay_by, forgets=True), "deletion"),
        (
            "a bad beginning in a store",
            BY(replay_by, judges_bad_beginnings=False),
            "Bad bytes before the first batch",
        ),
    ],
    ("logs_to_replay", ENGINE): [
        ("the newest alone in a store", the_newest_alone, "lsmkv"),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_a_file_that_cannot_be_removed_may_stay() -> None:
    code = ModuleType("student")
    vars(code)["commit"] = goes_on_removing
    assert failing(code).endswith("calls, each of which failed once")


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
