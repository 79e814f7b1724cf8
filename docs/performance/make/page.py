"""docs/performance.md, and the targets: ``python page.py DIRECTORY PAGE TARGETS``.

The figures are what the suite left in the directory; what was not run is left out.  Plots go into
a folder beside the page, under the page's name.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import plots
import prose
import rows
import typer
from suite import COMPILED_RUNS

import lsmkv
from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.report import micros, ratio
from lsmkv.tools.bench.workloads import WORKLOADS
from lsmkv.tools.console import guarded
from lsmkv.tools.output import open_output
from lsmkv.tools.text import count

Runs = dict[str, dict[str, Any]]
"""The JSON of ``lsmkv bench`` by the name of the run."""

_STUDIES = (*("sustained", "growth", "incompressible", "footprint", "absent", "memory", "import"),)
_MODES = {"compiled": rows.COMPILED, "pure": rows.PURE}
_BLURB = {
    "entries": "",
    "threads": "{threads} threads, ",
    "cached": "all cached, ",
    "defaults": "each with its own defaults, ",
    "large": "",
}
_BENCH_HEAD = ("workload", "ahead", "lsmkv us/op", "plyvel us/op", "ratio (spread)")
_PERCENTILES = {"p50": "p50", "p99": "p99", "p99.9": "p999", "slowest": "high"}
"""The names of a histogram's fields, by the column headings."""
_STUDY_HEAD = ("study", "ahead", "lsmkv", "plyvel", "ratio")
_BEGIN = "<!-- targets -->"
_END = "<!-- end targets -->"


def read_runs(directory: str, mode: str) -> Runs:
    """The runs of one mode that the suite has left; none if there are none.

    ``ValueError`` if one was not made in this mode.
    """
    found: Runs = {}
    for name in COMPILED_RUNS:
        path = os.path.join(directory, mode, f"{name}.json")
        if os.path.exists(path):
            with open(path, "rb") as file:
                found[name] = json.load(file)
            if found[name]["compiled"] is not (mode == "compiled"):
                raise ValueError(f"{path}: these figures are not those of lsmkv {mode}")
    return found


