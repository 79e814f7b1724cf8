"""Answers of a language model on disk: each prompt is paid for once.

    python examples/llm_calls.py [DIRECTORY]

The model is a function that counts its calls and takes its time.  Eight threads ask it the same two
questions at once: with ``lock=True`` one of them asks for each, and the others wait for its answer.
Then a second program, a process of its own, gets both answers without a call.  A tag removes what
one release of the model has said, and ``throttle`` keeps all processes together within the limit of
the service.

The arguments are the key: the model, the prompt and the temperature.  ``ignore`` leaves out the
client, which makes no difference to the answer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lsmkv
from lsmkv.cache.recipes import throttle

MODEL = "small-2026"


class Client:
    """Stands for the client of a service."""

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, prompt: str) -> str:
        self.calls += 1
        time.sleep(0.05)
        return f"{prompt} An answer in {len(prompt.split())} words."


def asker(cache: lsmkv.Cache) -> Any:
    """``ask`` and the limit of the service, which are the same in all processes."""

    @throttle(cache, count=50, seconds=1, name="calls of the service")
    def call(client: Client, prompt: str) -> str:
        return client.complete(prompt)

    @cache.memoize("ask", expire=30 * 24 * 3600, tag=MODEL, ignore={"client"}, lock=True)
    def ask(model: str, prompt: str, temperature: float, *, client: Client) -> str:
        return call(client, prompt)

    return ask


def main(directory: Path) -> None:
    client = Client()
    prompts = ["What is a memtable?", "What is a filter for?"]
    with lsmkv.Cache(directory, eviction="none") as cache:
        ask = asker(cache)
        with ThreadPoolExecutor(8) as pool:
            questions = [prompts[number % 2] for number in range(16)]
            answers = set(
                pool.map(lambda prompt: ask(MODEL, prompt, 0.0, client=client), questions)
            )
        print(f"16 questions of 8 threads: {client.calls} calls, {len(answers)} answers")
        command = [sys.executable, __file__, str(directory), "again"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(done.stdout.strip())
        print(f"{cache.evict(MODEL)} answers of {MODEL} removed")


def again(directory: Path) -> None:
    """What the second program does."""
    client = Client()
    with lsmkv.Cache(directory) as cache:
        ask = asker(cache)
        for prompt in ("What is a memtable?", "What is a filter for?"):
            ask(MODEL, prompt, 0.0, client=client)
    print(f"2 questions of another process: {client.calls} calls")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        again(Path(sys.argv[1]))
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place, "answers"))
