"""``lsmkv bench``: LevelDB's db_bench in Python, for lsmkv and its peers.

From the inside out: ``settings``, ``data`` (keys and values), ``engines/`` (one adapter a store),
``loops`` (what is timed), ``workloads`` and ``studies`` (what is run), ``worker`` (the process that
runs them), ``runner`` (which starts it), ``results``, ``report`` and ``command``.  The
scripts in ``docs/performance/make`` make docs/performance.md of its figures.
"""