def make_page(compiled: Runs, pure: Runs, folder: str) -> tuple[str, dict[str, bytes]]:
    """The page, and the plots by the names of their files, which are shown from ``folder``."""
    figures: dict[str, bytes] = {}
    studies = _studies(compiled)
    parts = [prose.HEAD]
    parts += _about(compiled or pure)
    parts += _summary(compiled, pure)
    for mode, found in (("compiled", compiled), ("pure", pure)):
        if found:
            parts += _mode(mode, found)
        if "entries" in found:
            name = f"{mode}.svg"
            figures[name] = plots.ratio_plot(found["entries"])
            parts.append(f"![Ratios, {mode}]({folder}/{name})")
    if studies:
        parts += [prose.STUDIES, *_table(_STUDY_HEAD, rows.study_rows(studies))]
    if "sustained" in studies:
        figures["latency.svg"] = plots.latency_plot(studies["sustained"])
        parts.append(f"![Latencies of puts]({folder}/latency.svg)")
    if "growth" in studies:
        figures["growth.svg"] = plots.growth_plot(studies["growth"])
        parts.append(f"![Gets in growing stores]({folder}/growth.svg)")
    if "peers" in compiled:
        parts += [prose.PEERS, *_peers(compiled["peers"])]
    if any(name in compiled for name in prose.SHAPES):
        parts.append(prose.BY_SHAPE)
    for name, title in prose.SHAPES.items():
        if name in compiled:
            parts += [f"### {title}", *_peers(compiled[name])]
    parts += [prose.METHOD, prose.REPRODUCE, *_commands(compiled, pure)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n", figures


def _about(found: Runs) -> list[str]:
    """What the figures were measured on."""
    first = next(iter(found.values()), None)
    if first is None:
        return []
    machine = first["machine"]
    memory = machine["memory_bytes"]
    about = [
        f"{machine['processor']}, {machine['cores']} cores",
        "" if memory is None else f"{memory / 1024**3:.0f} GiB of memory",
        f"{machine['system']} on {machine['architecture']}",
        machine["file_system"] or "",
        machine["python"],
    ]
    versions = {
        name: engine["version"]
        for results in found.values()
        for name, engine in results["engines"].items()
        if engine.get("version")
    }
    engines = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [f"**Machine**: {', '.join(filter(None, about))}.\n**Engines**: {engines}."]


def _summary(compiled: Runs, pure: Runs) -> list[str]:
    """In how many workloads each is ahead."""
    parts = []
    for name, found in (("compiled", compiled), ("in pure Python", pure)):
        if "entries" in found:
            compared = rows.workload_rows(found["entries"], {})
            parts.append(summary_of(name, [(row.title, row.ahead) for row in compared]))
    if "peers" in compiled:
        parts.append(fastest_of(compiled["peers"]))
    return [f"**Who is ahead**: {'; '.join(parts)}."] if parts else []


def summary_of(mode: str, ahead: list[tuple[str, str]]) -> str:
    """One mode of the summary, of the workloads and who is ahead in each.

    >>> summary_of("compiled", [("open", "(lsmkv)"), ("seek10", "lsmkv"), ("compact", "plyvel")])
    'compiled, lsmkv is faster than LevelDB in 2 of 3 workloads (all but `compact`)'
    """
    compared = [(name, first.strip("()")) for name, first in ahead if first]
    won = [f"`{name}`" for name, first in compared if first == OWN]
    lost = [f"`{name}`" for name, first in compared if first != OWN]
    few = f"all but {', '.join(lost)}" if len(lost) < len(won) else ", ".join(won)
    summary = f"{mode}, lsmkv is faster than LevelDB in {len(won)} of {len(compared)} workloads"
    return f"{summary} ({few})" if won and lost else summary


def fastest_of(results: dict[str, Any]) -> str:
    """In how many workloads each engine is the fastest of all, the most often first."""
    counts = Counter(map(_fastest, results["workloads"].values()))
    found = [f"{name} in {number}" for name, number in counts.most_common()]
    return f"of all engines, the fastest is {', '.join(found)}"


def _fastest(workload: dict[str, Any]) -> str:
    """The engine with the best median."""
    medians: dict[str, float] = {
        name: figures["micros"]["median"]
        for name, figures in workload["engines"].items()
        if "micros" in figures
    }
    return min(medians, key=lambda name: medians[name])


def _mode(mode: str, found: Runs) -> list[str]:
    parts = [prose.MODES[mode]]
    for name in _BLURB:
        if name in found:
            results = found[name]
            title = f"{_title(name, results)}, {count(results['rounds'], 'round')}"
            parts.append(f"### {title[0].upper()}{title[1:]}: {mode}")
            if name == "defaults":
                parts.append(prose.OWN_DEFAULTS)
            parts += _table(_BENCH_HEAD, rows.workload_rows(results, {}))
    if "latencies" in found:
        parts += [prose.LATENCIES, *_latencies(found["latencies"])]
    return parts


def _latencies(results: dict[str, Any]) -> list[str]:
    """A row for each workload and engine."""
    lines = [_line(["workload", "engine", *_PERCENTILES]), _line(["---", "---", *["--:"] * 4])]
    for workload, summary in results["workloads"].items():
        for engine, figures in summary["engines"].items():
            if "histogram" in figures:
                histogram = figures["histogram"]
                cells = [micros(histogram[name]) for name in _PERCENTILES.values()]
                lines.append(_line([workload, engine, *cells]))
    return ["\n".join(lines)]


def _title(name: str, results: dict[str, Any]) -> str:
    settings = results["settings"]
    return f"{_BLURB[name].format(**settings)}{settings['num']:,} entries"


def _table(head: Sequence[str], found: Iterable[rows.Row]) -> list[str]:
    lines = [_line(head), _line(["---", ":-:", "--:", "--:", "--:"])]
    lines += [_line([row.title, row.ahead, row.own, row.peer, row.ratio]) for row in found]
    return ["\n".join(lines)]


def target_tables(compiled: Runs, pure: Runs) -> list[list[str]]:
    """The tables for CONTRIBUTING.md: one of each mode's runs, and one of the studies."""
    tables = []
    for mode, found in (("compiled", compiled), ("pure", pure)):
        of_runs = {
            f"{mode}, {_title(name, found[name])}": rows.workload_rows(found[name], _MODES[mode])
            for name in _BLURB
            if name in found and name != "defaults"
        }
        if of_runs:
            tables.append(rows.target_table(of_runs))
    studies = rows.study_rows(_studies(compiled))
    return [*tables, rows.target_table({"measured": studies})] if studies else tables


def with_targets(text: str, tables: list[list[str]]) -> str:
    """A page whose tables of targets are these; ``ValueError`` if it has no one place for them."""
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise ValueError(f"the targets need one place, between {_BEGIN} and {_END}")
    before, _, rest = text.partition(_BEGIN)
    parts = [_BEGIN, *("\n".join(lines) for lines in tables), _END]
    return before + "\n\n".join(parts) + rest.partition(_END)[2]


def _peers(results: dict[str, Any]) -> list[str]:
    names = [
        name for name, about in results["engines"].items() if "missing" not in about and name != OWN
    ]
    lines = [
        _line(["us/op", "fastest", OWN, *names]),
        _line(["---", ":-:", *["--:"] * (len(names) + 1)]),
    ]
    for workload, summary in results["workloads"].items():
        by_engine = summary["engines"]
        cells = [workload, _fastest(summary), micros(by_engine[OWN]["micros"]["median"])]
        for name in names:
            one = by_engine[name]
            if "skipped" in one:
                cells.append("-")
            else:
                cells.append(f"{micros(one['micros']['median'])}, {ratio(one['ratio'])}")
        lines.append(_line(cells))
    parts = ["\n".join(lines)]
    missing = [name for name, about in results["engines"].items() if "missing" in about]
    if missing:
        parts.append(f"Not installed where this was measured: {', '.join(missing)}.")
    return parts


def _commands(compiled: Runs, pure: Runs) -> list[str]:
    parts = []
    for mode, found in (("compiled", compiled), ("pure", pure)):
        if found:
            commands = [
                f"$ lsmkv bench {shlex.join(command_of(results))}" for results in found.values()
            ]
            parts.append("\n".join([f"{mode.capitalize()}:", "", "```console", *commands, "```"]))
    return parts


def command_of(results: dict[str, Any]) -> list[str]:
    """The arguments of ``lsmkv bench`` that give these results; what is a default is left out."""
    settings = results["settings"]
    names = [*results["workloads"], *results["studies"]]
    arguments = [] if names == list(WORKLOADS) else names
    peers = [name for name in results["engines"] if name != OWN]
    arguments += ["--against", ",".join(peers)] if peers else []
    for name, default in prose.DEFAULTS.items():
        setting = settings.get(name, default)
        if setting != default:
            arguments.append(f"--{name.replace('_', '-')}")
            arguments += [] if setting is True else [str(setting)]
    return [*arguments, "--rounds", str(results["rounds"])] if results["workloads"] else arguments


def _studies(found: Runs) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in _STUDIES:
        for results in found.values():
            if name in results["studies"]:
                merged[name] = results["studies"][name]
    return merged


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


@guarded
def page(
    directory: Annotated[str, typer.Argument(metavar="DIRECTORY", help="The suite's.")],
    file: Annotated[str, typer.Argument(metavar="PAGE", help="Written, or replaced.")],
    contributing: Annotated[
        str, typer.Argument(metavar="TARGETS", help="A page with a place for the targets.")
    ],
) -> None:
    """Make the page of what the suite measured, and the tables of targets in another one."""
    compiled, pure = read_runs(directory, "compiled"), read_runs(directory, "pure")
    if not compiled and not pure:
        raise lsmkv.Error(f"{directory}: no figures here")
    with open(contributing, encoding="utf-8") as page_of_targets:
        targets_text = with_targets(page_of_targets.read(), target_tables(compiled, pure))
    folder = os.path.splitext(os.path.basename(file))[0]
    text, figures = make_page(compiled, pure, folder)
    beside = os.path.join(os.path.dirname(file), folder)
    os.makedirs(beside, exist_ok=True)
    for name, content in figures.items():
        _write(os.path.join(beside, name), content)
    _write(file, text.encode())
    _write(contributing, targets_text.encode())


def _write(path: str, content: bytes) -> None:
    with open_output(path, force=True) as out:
        out.write(content)


if __name__ == "__main__":
    typer.run(page)
