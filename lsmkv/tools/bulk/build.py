"""``lsmkv bulk build``: sorts records into shards, and publishes them as a version."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import Annotated, cast

import lsmkv.shards.building
from lsmkv import TableArguments
from lsmkv.files.exchange import Record, recognize
from lsmkv.shards import VersionDocument
from lsmkv.shards.building.sources.inputs import find_inputs
from lsmkv.shards.building.tables import TABLE_BYTES
from lsmkv.tools.arguments import filter_arguments
from lsmkv.tools.bulk.executors import open_executor
from lsmkv.tools.console import guarded, write_json, write_line
from lsmkv.tools.drawing import Progress, progress
from lsmkv.tools.options import argument, choice, flag, option, required
from lsmkv.tools.shard_sets import store_options
from lsmkv.tools.text import count, from_size, size

_MIB = 1 << 20
_SMALL = 16 * _MIB


class Codec(StrEnum):
    """Compression of blocks."""

    SNAPPY = "snappy"
    ZSTD = "zstd"
    ZLIB = "zlib"
    ZLIB_RAW = "zlib-raw"
    NONE = "none"


@guarded
def build(
    inputs: Annotated[
        list[str],
        argument("INPUT", "Files, or directories of files; - is stdin, as 'export' writes."),
    ],
    into: Annotated[str, required("URL", "The shard set: a directory, s3://..., ...", "--into")],
    shards: int | None = option(None, "N", "By default, one for each 512 MiB.", min=1),
    workers: int | None = option(
        None, "N", "Processes; by default one for each processor, or this one for a few MiB.", min=1
    ),
    scheduler: str | None = option(None, "ADDRESS", "Work on a Dask cluster: tcp://HOST:8786."),
    key: str = option("key", "COLUMN", "The keys, in files with columns."),
    value: str = option("value", "COLUMN", "The values, in files with columns."),
    filters: str | None = option(None, "KIND", "Kind of filters; default: fuse.", "--filter"),
    layout: str | None = option(None, "LAYOUT", "block, table or both.", "--filter-layout"),
    prefix: str | None = option(
        None, "P", "Also filters of prefixes: P bytes, or up to text P.", "--prefix"
    ),
    block_size: str | None = option(None, "SIZE", "The size of data blocks; 32 KiB by default."),
    table_size: str | None = option(None, "SIZE", "64 MiB by default."),
    compression: Codec = choice(Codec.SNAPPY, "The codec of blocks."),
    memory: str | None = option(None, "SIZE", "About what each worker takes; 256 MiB by default."),
    work: str | None = option(None, "URL", "Directory of sorted runs; all workers must see it."),
    after: int | None = option(None, "N", "Fail unless the newest version is N; 0 is none.", min=0),
    as_json: bool = flag("The figures as JSON.", "--json"),
) -> None:
    """Build shards of all records of INPUT, and publish them as the next version of a shard set.

    INPUT is what 'export' writes, plain or in gzip, CSV, Parquet or Arrow files. Of several records
    with one key the last one wins, in the order in which INPUT is given. Stdin is read by this
    process.

    Readers see the new version once it is complete. After an error or Ctrl-C (status 130) the
    version before stays in force; 'bulk prune' removes the files of a killed build. The same
    input gives the same bytes, whatever the number of workers.

    KIND is as in 'compact', for whole tables. SIZE is in bytes, or with K, M or G. Credentials come
    from the environment, that of each worker: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on.

    JSON: "url", "version", "build", "pairs", "bytes", "shards", "seconds".
    """
    if workers is not None and scheduler is not None:
        raise ValueError("give --workers or --scheduler, not both")
    if inputs.count("-") > 1:
        raise ValueError("stdin can be read only once")
    tables = _tables(filters, layout, prefix, block_size, compression)
    started = time.perf_counter()
    if workers is None and scheduler is None and _are_small(inputs):
        workers = 1
    with (
        open_executor(workers, scheduler) as executor,
        progress("Bulk build", "part") as bar,
    ):
        report = partial(_report, bar, executor is not None)
        version = lsmkv.bulk.build(
            [_stdin() if name == "-" else name for name in inputs],
            into,
            shards=shards,
            executor=executor,
            key=key,
            value=value,
            after=after,
            memory_limit=256 * _MIB if memory is None else from_size(memory),
            table_bytes=TABLE_BYTES if table_size is None else from_size(table_size),
            work_url=work,
            options=store_options(into),
            progress=report,
            **tables,
        )
    seconds = time.perf_counter() - started
    if as_json:
        write_json(_figures(into, version) | {"seconds": round(seconds, 3)})
    else:
        summary = f"version {version.number}: {count(version.pairs, 'pair')}, {size(version.bytes)}"
        write_line(f"{summary}, {count(len(version.shards), 'shard')}, in {seconds:.1f} s")


def _report(bar: Progress, knows_parts: bool, done: int, total: int, phase: str) -> None:
    """Show the progress of a build.  A process that sorts alone does not know the number of
    parts."""
    if phase == "sorting":
        bar.report_phase(phase, "part", done, total if knows_parts and total else None)
    else:
        bar.report_phase(phase, "shard", done, total)


def _figures(url: str, version: VersionDocument) -> dict[str, object]:
    return {
        "url": url,
        "version": version.number,
        "build": version.build,
        "pairs": version.pairs,
        "bytes": version.bytes,
        "shards": len(version.shards),
    }


def _are_small(inputs: list[str]) -> bool:
    """True if this process has read the files before others have started."""
    if "-" in inputs:
        return False
    return sum(file.size for name in inputs for file in find_inputs(name)) < _SMALL


def _stdin() -> Iterator[Record]:
    try:
        yield from recognize(sys.stdin.buffer)[1]
    except ValueError as error:
        raise ValueError(f"stdin: {error}") from None
    except lsmkv.CorruptionError as error:
        raise error.located("stdin") from None


def _tables(
    filters: str | None,
    layout: str | None,
    prefix: str | None,
    block_size: str | None,
    compression: Codec,
) -> TableArguments:
    """The keywords of a build that shape its tables."""
    tables = cast(TableArguments, filter_arguments(filters, layout, prefix))
    if isinstance(tables.get("bloom_filter_bits"), (str, tuple)):
        raise ValueError(f"--filter {filters}: all tables are on one level, so bits are a number")
    if tables.get("filter_policy") is not None:
        tables.setdefault("filter_layout", "table")
    if block_size is not None:
        tables["block_size"] = from_size(block_size)
    tables["compression"] = compression.value
    return tables
