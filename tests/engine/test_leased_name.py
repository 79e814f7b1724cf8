"""A lease with a name is plain data."""

from __future__ import annotations

import json

from lsmkv.engine.leased_name import LeasedName


def test_its_fields_are_what_json_has() -> None:
    lease = LeasedName("Lock 'a'", (7, None), (8,))
    assert json.loads(json.dumps(lease)) == ["Lock 'a'", [7, None], [8]]
    assert lease._asdict() == {"name": "Lock 'a'", "holders": (7, None), "waiters": (8,)}
