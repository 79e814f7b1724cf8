"""Tables that are not where the MANIFEST states are put back, or left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from live_copies import STORE, Files
from stores import pairs_in
from stores_in_memory import Store, env_of, foreign, only, repaired, tables, without

import lsmkv
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import make_options
from lsmkv.files.repair.placing import can_be_stated
from lsmkv.files.repair.plan import KEEP, LEAVE_OUT, REWRITE
from lsmkv.files.repair.report import DAMAGED, TableSurvey
from lsmkv.repair import survey_db


@pytest.fixture
def store() -> Iterator[Store]:
    """A store with an old table below, two newer ones over it, and a deletion in the newest."""
    made = Store()
    made.fill(range(500), b"old")
    made.db.compact_range()
    made.fill(range(0, 500, 2), b"new")
    made.db.flush()
    for number in range(0, 500, 5):
        made.db.delete(b"%03d" % number)
    made.db.flush()
    with made.db:
        yield made


def renamed(files: Files, names: dict[str, str]) -> Files:
    """The files under other names."""
    return {names.get(name, name): content for name, content in files.items()}


FOREIGN = foreign(".ldb", range(100, 200))


def test_two_tables_that_were_exchanged_are_put_back(store: Store) -> None:
    files = store.files()
    first, second, third = tables(files)
    for one, other in ((first, second), (first, third), (second, third)):
        found, plan = repaired(renamed(files, {one: other, other: one}))
        assert found == dict(store.db)
        assert (plan.lost_bytes, plan.stale) == (0, 0)
        assert f"it is table {one.removesuffix('.ldb')} of MANIFEST" in str(plan)
        assert f"it is table {other.removesuffix('.ldb')} of MANIFEST" in str(plan)


@pytest.mark.parametrize("seed", range(5))
def test_tables_in_any_order_and_under_any_number_are_put_back(store: Store, seed: int) -> None:
    store.db.compact_range()
    for turn in range(4):
        store.fill(range(turn, 500, 7), b"%d" % turn)
        store.db.flush()
    files = store.files()
    names = tables(files)
    randomly = random.Random(seed)
    new = randomly.sample([*names, "000777.ldb", "000778.ldb"], len(names))
    found, plan = repaired(renamed(files, dict(zip(names, new, strict=True))))
    assert found == dict(store.db)
    assert (plan.lost_bytes, plan.stale) == (0, 0)
    made = lsmkv.repair_db(STORE, env=(env := env_of(files)))  # nothing to do
    assert not made.needed
    assert pairs_in(STORE, env=env, read_only=False) == dict(store.db)


def test_a_repair_in_place_of_exchanged_tables_keeps_the_files_in_lost(store: Store) -> None:
    files = store.files()
    first, second, _ = tables(files)
    env = env_of(renamed(files, {first: second, second: first}))
    lsmkv.repair_db(STORE, env=env)
    assert pairs_in(STORE, env=env, read_only=False) == dict(store.db)
    with env.open_directory(STORE) as directory, directory.subdirectory("lost") as lost:
        assert {first, second} <= set(lost.names())


def test_a_survey_names_exchanged_tables_as_damage(store: Store) -> None:
    files = store.files()
    first, second, third = tables(files)
    found = survey_db(STORE, env=env_of(renamed(files, {first: second, second: first})))
    severities = {table.name: table.severity for table in found.tables}
    assert severities == {first: DAMAGED, second: DAMAGED, third: 0}
    again = survey_db(STORE, env=env_of(files))
    assert again.severity == 0


def test_a_table_of_another_store_is_left_out_and_reported(store: Store) -> None:
    files = store.files()
    names = tables(files)
    old = {b"%03d" % number: b"old" for number in range(500)}
    new = old | {b"%03d" % number: b"new" for number in range(0, 500, 2)}
    moments = [dict(store.db), new, old]
    for name in names:
        found, plan = repaired(files | {name: FOREIGN})
        assert b"foreign" not in found.values()
        assert any(found.items() <= moment.items() for moment in moments)
        (foreign,) = [table for table in plan.tables if table.survey.stray]
        assert foreign.action == LEAVE_OUT
        assert foreign.survey.name == name
        assert "100 entries, writes 1 to 100, keys from '100' to '199'" in foreign.reason
        assert plan.lost_bytes > 0


def test_a_table_of_another_store_under_a_free_number_is_left_out(store: Store) -> None:
    found, plan = repaired(store.files() | {"000500.ldb": FOREIGN})
    assert found == dict(store.db)
    assert [table.action for table in plan.tables].count(LEAVE_OUT) == 1


def test_the_old_table_of_a_rewritten_one_is_made_again_of_its_sources(store: Store) -> None:
    before = store.files()
    store.db.compact_range()
    (made,) = set(tables(store.files())) - set(tables(before))
    copied = without(store.files(), ".ldb") | only(before, ".ldb")
    found, _ = repaired(copied | {made: FOREIGN})
    assert found == dict(store.db)


def test_tables_none_of_which_is_as_the_manifest_states_are_merged_by_sequence(
    store: Store,
) -> None:
    files = store.files()
    other = Store()
    other.db.put(b"x", b"1")
    for _ in range(3):
        other.db.put(b"x", b"1")
        other.db.flush()
    strange = without(other.files(), ".ldb")
    other_tables = tables(other.files())
    other.db.close()
    strange |= {name: files[ours] for name, ours in zip(other_tables, tables(files), strict=True)}
    found, plan = repaired(strange)
    assert found == dict(store.db)
    assert not plan.by_levels
    assert "none of its 3 tables is as it states" in str(plan)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 3]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("change", "actions"),
    [
        (lambda content: flipped(content, len(content) // 2), {REWRITE}),
        (lambda content: flipped(content, 3), {REWRITE, LEAVE_OUT}),
        (lambda content: flipped(content, len(content) - 60), {REWRITE}),
        (lambda content: content[: len(content) // 2], {REWRITE}),
        (lambda content: content + bytes(100), {REWRITE}),
    ],
    ids=["middle", "start", "end", "cut", "longer"],
)
def test_a_damaged_table_is_still_the_one_that_the_manifest_states(
    store: Store, change: Callable[[bytes], bytes], actions: set[str]
) -> None:
    files = store.files()
    name = tables(files)[0]
    _, plan = repaired(files | {name: change(files[name])})
    (table,) = [one for one in plan.tables if one.survey.name == name]
    assert table.action in actions
    assert not table.survey.stray
    assert {one.action for one in plan.tables if one is not table} <= {KEEP, REWRITE}


def key(user_key: bytes, sequence: int) -> bytes:
    return user_key + ((sequence << 8) | 1).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("smallest", "largest", "size", "reads_first", "reads_last", "expected"),
    [
        (key(b"b", 1), key(b"y", 2), 100, True, True, True),
        (key(b"b", 2), key(b"y", 2), 100, True, True, False),
        (key(b"b", 1), key(b"y", 3), 100, True, True, False),
        (key(b"b", 1), key(b"m", 9), 50, True, True, True),  # cut short
        (key(b"c", 1), key(b"m", 9), 50, True, True, False),
        (key(b"c", 1), key(b"y", 2), 100, False, True, True),
        (key(b"a", 1), key(b"y", 2), 100, False, True, False),
        (key(b"c", 1), key(b"z", 2), 100, False, False, False),
        (key(b"c", 1), key(b"x", 2), 100, False, False, True),
    ],
)
def test_what_can_be_read_of_a_table_shows_whether_it_is_the_one_that_can_be_stated(
    smallest: bytes, largest: bytes, size: int, reads_first: bool, reads_last: bool, expected: bool
) -> None:
    table = TableSurvey("000005.ldb", 5, size, 1)
    table._stated = FileMetaData(5, 100, key(b"b", 1), key(b"y", 2))
    table.entries = 7
    table.smallest, table.largest = smallest, largest
    table.reads_first, table.reads_last = reads_first, reads_last
    comparator = InternalKeyComparator(make_options().comparator)
    assert can_be_stated(table, comparator) == expected
