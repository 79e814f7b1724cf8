"""Backends of ``lsmkv.Cache`` for other libraries, under the interfaces of those."""
