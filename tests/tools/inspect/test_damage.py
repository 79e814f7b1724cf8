"""What the page says of damage is what the engine does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspected import damage, request

import lsmkv
from lsmkv.engine.filter.prefix import DelimitedPrefix
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.server import application

KEYS = [b"%08d" % number for number in range(3000)]
FIRST, LAST = KEYS[0], KEYS[-1]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A store of one table."""
    return one_table(tmp_path / "db")


def one_table(path: Path, **options: Any) -> Path:
    with lsmkv.DB(path, create_if_missing=True, **options) as db:
        for key in KEYS:
            db.put(key, b"value of " + key)
        db.flush()
    return path


def hurt(path: Path, kind: str, number: int = 0) -> tuple[str, int]:
    """Damage one part of the table: the table's name, and the part's offset."""
    with contextlib.closing(Api(str(path))) as api:
        name = next(path.glob("*.ldb")).name
        parts = api.answer("table", {"name": name})["parts"]
    part = [one for one in parts if one["kind"] == kind][number]
    at = 44 if kind == "footer" else 1  # in the footer, its magic number
    damage(path / name, part["offset"] + at)
    return name, part["offset"]


def reason_of_get(path: Path, key: bytes) -> str:
    with contextlib.closing(Api(str(path))) as api:
        answer = request(application(api), "/api/get", query=f"hex={key.hex()}")
        assert answer.status == 409
        return str(answer.json["error"])


def reads(path: Path, **options: Any) -> Callable[[bytes], bytes | None]:
    def read(key: bytes) -> bytes | None:
        with lsmkv.DB(path, read_only=True, **options) as db:
            return db.get(key)

    return read


@pytest.mark.parametrize("kind", ["filter", "metaindex"])
def test_a_damaged_filter(sound: Path, kind: str) -> None:
    name, offset = hurt(sound, kind)
    reason = reason_of_get(sound, FIRST)
    assert reason.startswith(f"{name} is damaged: its {kind} block")
    assert f"at {offset:,} (block checksum mismatch)" in reason
    assert "A Get that reaches this table, and a scan over it, raise CorruptionError" in reason
    with pytest.raises(lsmkv.CorruptionError):
        reads(sound)(LAST)
    assert "lsmkv.DB(DIR, bloom_filter_bits=0) reads it without filters" in reason
    assert reads(sound, bloom_filter_bits=0)(LAST) == b"value of " + LAST
    assert "'lsmkv repair' writes the table again, with new filters" in reason
    lsmkv.repair_db(sound)
    assert reads(sound)(LAST) == b"value of " + LAST
    with contextlib.closing(Api(str(sound))) as api:
        table = api.answer("levels", {})["levels"]
        repaired = next(one["name"] for level in table for one in level["tables"])
        assert api.answer("filter", {"name": repaired})["filters"] > 0


def test_a_damaged_filter_of_a_whole_table(tmp_path: Path) -> None:
    sound = one_table(tmp_path / "db", filter_layout="table")
    name, _ = hurt(sound, "full filter")
    assert reason_of_get(sound, FIRST).startswith(f"{name} is damaged: its whole-table filter, at")
    assert reads(sound, bloom_filter_bits=0)(LAST) == b"value of " + LAST
    lsmkv.repair_db(sound)
    assert reads(sound)(LAST) == b"value of " + LAST


def test_a_damaged_filter_of_prefixes(tmp_path: Path) -> None:
    extractor = DelimitedPrefix(b"9")
    sound = one_table(tmp_path / "db", prefix_extractor=extractor)
    name, offset = hurt(sound, "prefix filter")
    with contextlib.closing(Api(str(sound))) as api:
        message = api.answer("filter", {"name": name})["damage"][0]
    assert message.startswith(f"{name} is damaged: its filter of prefixes, at {offset:,}")
    assert "opened with this prefix extractor raises CorruptionError" in message
    with pytest.raises(lsmkv.CorruptionError):
        reads(sound, prefix_extractor=extractor)(LAST)
    assert "without the extractor, the table is read as before" in message
    assert reads(sound)(LAST) == b"value of " + LAST
    lsmkv.repair_db(sound)
    assert reads(sound, prefix_extractor=extractor)(LAST) == b"value of " + LAST


@pytest.mark.parametrize("kind", ["index", "footer"])
def test_what_every_read_needs(sound: Path, kind: str) -> None:
    name, _ = hurt(sound, kind)
    reason = reason_of_get(sound, FIRST)
    assert reason.startswith(f"{name} is damaged: its {kind}")
    with pytest.raises(lsmkv.CorruptionError):
        reads(sound, bloom_filter_bits=0)(LAST)
    assert "finds the data blocks without it" in reason
    lsmkv.repair_db(sound)
    assert reads(sound)(LAST) == b"value of " + LAST


def test_a_damaged_data_block(sound: Path) -> None:
    name, _ = hurt(sound, "data")
    reason = reason_of_get(sound, FIRST)
    assert reason.startswith(f"{name} is damaged: its data block, at 0")
    assert "keys in other blocks are read as before" in reason
    assert reads(sound)(LAST) == b"value of " + LAST
    assert "the entries of this one are lost" in reason
    lsmkv.repair_db(sound)
    assert reads(sound)(FIRST) is None
    assert reads(sound)(LAST) == b"value of " + LAST


@pytest.mark.parametrize("kind", ["filter", "metaindex", "index", "footer", "data"])
def test_every_view_says_it(sound: Path, kind: str) -> None:
    name, offset = hurt(sound, kind)
    reason = reason_of_get(sound, FIRST)
    with contextlib.closing(Api(str(sound))) as api:
        problems = api.answer("table", {"name": name})["problems"]
        assert {(one["kind"], one["offset"]) for one in problems} == {(kind, offset)}
        assert problems[0]["effect"] in reason
        api.source.start_check()
        api.source.finish_check()
        found = api.answer("levels", {})["check"]["files"][0]
        assert (found["name"], found["effects"]) == (name, [problems[0]["effect"]])
        api.act("replay", {"gets": "10"})
        api.replays.finish()
        assert problems[0]["effect"] in api.answer("replay", {})["error"]
        answer = request(application(api), "/api/filter", query=f"name={name}").json
        said = answer.get("error") or " ".join([*answer["damage"], answer["keys_problem"]])
        assert problems[0]["effect"] in said


def test_damage_elsewhere_names_its_file(sound: Path) -> None:
    (sound / "CURRENT").write_bytes(b"nothing")
    with contextlib.closing(Api(str(sound))) as api:
        assert "CURRENT" in api.answer("levels", {})["error"]
