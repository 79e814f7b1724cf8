"""``lsmkv bench``: LevelDB's db_bench in Python, for lsmkv and its peers.

The modules, each using those before it: ``settings``, ``data`` (keys and values), ``engines/`` (one
adapter a store), ``loops`` (the timed code), ``workloads`` and ``studies``, ``worker`` (the process
that runs them), ``runner`` (which starts workers), ``results``, ``report`` and ``command``.  The
scripts in ``docs/performance/make`` make docs/performance.md from its figures.
"""
