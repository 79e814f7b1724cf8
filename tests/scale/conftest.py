"""Real parts: an S3 server behind a proxy, a cluster of Dask.

The tests here run where ``LSMKV_EXPECT_SCALE=1`` asks for them; a package that is missing is an
error then.  Their sizes are in :mod:`scale_sizes`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from dask_cluster import DaskCluster
from fault_proxy import FaultProxy
from scale_servers import Bucket, moto_server, new_bucket

_PACKAGES = ("boto3", "distributed", "moto", "nanio", "obstore", "plyvel", "snailmail")


@pytest.fixture(scope="session", autouse=True)
def _asked_for() -> None:
    if os.environ.get("LSMKV_EXPECT_SCALE") != "1":
        pytest.skip("LSMKV_EXPECT_SCALE=1 asks for these tests")
    for package in _PACKAGES:
        __import__(package)


@pytest.fixture(scope="session")
def _proxy(_asked_for: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    # Moto looks whether a name is taken, and then takes it: so one PUT at a time.
    with (
        moto_server(tmp_path_factory.mktemp("moto") / "log") as (host, port),
        FaultProxy(host, port, serialize_puts=True) as proxy,
    ):
        yield proxy


@pytest.fixture
def proxy(_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The way to the S3 server, with no faults at first and nothing counted."""
    _proxy.heal()
    _proxy.forget()
    yield _proxy
    _proxy.heal()


@pytest.fixture
def bucket(proxy: FaultProxy) -> Bucket:
    """An empty place in the S3 server, reached by the proxy."""
    return new_bucket(proxy)


@pytest.fixture(scope="module")
def cluster(_asked_for: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler and two workers."""
    running = DaskCluster(tmp_path_factory.mktemp("dask"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def client(cluster: DaskCluster) -> Iterator[Any]:
    """A client of the cluster."""
    with cluster.client() as client:
        yield client
