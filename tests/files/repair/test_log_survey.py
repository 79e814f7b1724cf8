"""What a survey says of logs: torn, damaged, and continued in the next one."""

from __future__ import annotations

from pathlib import Path

from stores import pairs_in, put_numbered

from lsmkv import DB
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.log import frame
from lsmkv.files.repair.report import DAMAGED, REMARKABLE, SOUND
from lsmkv.files.repair.survey import survey_db


def test_reused_logs(tmp_path: Path) -> None:
    path = tmp_path / "db"
    for turn in range(3):
        with DB(path, create_if_missing=True, reuse_logs=True) as db:
            db.put(b"%d" % turn, b"v")
        assert survey_db(path).severity == SOUND
    (log,) = path.glob("*.log")
    with log.open("ab") as file:
        file.write(b"\1\2\3")  # a write cut short, and LevelDB going on behind it
    assert survey_db(path).severity == REMARKABLE


def test_the_state_of_a_log_that_was_not_opened_yet(tmp_path: Path) -> None:
    """As an opening would judge it: damage is damage, and a torn tail is none."""
    with DB(tmp_path, create_if_missing=True) as db:
        put_numbered(db, b"%d", range(10), b"value")
    (log,) = tmp_path.glob("*.log")
    whole = log.read_bytes()
    size = len(whole) // 10
    flipped = bytearray(whole)
    flipped[3 * size + 15] ^= 3
    for content, severity in (
        (whole, SOUND),
        (whole[:-3], REMARKABLE),
        (whole[:-3] + bytes(40_000), REMARKABLE),
        (bytes(flipped), DAMAGED),
        (whole[:-1] + b"?", DAMAGED),  # the last record, with no sign that it is torn
    ):
        log.write_bytes(content)
        assert survey_db(tmp_path).severity == severity


def test_damage_before_a_log_that_goes_on_is_a_torn_record(tmp_path: Path) -> None:
    """The sequence goes on in the next log: an opening, also a paranoid one, finds nothing lost."""
    with DB(tmp_path, create_if_missing=True) as db:
        put_numbered(db, b"%d", range(3), b"value")
    (log,) = tmp_path.glob("*.log")
    whole = log.read_bytes()
    size = len(whole) // 3
    bad = whole[size : 2 * size - 1] + b"?"
    log.write_bytes(whole[:size] + bad)
    again = frame(encode_batch(2, [(b"1", b"again")]), 0)
    (tmp_path / "000009.log").write_bytes(again)
    found = survey_db(tmp_path)
    assert found.severity == REMARKABLE
    assert "no write is missing there" in found.logs[0].remarks[0]
    assert pairs_in(tmp_path, paranoid_checks=True, read_only=False) == {
        b"0": b"value",
        b"1": b"again",
    }


def test_half_a_log_of_zeros_is_remarked_on(tmp_path: Path) -> None:
    with DB(tmp_path, create_if_missing=True) as db:
        put_numbered(db, b"%d", range(500), b"value" * 9)
    (log,) = tmp_path.glob("*.log")
    whole = log.read_bytes()
    half = len(whole) // 2
    log.write_bytes(whole[:half] + bytes(len(whole) - half))
    found = survey_db(tmp_path)
    (surveyed,) = found.logs
    assert found.severity == REMARKABLE
    assert surveyed.zeros >= len(whole) - half
    (remark,) = [one for one in surveyed.remarks if one.startswith("zeros from ")]
    assert "the writes that were there are lost" in remark


def test_zeros_before_a_log_that_goes_on_are_nothing(tmp_path: Path) -> None:
    with DB(tmp_path, create_if_missing=True) as db:
        put_numbered(db, b"%d", range(3), b"value")
    (log,) = tmp_path.glob("*.log")
    log.write_bytes(log.read_bytes() + bytes(5000))
    assert survey_db(tmp_path).severity == REMARKABLE
    later = tmp_path / "000009.log"
    later.write_bytes(frame(encode_batch(4, [(b"3", b"more")]), 0))
    found = survey_db(tmp_path)
    assert found.severity == SOUND
    assert [one.zeros for one in found.logs] == [0, 0]
    later.write_bytes(frame(encode_batch(5, [(b"3", b"more")]), 0))
    assert survey_db(tmp_path).severity == DAMAGED
