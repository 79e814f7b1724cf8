"""Sorts that can be ended, and that leave what C leaves."""

from __future__ import annotations

import importlib.resources
import random

import pytest

lua51 = pytest.importorskip("lupa.lua51")

SOURCE = importlib.resources.files("lsmkv.server.scripts").joinpath("lua/tables.lua").read_bytes()
CALL = """
local sort, order, values = ...
local orders = {
  function(one, other) return one % 7 < other % 7 end,
  function(one, other) return true end,
  function(one, other) return one % 3 ~= other % 5 end,
  rawequal, false,
}
local sorted = {}
for at = 1, #values do sorted[at] = values[at] end
local ok, problem = pcall(sort, sorted, orders[order] or nil)
local found = { tostring(ok), ok and "" or string.gsub(problem, "^[^ ]*:%d+: ", "") }
for at = 0, #values + 1 do found[at + 3] = tostring(sorted[at]) end
return table.concat(found, " ")
"""


def test_a_table_is_sorted_as_in_c() -> None:
    """Entries that are equal land in the same places, and orders that are none fail alike."""
    lua = lua51.LuaRuntime(encoding=None)
    never_in_c = SOURCE.replace(b"CHEAP = 4e6", b"CHEAP = -1")
    assert never_in_c != SOURCE
    bounded = lua.compile(never_in_c, name="=library")(lua.eval(b"function() end"), {}, b"")
    call, in_c = lua.compile(CALL.encode(), name="=call"), lua.globals()[b"table"][b"sort"]
    rng = random.Random(64)
    for _ in range(2000):
        values = [rng.choice([rng.randrange(1000), 0.5]) for _ in range(rng.randrange(40))]
        order, table = rng.randrange(1, 6), lua.table_from(values)
        assert call(bounded[b"sort"], order, table) == call(in_c, order, table), values
