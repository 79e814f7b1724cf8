"""Lab 9: version edits, the levels that result from them, and the order of a flush's writes."""

from __future__ import annotations

import functools
import os
from types import ModuleType

import lsmkv
from lsmkv.course.failure import (
    CheckFailure,
    require,
    require_bytes,
    require_equal,
    require_refused,
    shown,
)
from lsmkv.course.given import BLOCK_SIZE
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.edits import (
    APPLIED,
    COMPARATOR,
    DELETED_FILE,
    EDITS,
    LAST_SEQUENCE,
    LAYOUT,
    LOG_NUMBER,
    NAME_OF_ORDER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREV_LOG_NUMBER,
    SNAPSHOT,
    Field,
    Levels,
    applied,
    encoded,
    manifests,
    meaning,
    no_levels,
    parts,
    replayed,
    some_fields,
)
from lsmkv.course.labs.flushing import flush_with, flushing, naming, work
from lsmkv.course.labs.formats import LEVELS, frame, manifest_in_force, version_of_store, write
from lsmkv.course.labs.power_cuts import PATH
from lsmkv.course.labs.temporary_stores import (
    require_content,
    require_content_by_leveldb,
    scratch,
)
from lsmkv.files import Manifest, make_name
from lsmkv.testing import RecordingEnv
from lsmkv.tools.text import count


def encoding(code: ModuleType) -> str:
    """Edits, byte for byte."""
    edits = [*EDITS, *(some_fields(seed) for seed in range(40))]
    for fields in edits:
        names = ", ".join(LAYOUT[field[0]][0] for field in fields) or "no field"
        require_bytes(
            code.encode_edit(list(fields)),
            encoded(fields),
            f"the record of an edit with {names}",
            functools.partial(meaning, fields),
            "Each field begins with its tag, a varint. Numbers and levels are varints. Keys and"
            " the comparator's name follow their lengths.",
        )
    return f"{len(edits)} edits"


def decoding(code: ModuleType) -> str:
    """Check the decoded fields, in their order."""
    edits = [*EDITS, *(some_fields(seed) for seed in range(40, 80))]
    for fields in edits:
        record = encoded(fields)
        call = f"decode_edit({shown(record)})"
        got = code.decode_edit(record)
        require(isinstance(got, list), f"{call} must return a list, not {shown(got)}.")
        hint = "A field is a tuple: its tag, then its content in the record's order."
        for number, (one, other) in enumerate(zip(got, fields, strict=False), 1):
            require_equal(one, other, f"field {number} of {call}, a {LAYOUT[other[0]][0]},", hint)
        require(
            len(got) == len(fields),
            f"{call} must return {count(len(fields), 'field')}, but your code returned {len(got)}."
            "\nRead fields until the record ends.",
        )
    return f"{len(edits)} edits"


def refusing(code: ModuleType) -> str:
    """Check that invalid records raise ValueError."""
    record = encoded(EDITS[-1])
    ends = [at for at, _, description in parts(EDITS[-1]) if description.startswith("tag")]
    cases = [
        (b"\x08\x00", "tag 8 is invalid: LevelDB used it once, and refuses it today"),
        (record + b"\x0a\x00", "tag 10 is invalid: a reader cannot know how long its content is"),
        (b"\x00", "tag 0 is invalid"),
        (encoded([(DELETED_FILE, 7, 5)]), "there is no level 7: they go from 0 to 6"),
        (b"\x05\x02\x03abc", "an internal key has at least the eight bytes of its tag"),
    ]
    cases += [
        (record[:cut], f"the record is cut after {cut} bytes, within a field")
        for cut in range(len(record))
        if cut not in ends
    ]
    for data, why in cases:
        require_refused(
            functools.partial(code.decode_edit, data), f"decode_edit({shown(data)})", why
        )
    return f"{len(cases)} invalid records"


