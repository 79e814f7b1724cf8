"""Repairs every store of the corpus, and prints what each tool kept: ``make rescue``.

``run_rescue.py [--each N] [--seed N] [--kind TEXT] [--store TEXT] [--label TEXT] [--save DIR]
[--docs FILE]``.  ``--kind``, ``--store`` and ``--label`` select damaged stores by a part of their
names.  ``--save`` writes these to directories, with the plans of lsmkv's repair.  ``--docs`` writes
the sums to a page, and the table to ``reference/rescue.md`` next to it.  Ends with 1 if there is a
fault that ``trials.KNOWN`` does not name, or if the whole corpus lacks one that it names.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

from damages import KINDS, Corpus  # noqa: E402
from leveldbs import LevelDBs  # noqa: E402
from live_copies import STORE, Copy  # noqa: E402
from patients import Patient, patients  # noqa: E402
from proofs import Known  # noqa: E402
from trials import KNOWN, TOOLS, Result, options_of, trial  # noqa: E402

import lsmkv  # noqa: E402

EACH = 6
"""Damaged stores of each kind and patient."""
LEAST = 400
"""Damaged stores of the whole corpus."""
BEGIN, END = "<!-- kept -->", "<!-- end kept -->"

Table = dict[str, list[dict[str, Result]]]
"""By the kind of damage, what each tool made of each store."""


def save(patient: Patient, copy: Copy, path: Path) -> None:
    """Write a damaged store, and the plan of its repair."""
    path.mkdir(parents=True)
    for name, content in copy.files.items():
        (path / name).write_bytes(content)
    plan = lsmkv.plan_repair(STORE, env=copy.env(), **options_of(patient))
    text = f"{patient.name}: {copy.label}\n{plan}\n"
    path.with_suffix(".txt").write_text(text, encoding="utf-8")


def lines(table: Table) -> Iterator[str]:
    """The table in Markdown: for each damage and each tool the sums of its stores."""
    yield f"| damage | stores | {' | '.join(TOOLS)} |"
    yield f"| --- | --: |{' --: |' * len(TOOLS)}"
    everything = [result for results in table.values() for result in results]
    for kind, results in (*table.items(), ("all", everything)):
        cells = [_sums([result[tool] for result in results if tool in result]) for tool in TOOLS]
        yield f"| {kind} | {len(results):,} | {' | '.join(cells)} |"


def _sums(results: list[Result]) -> str:
    columns = zip(*(result.outcome for result in results), strict=True)
    return " / ".join(f"{sum(column):,}" for column in columns) or "-"


def write_docs(page: Path, table: Table) -> None:
    """Write the sums of all stores to the page, and the whole table to the reference."""
    rows = list(lines(table))
    _write_rows(page, [*rows[:2], rows[-1]])
    _write_rows(page.parent / "reference" / "rescue.md", rows)


def _write_rows(page: Path, rows: list[str]) -> None:
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    body = "\n".join(rows)
    page.write_text(f"{head}{BEGIN}\n\n{body}\n\n{END}{tail}", encoding="utf-8")


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--each", type=int, default=EACH, help="stores of each kind and patient")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="")
    parser.add_argument("--store", default="")
    parser.add_argument("--label", default="")
    parser.add_argument("--save", type=Path, metavar="DIR")
    parser.add_argument("--docs", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    is_whole = not (arguments.kind or arguments.store or arguments.label)
    logging.disable(logging.CRITICAL)
    started = time.monotonic()
    table: Table = {}
    seen: set[tuple[str, str]] = set()
    stores = unknown = 0
    with tempfile.TemporaryDirectory() as scratch, LevelDBs() as leveldbs:
        made = Path(scratch) / "made"
        made.mkdir()
        found = list(patients(made))
        known = {patient.name: Known(patient) for patient in found}
        corpus = Corpus(found, arguments.seed)
        for kind in KINDS:
            if arguments.kind not in kind:
                continue
            results = table[kind] = []
            for patient, copy in corpus.of(kind, arguments.each):
                if arguments.store not in patient.name or arguments.label not in copy.label:
                    continue
                repaired = Path(scratch) / "repaired"
                results.append(trial(patient, known[patient.name], copy, repaired, leveldbs))
                stores += 1
                if arguments.save is not None:
                    save(patient, copy, arguments.save / str(stores))
                for tool, result in results[-1].items():
                    for bar, text in result.faults:
                        seen.add((kind, bar))
                        is_known = (kind, bar) in KNOWN
                        unknown += not is_known
                        if not is_known or not is_whole:
                            print(f"  {bar}: {tool}, {patient.name}, {copy.label}: {text}")
            print(f"{kind}: {len(results)} stores", flush=True)
    print(*lines(table), sep="\n")
    if arguments.docs is not None and is_whole:
        write_docs(arguments.docs, table)
    gone = sorted(KNOWN.keys() - seen) if is_whole and arguments.each >= EACH else []
    for kind, bar in gone:
        print(f"no longer a fault: {kind}, {bar}")
    took = time.monotonic() - started
    print(f"{stores:,} damaged stores, {unknown} unknown faults ({took:.0f} s)")
    return 1 if unknown or gone or (is_whole and stores < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main())
