"""lsmkv.open and KeyValueMapping: dbm's flags, dict's behavior, shelve on top."""

from __future__ import annotations

import contextlib
import dbm
import gc
import os
import pathlib
import pickle
import shelve
import stat
import sys
import threading
from collections.abc import ItemsView, Iterator, KeysView, MutableMapping, ValuesView
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from others import Other
from threads import run_threads

import lsmkv
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.mapping import BATCH_BYTES, BATCH_OPERATIONS, KeyValueMapping
from lsmkv.shared.system.local import SHARES

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 64}


@pytest.fixture
def m() -> Iterator[KeyValueMapping]:
    with lsmkv.open(":memory:", "n") as mapping:
        yield mapping


def contents(path: pathlib.Path) -> dict[str, bytes]:
    """What is in a directory, links and folders aside."""
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


# Flags


def test_the_default_flag_reads_an_existing_store(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        lsmkv.open(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with lsmkv.open(tmp_path / "db", "c") as m:
        m["k"] = "v"
    with lsmkv.open(tmp_path / "db") as m:
        assert m.read_only
        assert m["k"] == b"v"


@pytest.mark.parametrize("flag", ["r", "w"])
def test_a_missing_store_is_an_error_that_dbm_users_catch(
    tmp_path: pathlib.Path, flag: Any
) -> None:
    for path in (tmp_path / "none", ":memory:"):
        with pytest.raises(dbm.error) as caught:  # type: ignore[call-overload]
            lsmkv.open(path, flag)
        assert isinstance(caught.value, lsmkv.NotFoundError)
    assert list(tmp_path.iterdir()) == []


def test_reading_refuses_every_write(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c") as m:
        m["k"] = "v"
    with lsmkv.open(tmp_path / "db", "r") as m:
        writes: list[Any] = [
            lambda: m.__setitem__("k", "w"),
            lambda: m.__delitem__("k"),
            lambda: m.__delitem__("none"),
            lambda: m.pop("k"),
            lambda: m.pop("none", None),
            m.popitem,
            lambda: m.setdefault("k", "w"),
            lambda: m.update(k="w"),
            m.clear,
            m.reorganize,
        ]
        for write in writes:
            with pytest.raises(lsmkv.ReadOnlyError):
                write()
        m.sync()  # harmless, as shelve expects
        assert repr(m) == f"<lsmkv.KeyValueMapping {str(tmp_path / 'db')!r} (read-only)>"
        assert dict(m.items()) == {b"k": b"v"}


def test_readers_leave_the_directory_alone_and_need_no_lock(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c") as m:
        m["k"] = "v"
        before = contents(tmp_path / "db")
        with lsmkv.open(tmp_path / "db") as one, lsmkv.open(tmp_path / "db") as two:
            assert one["k"] == two["k"] == b"v"
        assert contents(tmp_path / "db") == before


def test_w_and_c_keep_an_existing_store(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c") as m:
        m["a"] = "1"
    with lsmkv.open(tmp_path / "db", "w") as m:
        m["b"] = "2"
    with lsmkv.open(tmp_path / "db", "c") as m:
        assert list(iter(m)) == [b"a", b"b"]


@pytest.mark.parametrize("flag", ["", "rw", "x", "cf", None, 3, "R"])
def test_a_bad_flag_is_named(tmp_path: pathlib.Path, flag: Any) -> None:
    with pytest.raises(ValueError, match=f"not {flag!r}"):
        lsmkv.open(tmp_path / "db", flag)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["create_if_missing", "error_if_exists", "read_only"])
def test_the_flag_alone_decides(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        lsmkv.open(tmp_path / "db", "c", **{name: True})  # type: ignore[misc]


def test_options_are_those_of_db(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c", block_size=128) as m:
        assert m.db.options.block_size == 128
    with pytest.raises(ValueError, match="compression"):
        lsmkv.open(tmp_path / "other", "c", compression="lzw")  # type: ignore[arg-type]
    assert not (tmp_path / "other").exists()


def test_n_empties_a_store(tmp_path: pathlib.Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"old", b"1")
        db.flush()
        db.put(b"older", b"2")
    assert any(name.endswith(".ldb") for name in contents(tmp_path / "db"))
    with lsmkv.open(tmp_path / "db", "n") as m:
        assert not m
        assert not any(name.endswith(".ldb") for name in contents(tmp_path / "db"))
        m["new"] = "1"
    with lsmkv.open(tmp_path / "db") as m:
        assert list(iter(m)) == [b"new"]


def test_flag_n_makes_a_new_store(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        with lsmkv.open(tmp_path / name, "n") as m:
            assert len(m) == 0


@pytest.mark.parametrize("stranger", ["notes.txt", "OPTIONS-000007", ".hidden"])
@pytest.mark.parametrize("store", [True, False])
def test_n_touches_nothing_beside_a_foreign_file(
    tmp_path: pathlib.Path, stranger: str, store: bool
) -> None:
    path = tmp_path / "db"
    if store:
        with lsmkv.open(path, "c") as m:
            m["k"] = "v"
    else:
        path.mkdir()
        (path / "000001.log").write_bytes(b"somebody's")
    (path / stranger).write_bytes(b"mine")
    before = contents(path)
    with pytest.raises(lsmkv.Error, match=stranger):
        lsmkv.open(path, "n")
    assert contents(path) == before


def test_n_leaves_logs_that_belong_to_no_store(tmp_path: pathlib.Path) -> None:
    (tmp_path / "000001.log").write_bytes(b"somebody's")
    (tmp_path / "000002.log").write_bytes(b"somebody's")
    with pytest.raises(lsmkv.CorruptionError):
        lsmkv.open(tmp_path, "n")
    assert (tmp_path / "000001.log").read_bytes() == b"somebody's"
    assert (tmp_path / "000002.log").read_bytes() == b"somebody's"


@pytest.mark.parametrize("wrong", [{"blok_size": 1}, {"block_size": "large"}])
def test_n_with_wrong_options_keeps_the_old_store(
    tmp_path: pathlib.Path, wrong: dict[str, Any]
) -> None:
    """They are refused before the old store is removed."""
    with lsmkv.open(tmp_path / "db", "c") as mapping:
        mapping[b"k"] = b"v"
    with pytest.raises(TypeError):
        lsmkv.open(tmp_path / "db", "n", **wrong)
    with lsmkv.open(tmp_path / "db", "r") as mapping:
        assert dict(mapping) == {b"k": b"v"}


def test_n_leaves_a_store_that_is_in_use(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c") as m:
        m["k"] = "v"
        with pytest.raises(lsmkv.LockedError):
            lsmkv.open(tmp_path / "db", "n")
        assert m["k"] == b"v"


def test_n_follows_a_link_to_the_store(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c") as m:
        m["k"] = "v"
    (tmp_path / "link").symlink_to(tmp_path / "db")
    with lsmkv.open(tmp_path / "link", "n") as m:
        assert not m
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "db" / "CURRENT").exists()


def test_n_refuses_a_path_that_is_no_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(lsmkv.IOError):
        lsmkv.open(tmp_path / "file", "n")
    assert (tmp_path / "file").read_bytes() == b"mine"
    with pytest.raises(lsmkv.NotFoundError):
        lsmkv.open(tmp_path / "no" / "such", "n")


def test_flags_work_in_an_env_of_the_users() -> None:
    env = MemoryEnv()
    with pytest.raises(lsmkv.NotFoundError):
        lsmkv.open("db", "w", env=env)
    with lsmkv.open("db", "c", env=env) as m:
        m["k"] = "v"
    with lsmkv.open("db", "r", env=env) as m:
        assert m["k"] == b"v"
    with lsmkv.open("db", "n", env=env) as m:
        assert "k" not in m


@pytest.mark.parametrize(
    ("mode", "umask", "made"),
    [
        (0o666, 0o022, 0o755),
        (0o666, 0, 0o777),
        (0o640, 0, 0o750),
        (0o600, 0, 0o700),
        (0o400, 0, 0o700),
        (0o666, 0o077, 0o700),
    ],
)
def test_mode_is_for_a_new_directory(
    tmp_path: pathlib.Path, mode: int, umask: int, made: int
) -> None:
    before = os.umask(umask)
    try:
        lsmkv.open(tmp_path / "db", "c", mode).close()
        lsmkv.open(tmp_path / "db", "c", 0o600).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "db").stat().st_mode) == made


# A mapping

TEXT = st.one_of(st.binary(max_size=3), st.sampled_from("abcä"), st.just(bytearray(b"ba")))


def plain(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), TEXT, TEXT),
        st.tuples(st.just("del"), TEXT),
        st.tuples(st.just("pop"), TEXT),
        st.tuples(st.just("pop_default"), TEXT),
        st.tuples(st.just("popitem"), st.booleans()),
        st.tuples(st.just("setdefault"), TEXT, TEXT),
        st.tuples(st.just("update"), st.lists(st.tuples(TEXT, TEXT), max_size=5)),
        st.tuples(st.sampled_from(["clear", "reopen", "sync", "reorganize"])),
    ),
    max_size=30,
)


class Missing:
    pass


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except KeyError:
        return Missing


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_it_behaves_as_a_dict_of_sorted_keys(operations: list[tuple[Any, ...]]) -> None:
    env = MemoryEnv()
    m = lsmkv.open("db", "n", env=env, **TINY)
    model: dict[bytes, bytes] = {}
    for operation, *given_args in operations:
        args = [plain(arg) for arg in given_args if not isinstance(arg, (list, bool))]
        if operation == "set":
            m[given_args[0]] = given_args[1]
            model[args[0]] = args[1]
        elif operation == "del":
            found = outcome(m.__delitem__, given_args[0])
            assert found is outcome(model.__delitem__, args[0])
        elif operation == "pop":
            assert outcome(m.pop, given_args[0]) == outcome(model.pop, args[0])
        elif operation == "pop_default":
            assert m.pop(given_args[0], None) == model.pop(args[0], None)
        elif operation == "popitem":
            expected = Missing
            if model:
                key = (max if given_args[0] else min)(model)
                expected = (key, model.pop(key))  # type: ignore[assignment]
            assert outcome(m.popitem, given_args[0]) == expected
        elif operation == "setdefault":
            assert m.setdefault(*given_args) == model.setdefault(*args)
        elif operation == "update":
            m.update(given_args[0])
            model.update((plain(key), plain(value)) for key, value in given_args[0])
        elif operation == "clear":
            m.clear()
            model.clear()
        elif operation == "reopen":
            m.close()
            m = lsmkv.open("db", "w", env=env, **TINY)
        else:
            getattr(m, operation)()
    with m:
        same_as_model(m, dict(sorted(model.items())))


def same_as_model(m: KeyValueMapping, model: dict[bytes, bytes]) -> None:
    """Every question that a mapping and its views answer, asked of both."""
    assert m == model
    assert (m == {**model, b"more": b""}) is False
    assert len(m) == len(model) == len(m.keys()) == len(m.values()) == len(m.items())
    assert bool(m) is bool(m.keys()) is bool(m.values()) is bool(m.items()) is bool(model)
    assert list(m) == list(m.keys()) == list(model)
    assert list(reversed(m)) == list(reversed(m.keys())) == list(reversed(model))
    assert list(m.values()) == list(model.values())
    assert list(reversed(m.values())) == list(reversed(model.values()))
    assert list(m.items()) == list(model.items())
    assert list(reversed(m.items())) == list(reversed(model.items()))
    assert m.keys() == model.keys()
    assert m.items() == model.items()
    probes = {b"", b"a", b"b", b"\xff"}
    assert m.keys() & probes == model.keys() & probes
    assert m.keys() | probes == model.keys() | probes
    assert m.keys() - probes == model.keys() - probes
    assert m.keys().isdisjoint(probes) is model.keys().isdisjoint(probes)
    for key in [*probes, *model]:
        assert (key in m) is (key in m.keys()) is (key in model)  # noqa: SIM118
        assert m.get(key) == model.get(key)
        assert m.get(key, 7) == model.get(key, 7)
        assert (key in m.values()) is (key in model.values())
        assert ((key, b"a") in m.items()) is ((key, b"a") in model.items())
        assert outcome(m.__getitem__, key) == outcome(model.__getitem__, key)


def test_it_is_a_mutable_mapping_with_real_views(m: KeyValueMapping) -> None:
    assert isinstance(m, MutableMapping)
    assert isinstance(m.keys(), KeysView)
    assert isinstance(m.values(), ValuesView)
    assert isinstance(m.items(), ItemsView)
    keys = m.keys()
    m["later"] = "1"
    assert list(keys) == [b"later"]  # live
    assert repr(m) == "<lsmkv.KeyValueMapping ':memory:'>"


def test_str_is_taken_as_utf_8_everywhere(m: KeyValueMapping) -> None:
    m["ä"] = "ö"
    assert m["ä".encode()] == m["ä"] == m.get("ä") == "ö".encode()
    assert "ä" in m
    assert "ä" in m.keys()  # noqa: SIM118
    assert "ö" in m.values()
    assert ("ä", "ö") in m.items()
    assert ("ä", "x") not in m.items()
    assert m.setdefault("ä", "x") == m.pop("ä") == "ö".encode()
    assert m.setdefault("new") == b""
    del m["new"]
    with pytest.raises(KeyError) as caught:
        m["ä"]
    assert caught.value.args == ("ä",)


@pytest.mark.parametrize("wrong", [1, None, 1.5, ["k"]])
def test_other_types_are_refused(m: KeyValueMapping, wrong: Any) -> None:
    calls: list[Any] = [
        lambda: m[wrong],
        lambda: m.get(wrong),
        lambda: wrong in m,
        lambda: m.pop(wrong),
        lambda: m.__delitem__(wrong),
        lambda: m.__setitem__(wrong, b""),
        lambda: m.__setitem__(b"k", wrong),
        lambda: m.setdefault(b"k", wrong),
        lambda: m.update({b"k": wrong}),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="must be bytes"):
            call()
    assert not m
    m["k"] = "v"
    assert (b"k", wrong) not in m.items()
    assert wrong not in m.items()
    assert wrong not in m.values()


def test_iteration_sees_the_store_as_of_its_begin(m: KeyValueMapping) -> None:
    m.update({b"%03d" % i: b"old" for i in range(500)})
    seen = []
    for key, value in m.items():
        seen.append(value)
        del m[key]
        m[b"x" + key] = b"new"
    assert seen == [b"old"] * 500
    assert all(key.startswith(b"x") for key in m)


def test_update_takes_what_dict_update_takes(m: KeyValueMapping) -> None:
    class Keyed:
        def keys(self) -> list[str]:
            return ["k"]

        def __getitem__(self, key: str) -> str:
            return key + "eyed"

    m.update()
    m.update({"a": "1"}, b="2")
    m.update([(b"c", b"3")])
    m.update(Keyed())
    with lsmkv.open(":memory:", "n") as other:
        other["d"] = "4"
        m.update(other)
    m.update((key, value + b"!") for key, value in m.items())
    assert m == {b"a": b"1!", b"b": b"2!", b"c": b"3!", b"k": b"keyed!", b"d": b"4!"}
    with pytest.raises(ValueError, match="unpack"):
        m.update([("a", "b", "c")])  # type: ignore[list-item]


def test_update_and_clear_write_bounded_batches(m: KeyValueMapping) -> None:
    count = 2 * BATCH_OPERATIONS + 1
    before = m.db.stats()
    m.update((b"%06d" % i, b"") for i in range(count))
    assert m.db.stats().writes - before.writes == 3
    m.clear()
    assert m.db.stats().writes - before.writes == 6
    assert not m
    m.update((b"%d" % i, bytes(BATCH_BYTES // 2)) for i in range(5))
    assert m.db.stats().writes - before.writes == 9
    before = m.db.stats()
    m.update(())
    m["k"] = "v"
    assert m.db.stats().writes - before.writes == 1


def test_an_update_that_fails_leaves_whole_batches(m: KeyValueMapping) -> None:
    def pairs() -> Iterator[tuple[bytes, bytes]]:
        for i in range(BATCH_OPERATIONS + 10):
            yield b"%06d" % i, b""
        raise RuntimeError("the source gave up")

    with pytest.raises(RuntimeError, match="gave up"):
        m.update(pairs())
    assert len(m) == BATCH_OPERATIONS


def test_bool_does_not_count() -> None:
    with lsmkv.open(":memory:", "n", **TINY) as m:
        m.update({b"%06d" % i: b"x" * 50 for i in range(1000)})
        m.reorganize()
        before = m.db.stats()
        assert m
        few = m.db.stats().blocks_read - before.blocks_read
        assert len(m) == 1000
        many = m.db.stats().blocks_read - before.blocks_read - few
        assert few * 10 < many


def test_a_miss_reads_no_block() -> None:
    with lsmkv.open(":memory:", "n", bloom_filter_bits=40) as m:
        m.update({b"%06d" % i: b"x" * 50 for i in range(1000)})
        m.db.flush()
        before = m.db.stats().blocks_read
        assert not any(b"%06d?" % i in m for i in range(100))
        assert m.db.stats().blocks_read == before


def test_reorganize_gives_space_back(tmp_path: pathlib.Path) -> None:
    with lsmkv.open(tmp_path / "db", "c", compression=None) as m:
        m.update({b"%06d" % i: os.urandom(100) for i in range(2000)})
        m.db.flush()
        m.clear()
        m.reorganize()
        assert not any(name.endswith(".ldb") for name in contents(tmp_path / "db"))


def test_closed(m: KeyValueMapping) -> None:
    m["k"] = "v"
    items = iter(m.items())
    assert not m.closed
    m.close()
    m.close()
    assert m.closed
    assert repr(m) == "<lsmkv.KeyValueMapping ':memory:' (closed)>"
    m.sync()
    calls: list[Any] = [
        lambda: m["k"],
        lambda: m.get("k"),
        lambda: "k" in m,
        lambda: len(m),
        lambda: bool(m),
        lambda: list(m.keys()),
        lambda: next(items),
        lambda: m.__setitem__("k", "w"),
        lambda: m.__delitem__("k"),
        lambda: m.update(k="w"),
        m.popitem,
        m.clear,
        m.reorganize,
    ]
    for call in calls:
        with pytest.raises(lsmkv.ClosedError):
            call()


def test_with_closes_when_the_block_raises(tmp_path: pathlib.Path) -> None:
    m = lsmkv.open(tmp_path / "db", "c")
    m["k"] = "v"
    with pytest.raises(ZeroDivisionError), m:
        _ = 1 / 0
    assert m.closed
    with lsmkv.open(tmp_path / "db") as again:
        assert again["k"] == b"v"


def test_sync_asks_the_disk() -> None:
    with lsmkv.open(":memory:", "n") as m:
        m["k"] = "v"
        before = m.db.stats().log_syncs
        m.sync()
        assert m.db.stats().log_syncs == before + 1


# Threads


def in_threads(count: int, work: Any) -> None:
    """``work(number)`` in that many threads, which are switched as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert run_threads(*[partial(work, number) for number in range(count)]) == []
    finally:
        sys.setswitchinterval(interval)


def test_each_key_is_set_removed_and_popped_by_one_thread(m: KeyValueMapping) -> None:
    keys = [b"%04d" % i for i in range(200)]
    everybody = threading.Barrier(6)
    for remove in (m.pop, m.__delitem__):
        setters: list[bytes] = []
        removers: list[bytes] = []

        def play(
            number: int, remove: Any = remove, setters: Any = setters, removers: Any = removers
        ) -> None:
            name = b"%d" % number
            for key in keys:
                if m.setdefault(key, name) == name:
                    setters.append(key)
            everybody.wait()
            for key in keys:
                with contextlib.suppress(KeyError):
                    remove(key)
                    removers.append(key)

        in_threads(6, play)
        assert sorted(setters) == keys
        assert sorted(removers) == keys
        assert not m


def test_each_item_is_popped_once(m: KeyValueMapping) -> None:
    m.update({b"%04d" % i: b"" for i in range(400)})
    taken: list[bytes] = []

    def take(number: int) -> None:
        with contextlib.suppress(KeyError):
            while True:
                taken.append(m.popitem(number % 2 == 0)[0])

    in_threads(6, take)
    assert sorted(taken) == [b"%04d" % i for i in range(400)]
    assert not m


@pytest.mark.skipif(not SHARES, reason="stores are shared on Linux and macOS")
def test_processes_that_share_a_store_never_take_one_pair_twice(tmp_path: pathlib.Path) -> None:
    """Nor set one default, nor remove one key; and a mapping may be sent to another process."""
    path = tmp_path / "db"
    keys = [b"%03d" % number for number in range(60)]
    with lsmkv.open(path, "c", shared=True) as m, contextlib.ExitStack() as ending:
        others = [Other(path) for _ in range(3)]
        for one in others:
            ending.callback(one.kill)
            one(f"import pickle; m = pickle.loads({pickle.dumps(m)!r})")
            one("from contextlib import suppress")
            one("def there(call):\n    with suppress(KeyError):\n        return call()")

        def everywhere(code: str) -> list[Any]:
            for one in others:
                one.ask(code)
            found = eval(code, {"m": m, "there": there})
            for one in others:
                found += one.answer()
            return sorted(each for each in found if each is not None)

        number = "[" + ", ".join(map(repr, keys)) + "]"
        set_by = everywhere(
            f"[k for k in {number} if m.setdefault(k, v := bytes(id(m) % 251)) is v]"
        )
        assert set_by == keys
        assert everywhere(f"[there(lambda: m.pop(k) and k) for k in {number}]") == keys
        m.update(dict.fromkeys(keys, b"v"))
        removed = f"[there(lambda: m.__delitem__(k) or k) for k in {number}]"
        assert everywhere(removed) == keys
        m.update(dict.fromkeys(keys, b"v"))
        taken = everywhere("[pair[0] for pair in iter(lambda: there(m.popitem), None)]")
        assert taken == keys
        assert not m


def test_a_nested_pop_of_a_missing_key_writes_nothing(m: KeyValueMapping) -> None:
    """A call by a signal handler, in the middle of another one that holds the store's lock."""
    m["k"] = "v"
    before = m.db.sequence
    with m.db._store.lock.guard:  # type: ignore[union-attr]
        assert m.pop("none", None) is None
        assert m.setdefault("k", "w") == b"v"
    m.db.get(b"k")
    assert m.db.sequence == before
    with m.db._store.lock.nested, m.db._store.lock.guard:  # type: ignore[union-attr]
        assert m.pop("k") == b"v"
    assert "k" not in m


def there(call: Any) -> Any:
    """What it returns, or None if it raises KeyError."""
    with contextlib.suppress(KeyError):
        return call()
    return None


# shelve


@pytest.mark.parametrize("writeback", [False, True])
def test_shelve_round_trip(tmp_path: pathlib.Path, writeback: bool) -> None:
    things = {"a": [1, 2], "ä": {"deep": ("x", None)}, "": 3.5}
    with shelve.Shelf(lsmkv.open(tmp_path / "db", "c"), writeback=writeback) as shelf:  # type: ignore[arg-type]
        shelf.update(things)
        shelf["a"].append(3)
        shelf.sync()
        assert len(shelf) == 3
        assert dict(shelf) == {**things, "a": [1, 2, 3] if writeback else [1, 2]}
    with shelve.Shelf(lsmkv.open(tmp_path / "db")) as shelf:  # type: ignore[arg-type]
        assert shelf["a"] == ([1, 2, 3] if writeback else [1, 2])
        assert shelf["ä"] == things["ä"]
        assert "none" not in shelf
        assert shelf.get("none", 1) == 1
        assert sorted(shelf) == ["", "a", "ä"]
        with pytest.raises(KeyError):
            shelf["none"]
        with pytest.raises(lsmkv.ReadOnlyError):
            shelf["b"] = 1
    with shelve.Shelf(lsmkv.open(tmp_path / "db", "w"), writeback=writeback) as shelf:  # type: ignore[arg-type]
        assert shelf.pop("ä") == things["ä"]
        del shelf["a"]
        assert shelf.popitem() == ("", 3.5)
        assert not list(shelf)
        shelf["z"] = 1
        shelf.clear()
        assert len(shelf) == 0


def test_a_shelf_closes_its_store(tmp_path: pathlib.Path) -> None:
    shelf = shelve.Shelf(lsmkv.open(tmp_path / "db", "c"))  # type: ignore[arg-type]
    shelf["a"] = 1
    shelf.close()
    with lsmkv.open(tmp_path / "db", "w"):  # not locked any more
        pass


def test_a_shelf_may_outlive_its_store() -> None:
    with lsmkv.open(":memory:", "n") as m:
        shelf = shelve.Shelf(m)  # type: ignore[arg-type]
        shelf["a"] = 1
    del shelf  # which syncs: a warning here would be an error
    gc.collect()


def test_a_missing_store_says_which_flag_makes_one(tmp_path: pathlib.Path) -> None:
    for flag in ("r", "w"):
        with pytest.raises(
            lsmkv.NotFoundError, match=f"flag='{flag}' does not create one: flag='c' does"
        ):
            lsmkv.open(tmp_path / "none", flag)  # type: ignore[arg-type]


def test_a_new_store_waits_for_the_lock_of_the_old_one(tmp_path: pathlib.Path) -> None:
    old = lsmkv.open(tmp_path / "db", "c")
    closing = threading.Timer(0.2, old.close)
    closing.start()
    with lsmkv.open(tmp_path / "db", "n", lock_timeout=60) as new:
        assert old.closed
        assert not new
    closing.join()
