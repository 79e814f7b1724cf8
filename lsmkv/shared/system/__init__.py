"""What processes that share a store need of their system besides the files of the store.

It is interpreted where the rest of ``shared`` is compiled: system calls, and no loops.
"""