def applying(code: ModuleType) -> str:
    """The levels after each of several edits."""
    levels = no_levels()
    for number, (fields, hint) in enumerate(APPLIED, 1):
        before = [list(files) for files in levels]
        expected = applied(levels, fields)
        got = code.apply_edit(levels, list(fields))
        description = "; ".join(in_words(field) for field in fields)
        require_levels(got, expected, f"after edit {number} ({description})", hint)
        require(
            levels == before,
            f"apply_edit changed the levels that it was given, at edit {number}.\nA reader that"
            " began before the edit continues with the old levels: make new lists.",
        )
        levels = expected
    return f"{len(APPLIED)} edits"


def in_words(field: Field) -> str:
    """Describe a field of an edit that is applied."""
    name = LAYOUT[field[0]][0]
    if field[0] not in (DELETED_FILE, NEW_FILE):
        return f"{name} {field[1]}"
    return f"{name}: table {field[2]} on level {field[1]}"


def require_levels(got: object, expected: Levels, when: str, hint: str) -> None:
    """Fail unless the levels are these."""
    require(
        isinstance(got, list)
        and len(got) == LEVELS
        and all(isinstance(files, list) for files in got),
        f"The levels {when} must be a list of {LEVELS} lists, not {shown(got)}.",
    )
    assert isinstance(got, list)
    for level, (one, other) in enumerate(zip(got, expected, strict=True)):
        if one == other:
            continue
        numbers = [file[0] for file in other]
        mine = [file[0] if isinstance(file, tuple) and file else file for file in one]
        if mine == numbers:
            at = next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
            raise CheckFailure(
                f"Level {level} {when} must have the table {other[at]!r}, but your code has"
                f" {one[at]!r}."
            )
        raise CheckFailure(
            f"Level {level} {when} must have the tables {numbers}, but your code has {mine}.\n"
            f"{hint}"
        )


def require_replayed(code: ModuleType, records: list[bytes], what: str, hint: str) -> Levels:
    """Fail unless the student's replay of the records agrees with the engine's; returns the
    levels."""
    counters, levels = replayed(records)
    got = code.replay_edits(records)
    require(
        isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], dict),
        f"replay_edits must return a dict and the levels, not {shown(got)}.",
    )
    for tag in sorted(counters.keys() | got[0].keys()):
        one, other = got[0].get(tag, "nothing"), counters.get(tag, "nothing")
        name = LAYOUT[tag][0] if tag in LAYOUT else "no such tag"
        require(
            one == other,
            f"{what}: for tag {tag} ({name}) the state must have {other!r}, but yours has {one!r}."
            "\nThe last edit that has a field decides. Fields of files are not counters.",
        )
    require_levels(got[1], levels, f"of {what[0].lower()}{what[1:]}", hint)
    return levels


def replaying(code: ModuleType) -> str:
    """The state after the records of a MANIFEST."""
    hint = "Begin with seven empty levels, and apply each edit to the result of the previous one."
    for edits in manifests():
        records = [encoded(fields) for fields in edits]
        require_replayed(code, records, f"A MANIFEST of {count(len(records), 'record')}", hint)
    for missing in (LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE):
        fields = [(tag, 7) for tag in (LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE)]
        records = [encoded(SNAPSHOT), encoded([one for one in fields if one[0] != missing])]
        name = LAYOUT[missing][0]
        require_refused(
            functools.partial(code.replay_edits, records),
            f"replay_edits({shown(records)})",
            f"no record has a {name} (tag {missing})",
        )
    return f"{len(manifests())} MANIFESTs, and 3 that lack a counter"


