"""Facilities of the system that processes need to share a store, besides its files.

It is interpreted where the rest of ``shared`` is compiled: system calls, and no loops.
"""
