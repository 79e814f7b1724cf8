"""Coverage-guided fuzzing: ``run_fuzz.py [TARGET...] [--seconds S] [--directory D]``.

Each target runs for so long in a process of its own, from the seeds that :mod:`corpus` makes and
what earlier runs found.  Ends with 1 if there was any finding: the bytes lie in the directory, and
``run_fuzz.py TARGET --bytes FILE`` shows what they do.  Needs atheris, and lsmkv uncompiled.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
MOST_BYTES = 4096
MOST_BYTES_OF_A_LOG = 70_000


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all if left out")
    parser.add_argument(
        "--seconds", type=int, default=int(os.environ.get("FUZZ_SECONDS", "60")), help="a target"
    )
    parser.add_argument("--directory", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--bytes", type=Path, help="give the target the bytes of this file")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return fuzz(arguments.targets[0], arguments.directory, arguments.seconds)

    from corpus import seeds  # not where atheris still has to see the imports
    from targets import TARGETS

    unknown = sorted(set(arguments.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no target is called {unknown[0]}; there are {', '.join(TARGETS)}")
    if arguments.bytes is not None:
        for name in arguments.targets:
            TARGETS[name](arguments.bytes.read_bytes())
        return 0
    failed = []
    for name in arguments.targets or TARGETS:
        corpus = arguments.directory / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        for data in seeds()[name]:
            (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
        command = [sys.executable, __file__, name, "--inside", "--seconds", str(arguments.seconds),
                   "--directory", str(arguments.directory)]  # fmt: skip
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        last = [line for line in done.stderr.splitlines() if line.startswith(("#", "Done "))][-2:]
        print(f"{name:<14} {'; '.join(last)}", flush=True)
        if done.returncode != 0:
            failed.append(name)
            print(done.stderr[-4000:], flush=True)
    print(f"findings: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def fuzz(name: str, directory: Path, seconds: int) -> int:
    """Fuzz one target in this process, which atheris ends."""
    import atheris  # pyright: ignore[reportMissingImports]

    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    rooms = project["tool"]["lsmkv"]["compiled"]
    with atheris.instrument_imports(include=[f"lsmkv.{room}" for room in rooms]):
        from targets import TARGETS

    import lsmkv

    if lsmkv.COMPILED:
        raise SystemExit("compiled code shows no coverage: use the source tree")
    import logging

    logging.getLogger("lsmkv").setLevel(logging.CRITICAL)
    most = MOST_BYTES_OF_A_LOG if name == "log" else MOST_BYTES
    atheris.Setup(
        [
            sys.argv[0], str(directory / "corpus" / name), f"-max_total_time={seconds}",
            f"-max_len={most}", f"-artifact_prefix={directory}/{name}-", "-rss_limit_mb=1024",
            "-timeout=10", "-print_final_stats=0", "-verbosity=1",
        ],
        TARGETS[name],
    )  # fmt: skip
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
