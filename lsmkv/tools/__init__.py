"""Rooms built on the engine: the ``lsmkv`` command and what it runs."""