def in_the_engine(code: ModuleType) -> str:
    """Check the student's reading and writing of a MANIFEST, and a flush on a real disk."""
    with scratch() as parent:
        store = os.path.join(parent, "store")
        content = fill(store)
        number, levels = replay_of(code, store)
        tables = sum(map(len, levels))
        rewrite(code, store, levels)
        what = "A store with your MANIFEST"
        asked: dict[bytes, bytes | None] = {**content, b"absent": None}
        require_content(store, asked, what)
        by_leveldb = require_content_by_leveldb(store, asked, what)
        flushed = os.path.join(parent, "flushed")
        RecordingEnv(work().env).state("0, killed").write_to(flushed)
        flushed += PATH
        with lsmkv.LocalEnv().open_directory(flushed) as directory:
            flush_with(code, directory)
        require_content(flushed, dict(work().content), "A store that you flushed")
        require_content_by_leveldb(flushed, dict(work().content), "A store that you flushed")
    return (
        f"you read {number} records of a store's MANIFEST; yours, with {tables} tables on"
        f" {sum(map(bool, levels))} levels, opens in lsmkv{by_leveldb}; so does your flushed store"
    )


def fill(store: str) -> dict[bytes, bytes]:
    """Make a store with tables on several levels, and a MANIFEST of several edits."""
    content: dict[bytes, bytes] = {}
    with lsmkv.DB(store, create_if_missing=True) as db:
        for turn in range(5):  # too few tables for a compaction to begin by itself
            for number in range(turn, 200, turn + 2):
                key = b"%03d" % number
                content[key] = b"turn %d" % turn
                db.put(key, content[key])
            db.flush()
            if turn == 2:
                db.compact_range()
    return content


def replay_of(code: ModuleType, store: str) -> tuple[int, Levels]:
    """Have the student replay a store's MANIFEST; returns the number of records, and the levels."""
    with (
        lsmkv.LocalEnv().open_directory(store) as directory,
        Manifest(directory.open(manifest_in_force(directory))) as opened,
    ):
        records = [record.payload for record in opened.records()]
    for record in records:
        fields = code.decode_edit(record)
        require_bytes(
            code.encode_edit(fields),
            record,
            "a record of a store's MANIFEST, decoded and encoded again by your code",
            lambda at: f"byte {at} of the record",
        )
    hint = "The checks above test such edits one by one."
    return len(records), require_replayed(code, records, "The MANIFEST of a store", hint)


def rewrite(code: ModuleType, store: str, levels: Levels) -> None:
    """Replace a store's MANIFEST by the student's."""
    with lsmkv.LocalEnv().open_directory(store) as directory:
        old = manifest_in_force(directory)
        state = version_of_store(directory)
        number = state.next_file_number + 5
        records: list[list[Field]] = [[(COMPARATOR, NAME_OF_ORDER)], []]
        for level, files in enumerate(levels):
            records[0] += [(NEW_FILE, level, *one) for one in files]
        records[1] += [(LOG_NUMBER, state.log_number), (PREV_LOG_NUMBER, 0)]
        records[1] += [(NEXT_FILE_NUMBER, number + 1), (LAST_SEQUENCE, state.last_sequence)]
        content = b""
        for fields in records:
            record = code.encode_edit(fields)
            require(isinstance(record, bytes), f"encode_edit must return bytes, not {record!r}.")
            content += frame(record, len(content) % BLOCK_SIZE)
        write(directory, make_name("manifest", number), content)
        code.set_current(directory, number)
        directory.remove(old)


def drawing() -> str:
    """The edit of a flush, part by part."""
    fields = EDITS[-1]
    data = encoded(fields)
    lines = ["the edit of a flush", "", f"{'offset':>6}  {'bytes':<34}  what"]
    for start, size, description in parts(fields):
        lines.append(f"{start:6}  {data[start : start + size].hex(' '):<34}  {description}")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=9,
    slug="manifest",
    title="Flush and MANIFEST",
    functions=(
        "encode_edit",
        "decode_edit",
        "apply_edit",
        "replay_edits",
        "set_current",
        "flush",
    ),
    checks=(
        Check("the bytes of an edit", encoding),
        Check("reading an edit", decoding),
        Check("records that are no edits", refusing),
        Check("applying edits", applying),
        Check("replaying a MANIFEST", replaying),
        Check("CURRENT", naming),
        Check("a flush and power cuts", flushing),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
