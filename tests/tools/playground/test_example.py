from __future__ import annotations

import base64

import lsmkv
from lsmkv.tools.playground.dropped import DroppedEnv
from lsmkv.tools.playground.example import example


class File:
    modified = 0.0

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)

    def read(self, offset: int, length: int) -> bytes:
        return self.content[offset : offset + length]


def test_it_has_tables_and_a_log() -> None:
    made = example({})
    files = {one["name"]: File(base64.b64decode(one["base64"])) for one in made["files"]}
    with lsmkv.DB("place", read_only=True, env=DroppedEnv(files)) as db:
        assert len(list(db)) == 2500
        assert len(db.tables()) >= 3
        assert db.stats().memtable_bytes > 0
