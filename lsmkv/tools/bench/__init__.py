"""``lsmkv bench``: LevelDB's db_bench in Python, for lsmkv and, in a checkout, its peers.

The modules, each using those before it: ``settings``, ``data`` (keys and values), ``store`` (what a
workload asks of an engine), ``leveldb`` (lsmkv's engine), ``engines``, ``loops`` (the timed code),
``workbench``, ``workloads`` and ``studies``, ``worker`` (the process that runs them), ``runner``
(which starts workers), ``results``, ``report`` and ``command``.  ``tests/bench`` has the peers'
engines.  The scripts in ``docs/performance/make`` make docs/performance.md from its figures.
"""
