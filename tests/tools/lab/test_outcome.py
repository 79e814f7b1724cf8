from __future__ import annotations

import json

from lsmkv.filter_lab import Replay, SettingReads, TableReads
from lsmkv.tools.lab.heat import Heat, TableHeat
from lsmkv.tools.lab.outcome import Outcome
from lsmkv.tools.lab.verdict import RULE, judge


def test_it_is_plain_data() -> None:
    reads = [TableReads(0, 12, 900, 900, 100, 800, 9, 800, 800, 10)]
    replay = Replay(1000, 3, 499, 1234, [SettingReads("as stored", reads)])
    heat = Heat(1000, 0, [TableHeat(0, 12, 800, 0)])
    found = Outcome("zoo", "a list", 1, replay, heat, judge(replay)).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["path"] == "zoo"
    assert found["verdict"]["rule"] == RULE
