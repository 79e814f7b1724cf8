"""Build a shard set with Dask, and read it: ``python examples/shards_with_dask.py``.

It needs Dask's scheduler and workers, which are started here, on this machine:
``pip install 'dask[dataframe]' distributed``.  With a cluster, give ``Client`` its address, and
publish to ``s3://bucket/words`` (the extra ``remote``).
"""

from __future__ import annotations

import logging
import tempfile

import dask.dataframe
import pandas
from distributed import Client, LocalCluster

import lsmkv.bulk
import lsmkv.shards

WORDS = ["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen"]


def frame() -> dask.dataframe.DataFrame:
    """A dataframe of 80,000 rows in eight partitions, as others would read one from Parquet."""
    numbers = range(10_000)
    rows = pandas.DataFrame(
        {
            "word": [f"{word}-{number:04d}" for word in WORDS for number in numbers],
            "count": [f"{number * number % 97}" for _ in WORDS for number in numbers],
        }
    )
    return dask.dataframe.from_pandas(rows, npartitions=len(WORDS))


def main() -> None:
    """Build, publish, read."""
    with (
        tempfile.TemporaryDirectory() as url,
        # Its nannies warn of workers that take 4 seconds to end, as they do on a busy machine.
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
        ) as cluster,
        Client(cluster) as client,
    ):
        version = lsmkv.bulk.build(
            frame(), url, shards=4, executor=client.get_executor(), key="word", value="count"
        )
        print(f"version {version.number}: {version.pairs:,} pairs in {len(version.shards)} shards")
        with lsmkv.shards.open(url) as words:
            print("fox-0012 counts", words.get(b"fox-0012"))
            print("gnu-99 begins", sum(1 for _ in words.iterator(prefix=b"gnu-99")), "words")
            absent = [f"{word}-{number:04d}x".encode() for word in WORDS for number in range(500)]
            assert words.multi_get(absent) == [None] * len(absent)
            print(words.stats())


if __name__ == "__main__":
    main()
