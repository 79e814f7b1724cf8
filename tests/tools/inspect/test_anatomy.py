from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from inspected import damage
from stores import put_numbered
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools.app import app
from lsmkv.tools.inspect.anatomy import WINDOW
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.plain import NotThereError, shown_bytes


def names(api: Api) -> list[str]:
    levels = api.answer("levels", {})["levels"]
    return [table["name"] for level in levels for table in level["tables"]]


def parts_of(api: Api, name: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = api.answer("table", {"name": name})["parts"]
    return parts


def test_the_parts_cover_the_file(api: Api) -> None:
    for name in names(api):
        table = api.answer("table", {"name": name})
        at = 0
        for part in table["parts"]:
            assert part["offset"] == at
            at += part["size"]
        assert at == table["size"]
        assert table["problems"] == []
        kinds = [part["kind"] for part in table["parts"]]
        assert kinds[-4:] == ["filter", "metaindex", "index", "footer"]
        assert set(kinds[:-4]) == {"data"}


def test_the_blocks_hold_every_entry(api: Api, made_store: Path) -> None:
    found: list[str] = []
    with lsmkv.DB(made_store, read_only=True) as db:
        bottom = max(db.tables(), key=lambda table: (table.size, table.level))
        in_memtable = set(db.written_keys())
        keys = sorted(set(db.written_keys([bottom])) - in_memtable)
    for part in parts_of(api, bottom.name):
        if part["kind"] == "data":
            block = api.answer("block", {"name": bottom.name, "offset": str(part["offset"])})
            found += [entry["key"]["text"] for entry in block["entries"]]
            assert block["entries"][0]["restart"]
            assert not block["more_entries"]
    assert len(keys) > 100
    hidden = {shown_bytes(key)["text"] for key in in_memtable}
    assert [key for key in found if key not in hidden] == [shown_bytes(k)["text"] for k in keys]


def test_the_pieces_cover_the_block(api: Api) -> None:
    name = names(api)[-1]
    for part in parts_of(api, name):
        window, pieces = 0, []
        while True:
            query = {"name": name, "offset": str(part["offset"]), "from": str(window)}
            block = api.answer("block", query)
            pieces += block["pieces"]
            if not block.get("more_pieces"):
                break
            window += WINDOW
        stored = [piece for piece in pieces if not piece["inside"]]
        assert sum(piece["bytes"] for piece in stored) == part["size"]
        assert all(piece["meaning"] for piece in pieces)
        plain = [piece for piece in pieces if piece["inside"]]
        if plain:
            assert sum(piece["bytes"] for piece in plain) == block["plain_size"]


def test_a_damaged_block_is_reported_where_it_is(path: Path) -> None:
    table = max(path.glob("*.ldb"), key=lambda one: one.stat().st_size)
    with contextlib.closing(Api(str(path))) as api:
        sound = [part for part in parts_of(api, table.name) if part["kind"] == "data"]
        damage(table, sound[1]["offset"] + 10)
        answer = api.answer("table", {"name": table.name})
        marked = [part["offset"] for part in answer["parts"] if "problem" in part]
        assert marked == [sound[1]["offset"]]
        assert [problem["offset"] for problem in answer["problems"]] == marked
        assert [problem["kind"] for problem in answer["problems"]] == ["data"]
        assert "the entries of this one are lost" in answer["problems"][0]["effect"]
        block = api.answer("block", {"name": table.name, "offset": str(marked[0])})
        assert "entries" not in block
        assert "problem" in block["pieces"][0]


@pytest.mark.parametrize("kept", [0, 10, 47, 500])
def test_a_table_without_a_footer_is_unknown_bytes(path: Path, kept: int) -> None:
    table = sorted(path.glob("*.ldb"))[0]
    table.write_bytes(table.read_bytes()[:kept])
    with contextlib.closing(Api(str(path))) as api:
        answer = api.answer("table", {"name": table.name})
        assert {part["kind"] for part in answer["parts"]} <= {"unknown"}
        assert sum(part["size"] for part in answer["parts"]) == kept
        assert len(answer["problems"]) == 1


def test_every_byte_may_be_wrong(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True, block_size=128, compression=None) as db:
        for number in range(30):
            db.put(b"key%02d" % number, b"value %d" % number)
        db.flush()
    table = next(path.glob("*.ldb"))
    whole = table.read_bytes()
    with contextlib.closing(Api(str(path))) as api:
        for at in range(0, len(whole), 3):
            table.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
            answer = api.answer("table", {"name": table.name})
            assert sum(part["size"] for part in answer["parts"]) == len(whole)
            for part in answer["parts"]:
                if part["kind"] != "unknown":
                    api.answer("block", {"name": table.name, "offset": str(part["offset"])})


def dumped_filters(path: Path) -> list[tuple[int, int, int, int, int]]:
    """The filters that have keys, as 'lsmkv dump' prints them: offset of the block, number, bits,
    bits set, probes."""
    found: list[tuple[int, int, int, int, int]] = []
    block = 0
    table = next(path.glob("*.ldb"))
    for line in CliRunner().invoke(app, ["dump", str(table)]).output.splitlines():
        if line.startswith("--- offset "):
            block = int(line.split()[2].rstrip(";"))
        match = re.match(r"  filter (\d+).*: ([\d,]+) bits, ([\d,]+) set, (\d+) probes", line)
        if match is not None:
            number, bits, ones, probes = (int(text.replace(",", "")) for text in match.groups())
            found.append((block, number, bits, ones, probes))
    return found


def test_what_is_not_there(api: Api) -> None:
    name = names(api)[0]
    with pytest.raises(NotThereError, match="no block at 1"):
        api.answer("block", {"name": name, "offset": "1"})
    with pytest.raises(NotThereError, match=r"999999.ldb does not exist"):
        api.answer("table", {"name": "999999.ldb"})


def test_a_filter_block_lists_its_filters_by_the_numbers_of_dump(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True, compression=None, filter_layout="both") as db:
        put_numbered(db, b"%08d", range(2000), b"value " * 5)
        db.flush()
    dumped = dumped_filters(path)
    with contextlib.closing(Api(str(path))) as api:
        name = names(api)[0]
        listed = []
        for part in parts_of(api, name):
            if part["kind"].endswith("filter"):
                query = {"name": name, "offset": str(part["offset"])}
                listed += api.answer("block", query)["filters"]
    assert [
        (one["block"], one["n"], one["bits"], one["ones"], one["probes"]) for one in listed
    ] == (dumped)
    assert len(listed) > 20
    assert {one["kind"] for one in listed} == {"block", "table"}
