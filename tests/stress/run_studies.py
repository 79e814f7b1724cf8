"""Runs studies and prints their figures: ``run_studies.py [NAME...] [--size S] [--seed N]``.

Ends with 1 if there was any violation.  Without names all studies run, one after the other.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from study import Outcome

import lsmkv


def names_of_studies() -> list[str]:
    """Every module here that has a ``run`` of the right kind: they end in ``_study``."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*_study.py"))


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies; all if left out")
    parser.add_argument("--size", type=float, default=100.0, help="times what the suite does")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all that is random")
    arguments = parser.parse_args()
    known = names_of_studies()
    names = [name if name.endswith("_study") else f"{name}_study" for name in arguments.names]
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"no study is called {unknown[0]}; there are {', '.join(known)}")
    mode = "compiled" if lsmkv.COMPILED else "pure"
    print(f"lsmkv {lsmkv.__version__}, {mode}; size {arguments.size:g}, seed {arguments.seed}")
    violations = 0
    for name in names or known:
        started = time.monotonic()
        outcome: Outcome = importlib.import_module(name).run(
            arguments.size, arguments.seed, lambda line: print(f"  {line}", flush=True)
        )
        figures = ", ".join(f"{what} {number:,}" for what, number in outcome.figures.items())
        took = time.monotonic() - started
        print(
            f"{name.removesuffix('_study'):<12} {figures}; "
            f"violations: {len(outcome.violations)} ({took:.0f} s)",
            flush=True,
        )
        for violation in outcome.violations[:20]:
            print(f"    {violation}", flush=True)
        violations += len(outcome.violations)
    print(f"violations: {violations}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
