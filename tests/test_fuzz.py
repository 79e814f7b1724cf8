"""The fuzzer's targets, on their seeds and on these mutated at random: ``make fuzz`` does more."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus import seeds
from judge import Finding
from targets import TARGETS, fuzz_batch

from lsmkv import Error

ARGUMENTS = Path(__file__).parent / "fuzz" / "arguments.py"
LUA_SCRIPTS = ARGUMENTS.with_name("lua_scripts.py")
SEEDS = seeds()
MUTATIONS = {"members": 40}
"""Where there are fewer of a seed: each needs a store on disk and five connections."""


def mutations(data: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    """The bytes with one or a few changed, cut out, doubled or put in."""
    for number in range(count):
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(changed) + 1)
            stop = at + rng.randrange(1, 9)
            if number % 2 and at < len(changed):
                changed[at] = rng.choice([0, 1, 2, 3, 4, 5, 8, 127, 128, 255, rng.randrange(256)])
                continue
            changed[at:stop] = rng.choice(
                [b"", rng.randbytes(rng.randrange(1, 9)), changed[at:stop] * 2, b"\xff" * 9]
            )
        yield bytes(changed)


@pytest.mark.parametrize("name", TARGETS)
def test_no_finding(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", logger="lsmkv")
    rng = random.Random(name)
    assert SEEDS[name]
    for data in SEEDS[name]:
        TARGETS[name](data)
        for changed in mutations(data, rng, MUTATIONS.get(name, 150)):
            TARGETS[name](changed)


def test_a_judge_can_say_no(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(record: bytes) -> tuple[int, list[tuple[bytes, bytes | None]]]:
        if len(record) < 12:
            raise Error
        return int.from_bytes(record[:8], "little") + 1, []

    monkeypatch.setattr("targets.decode_batch", wrong)
    with pytest.raises(Finding):
        fuzz_batch(SEEDS["batch"][0])


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_hostile_arguments_end_nothing_and_harm_no_store(seed: int) -> None:
    calls = 150 if seed == 1 else 1500
    command = [sys.executable, str(ARGUMENTS), "--calls", str(calls), "--seed", str(seed)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"calls {calls:,}" in done.stdout
    assert "findings: 0" in done.stdout


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_hostile_scripts_end_nothing_and_stop_nobody(seed: int) -> None:
    pytest.importorskip("lupa")
    scripts = 60 if seed == 1 else 1500
    command = [sys.executable, str(LUA_SCRIPTS), "--scripts", str(scripts), "--seed", str(seed)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"scripts {scripts:,}, findings: 0" in done.stdout
