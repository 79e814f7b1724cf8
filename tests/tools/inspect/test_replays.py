from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import lsm
from inspected import WORDS, damage, levelled_store

import lsmkv
from lsmkv.filter_lab import DEFAULT_SETTINGS, SETTINGS_WITH_OWN, parse_setting
from lsmkv.tools.inspect import replays as module
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.plain import Plain
from lsmkv.tools.inspect.replays import Question, Replays
from lsmkv.tools.lab.own import OwnPolicy

SETTINGS = "none block:4 table:15 block:10,10,5 block64:7.5 table64:auto:10 fuse"
NODE = shutil.which("node")


@pytest.fixture
def replays(made_store: Path) -> Iterator[Replays]:
    with contextlib.closing(Replays(str(made_store))) as replays:
        yield replays


def done(replays: Replays, question: Question, **bounds: int) -> Plain:
    replays.start(question, **bounds)
    replays.finish()
    state = replays.state()
    assert not state["running"]
    return state


def test_it_is_what_filter_lab_prints(made_store: Path) -> None:
    with contextlib.closing(Api(str(made_store))) as api:
        body = {"settings": SETTINGS, "gets": "500", "seed": "7"}
        assert api.act("replay", body)["question"]["gets"] == 500
        api.replays.finish()
        state = api.answer("replay", {})
    arguments = ("--settings", SETTINGS, "--gets", "500", "--seed", "7", "--json")
    assert state["outcome"] == json.loads(lsm("filter-lab", made_store, *arguments).out)
    assert (state["error"], state["cut"]) == ("", "")


def test_a_policy_of_ones_own(made_store: Path) -> None:
    with contextlib.closing(Replays(str(made_store), own=lsmkv.BloomFilterPolicy)) as replays:
        assert replays.state()["question"]["settings"] == SETTINGS_WITH_OWN
        outcome = done(replays, Question("block:6 own:6", gets=300))["outcome"]
        _, leveldbs, own = outcome["settings"]
        assert own == leveldbs | {"setting": "own:6"}
    failing = OwnPolicy(lambda keys: b"", lambda key, data: False)
    with contextlib.closing(Replays(str(made_store), own=lambda bits: failing)) as replays:
        assert "a false negative" in done(replays, Question("own:6", gets=10))["error"]
    with (
        contextlib.closing(Replays(str(made_store))) as replays,
        pytest.raises(ValueError, match="own:6 needs a custom policy"),
    ):
        replays.start(Question("own:6"))


def test_the_gets_of_a_trace(made_store: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with lsmkv.DB(made_store, read_only=True, trace=trace) as db:
        for word in WORDS[:30]:
            db.get(word)
    with contextlib.closing(Replays(str(made_store), str(trace))) as replays:
        assert replays.state()["question"]["traced"]  # what the page offers first
        outcome = done(replays, Question("block:10", traced=True))["outcome"]
    arguments = ("--trace", trace, "--settings", "block:10", "--json")
    assert outcome == json.loads(lsm("filter-lab", made_store, *arguments).out)
    assert outcome["gets"] == 30


def test_too_many_gets_are_cut(replays: Replays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GETS", 40)
    state = done(replays, Question("block:10", gets=41))
    assert state["outcome"]["gets"] == 40
    assert state["cut"].startswith("Limited: 41 Gets were requested, but only 40 are replayed")
    assert done(replays, Question("block:10", gets=40))["cut"] == ""


def test_a_large_store_is_left_to_the_command(replays: Replays) -> None:
    state = done(replays, Question(), most_bytes=1000)
    assert state["outcome"] is None
    assert "at most 1,000 B are replayed here: 'lsmkv filter-lab DIR'" in state["error"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question("block:x"), "no filter setting"),
        (Question("bloom64:10"), "write none, block:10, table:15, block64:10, table64:10 or fuse"),
        (Question(""), "at least one filter setting"),
        (Question(" ".join(f"block:{bits}" for bits in range(17))), "at most 16 filter settings"),
        (Question(gets=0), "at least 1 Get"),
        (Question(traced=True), "no trace was named"),
    ],
)
def test_wrong_questions_begin_nothing(replays: Replays, question: Question, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replays.start(question)
    assert not replays.state()["running"]


def test_another_takes_the_place_of_one_that_runs(replays: Replays) -> None:
    replays.start(Question(gets=10_000))
    state = done(replays, Question("none", gets=10, seed=2))
    assert (state["outcome"]["gets"], state["outcome"]["seed"]) == (10, 2)
    replays.start(Question(gets=10_000))
    replays.close()
    assert not replays.state()["running"]
    assert replays.state()["outcome"] is None


def test_errors_are_reported(tmp_path: Path) -> None:
    path = levelled_store(tmp_path / "db")
    table = sorted(path.glob("*.ldb"))[0]
    damage(table, 10)
    with contextlib.closing(Replays(str(path))) as replays:
        assert table.name in done(replays, Question("none", gets=10))["error"]
    empty = tmp_path / "empty"
    lsmkv.DB(empty, create_if_missing=True).close()
    with contextlib.closing(Replays(str(empty))) as replays:
        assert "the store is empty" in done(replays, Question())["error"]


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_the_page_takes_the_texts_that_are_settings() -> None:
    right = [*DEFAULT_SETTINGS.split(), *SETTINGS.split(), "block64:auto:9.5", "table64:10,0,8.5"]
    right += [*SETTINGS_WITH_OWN.split(), "own:auto:10"]
    wrong = [
        "block",
        "block:",
        "fuse:10",
        "none64",
        "block65:10",
        "own64:10",
        "table:1.",
        "auto:10",
        "block:,1",
    ]
    page = Path(module.__file__).parent / "static" / "replay.js"
    named = re.findall(r"(?m)^const (?:BITS|SETTING) = .*;$", page.read_text(encoding="utf-8"))
    assert len(named) == 2
    # A browser compiles the pattern of a field so.
    program = [
        *named,
        "const pattern = new RegExp(`^(?:${SETTING})$`, 'v');",
        "console.log(JSON.stringify(JSON.parse(process.argv[1]).map((one) => pattern.test(one))));",
    ]
    assert NODE is not None
    command = [NODE, "-e", "\n".join(program), json.dumps(right + wrong)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(done.stdout) == [True] * len(right) + [False] * len(wrong)
    for text in right:
        parse_setting(text)
    for text in wrong:
        with pytest.raises(ValueError, match="no filter setting"):
            parse_setting(text)
