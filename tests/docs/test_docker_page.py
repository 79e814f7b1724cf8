"""docs/guides/docker.md: as much of its Dockerfile as can be tested without Docker.

Its instructions are known ones in an order that Docker takes, its shell is shell, the files that it
copies are there, what pip is to install has those extras, and the command that it starts runs.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from documents import ROOT, parsed_command
from processes import ENVIRON, free_port

PAGE = (ROOT / "docs" / "guides" / "docker.md").read_text(encoding="utf-8")
(DOCKERFILE,) = re.findall(r"(?ms)^```dockerfile\n(.*?)^```", PAGE)
KNOWN = {
    *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"),
    *("ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}


class Instruction(NamedTuple):
    name: str
    rest: str


def instructions(text: str) -> list[Instruction]:
    """The instructions, with their continued lines put together."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in joined]


ALL = instructions(DOCKERFILE)


def the(name: str) -> list[str]:
    return [one.rest for one in ALL if one.name == name]


def test_instructions_are_known_and_begin_with_a_stage() -> None:
    assert ALL[0].name == "FROM"
    assert {one.name for one in ALL} <= KNOWN
    for rest in the("FROM"):
        assert re.fullmatch(r"[\w./-]+:[\w.-]+( AS \w+)?", rest)


@pytest.mark.parametrize("command", the("RUN"))
def test_what_is_run_is_shell(command: str) -> None:
    done = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_copied_is_there() -> None:
    stages = {rest.rpartition(" AS ")[2] for rest in the("FROM") if " AS " in rest}
    made = " ".join(the("RUN"))
    for rest in the("COPY"):
        options = [word for word in rest.split() if word.startswith("--")]
        *sources, _ = [word for word in rest.split() if not word.startswith("--")]
        stage = [option.partition("=")[2] for option in options if option.startswith("--from=")]
        for source in sources:
            if stage:
                assert stage[0] in stages
                assert source in made
            else:
                assert (ROOT / source / "pyproject.toml").is_file()


def test_pip_gets_only_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        name for found in re.findall(r"/src\[([\w,]+)\]", DOCKERFILE) for name in found.split(",")
    ]
    assert extras
    assert set(extras) <= set(project["optional-dependencies"])
    version = re.findall(r"python:(\d\.\d+)", DOCKERFILE)
    assert len(set(version)) == 1  # a wheel is for one CPython
    assert f"Programming Language :: Python :: {version[0]}" in project["classifiers"]
    assert "LSMKV_MYPYC" in (ROOT / "setup.py").read_text(encoding="utf-8")


def command() -> list[str]:
    """What the container runs: in the form that needs no shell, so that it gets the signals."""
    return [word for rest in (*the("ENTRYPOINT"), *the("CMD")) for word in json.loads(rest)]


def test_the_command_is_one_that_lsmkv_takes() -> None:
    name, *words = command()
    assert name == "lsmkv"
    assert shlex.join(words).startswith("serve /data/")
    assert words[1].startswith(tuple(f"{volume}/" for volume in the("VOLUME")))
    assert the("EXPOSE") == [str(parsed_command(words)["port"])]


def connected(port: int) -> socket.socket:
    """A connection to a server, once it has started."""
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            assert time.monotonic() < end, "it does not listen"
            time.sleep(0.05)


def test_the_command_serves_and_ends_by_sigterm(tmp_path: Path) -> None:
    pytest.importorskip("hiredis")
    words = [word.replace("/data", str(tmp_path)) for word in command()[1:]]
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "lsmkv", *words, "--port", str(port)],
        env=ENVIRON | {"LSMKV_SERVE_PASSWORD": "secret"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            with connected(port) as client:
                client.sendall(b"PING\r\n")
                assert client.recv(100).startswith(b"-NOAUTH")
        finally:
            process.terminate()
            process.wait(timeout=60)
    assert process.returncode == 0
    assert (tmp_path / "store" / "CURRENT").exists()
